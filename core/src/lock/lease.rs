//! A lease as its holder knows it.

use super::{Extend, Grant, LeaseTtl, Lock, Release};
use crate::error::{Code, Error, Reason};
use crate::settings::Settings;
use crate::step::Step;
use crate::time::{Instant, Wait};
use crate::token::{Seed, Token};

/// The right to a lock for a limited time: until when it is ours by the holder's clock, and what has become of it.
///
/// It starts the operations that extend and release it, and takes in how they ended. Several may be under way at a time,
/// and they may end in another order than they began.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    lock: Lock,
    token: Token,
    fence: u64,
    valid_until: Instant,
    /// What the server said when it was no longer ours. Nothing undoes that.
    lost: Option<Error>,
    leaving: Leaving,
    /// How many extends were started, and how many of them are under way.
    extends: u32,
    extending: u32,
}

/// How far the release has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Leaving {
    No,
    /// So many releases are under way, or ended without our knowing how; the first of them was started at `since`.
    Asked {
        open: u32,
        since: Instant,
    },
    Done,
}

/// An extend under way; it belongs into [`Lease::extended`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub struct Extending {
    before: Instant,
    number: u32,
    is_alone: bool,
}

impl Extending {
    /// Until when the lease was ours before: the extend ends then at the latest.
    pub const fn valid_until(&self) -> Instant {
        self.before
    }
}

type Started<O, T> = (O, Step<Result<T, Error>>);

impl Lease {
    /// The lease that was granted.
    pub fn new(lock: Lock, grant: Grant) -> Self {
        Self {
            lock,
            token: grant.token,
            fence: grant.fence,
            valid_until: grant.valid_until,
            lost: None,
            leaving: Leaving::No,
            extends: 0,
            extending: 0,
        }
    }

    /// The lock, with the TTL that its leases have unless they are extended to another.
    pub const fn lock(&self) -> &Lock {
        &self.lock
    }

    /// The fencing token.
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// How long it is still ours by the holder's clock, in milliseconds; 0 once it is not.
    pub fn remaining(&self, now: Instant) -> u64 {
        self.valid_until().map_or(0, |until| until.since(now))
    }

    /// Makes sure that it is ours by the holder's clock for at least `margin`; `lost`, with the reason, if not.
    pub fn ensure(&self, now: Instant, margin: Wait) -> Result<(), Error> {
        let left = self.valid_until()?.since(now);
        if left == 0 || left < margin.as_millis() {
            let needed = margin.as_millis();
            let detail = format!("{left} ms are left of it and {needed} ms are needed");
            return Err(self.lock.lost(Reason::Expired, detail));
        }
        Ok(())
    }

    /// Starts to extend it to `ttl` from now; `lost` if it is known not to be ours.
    pub fn extend(
        &mut self,
        ttl: LeaseTtl,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Started<Extend, Instant>, Extending), Error> {
        let before = self.valid_until()?;
        let lock = self.lock.with_ttl(ttl);
        self.extends += 1;
        let extending = Extending {
            before,
            number: self.extends,
            is_alone: self.extending == 0,
        };
        self.extending += 1;
        // It may be made shorter, and from now on nobody knows when.
        self.valid_until = before.min(ttl.valid_until(now));
        Ok((
            Extend::start(lock, &self.token, before, settings, seed, now),
            extending,
        ))
    }

    /// Takes in how an extend ended.
    pub fn extended(
        &mut self,
        Extending {
            before,
            number,
            is_alone,
        }: Extending,
        result: Result<Instant, Error>,
    ) -> Result<(), Error> {
        self.extending -= 1;
        // Where two were under way, nobody knows which the server executed last: the shorter one counts.
        let is_alone = is_alone && number == self.extends;
        match &result {
            Ok(until) if is_alone => self.valid_until = *until,
            Ok(until) => self.valid_until = self.valid_until.min(*until),
            // Nothing was changed.
            Err(error)
                if is_alone && !matches!(error.code(), Code::Lost(_) | Code::OutcomeUnknown) =>
            {
                self.valid_until = before;
            }
            // What is lost while it is being released is lost by that.
            Err(error) if self.leaving == Leaving::No => self.lose(error),
            Err(_) => {}
        }
        result.map(|_| ())
    }

    /// Starts to release it, and says when that was; nothing if it was released already.
    pub fn release(
        &mut self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Option<Started<Release, ()>> {
        self.leaving = match self.leaving {
            Leaving::No => Leaving::Asked {
                open: 1,
                since: now,
            },
            Leaving::Asked { open, since } => Leaving::Asked {
                open: open + 1,
                since,
            },
            Leaving::Done => return None,
        };
        Some(Release::start(
            self.lock.clone(),
            &self.token,
            self.valid_until,
            settings,
            seed,
            now,
        ))
    }

    /// Takes in how a release ended. One that finds nothing was done by another of ours, if that may be.
    pub fn released(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        let Leaving::Asked { open, since } = self.leaving else {
            return Ok(());
        };
        let Err(error) = result else {
            self.leaving = Leaving::Done;
            return Ok(());
        };
        match error.code() {
            Code::Lost(Reason::Expired) if open > 1 && since < self.valid_until => {
                self.leaving = Leaving::Done;
                return Ok(());
            }
            // It stays open for ever: it may be executed yet.
            Code::OutcomeUnknown => return Err(error),
            _ => self.lose(&error),
        }
        self.leaving = match open {
            1 => Leaving::No,
            more => Leaving::Asked {
                open: more - 1,
                since,
            },
        };
        Err(error)
    }

    /// Until when it is ours, unless it is known not to be.
    fn valid_until(&self) -> Result<Instant, Error> {
        match (&self.lost, self.leaving) {
            (Some(error), _) => Err(error.clone()),
            (None, Leaving::No) => Ok(self.valid_until),
            (None, Leaving::Asked { .. } | Leaving::Done) => {
                Err(self.lock.lost(Reason::Expired, "it was released"))
            }
        }
    }

    fn lose(&mut self, error: &Error) {
        if error.code().reason().is_some() {
            self.lost.get_or_insert_with(|| error.clone());
        }
    }
}
