//! A lease as its holder knows it.

use super::news::Notes;
use super::{End, Extend, Grant, LeaseTtl, Lock, News, Release, Transferred, Tried, Verify};
use crate::aside::Aside;
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
    /// The TTL that it has: the lock's, or what it was extended to.
    ttl: LeaseTtl,
    /// When the request was sent that gave it its time: the last extend that succeeded, or the acquire.
    given_at: Instant,
    /// Why the last extend since then had no success.
    trouble: Option<String>,
    /// Why it is no longer ours: what the server said, or that its time was over. The first reason stays.
    lost: Option<Error>,
    leaving: Leaving,
    /// The extends since none was under way, by number; how many of them are, and the number of the next.
    recent: Vec<(u32, LeaseTtl)>,
    extending: u32,
    next_extend: u32,
    /// The shortest TTL that an extend asked for whose outcome is unknown: it may be executed yet.
    stray: Option<LeaseTtl>,
    notes: Aside<Notes>,
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
    /// Another holds it now, by our token.
    Transferred,
}

/// An extend under way; it belongs into [`Lease::extended`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub struct Extending {
    before: Instant,
    number: u32,
    ttl: LeaseTtl,
    started_at: Instant,
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
        let since = lock.ttl().sent_at(grant.valid_until);
        Self {
            token: grant.token,
            fence: grant.fence,
            given_at: since,
            valid_until: grant.valid_until,
            ttl: lock.ttl(),
            lock,
            trouble: None,
            lost: None,
            leaving: Leaving::No,
            recent: Vec::new(),
            extending: 0,
            next_extend: 0,
            stray: None,
            notes: Aside(Notes::new(since)),
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
    pub fn remaining(&mut self, now: Instant) -> u64 {
        self.valid_until(now).map_or(0, |until| until.since(now))
    }

    /// Makes sure that it is ours by the holder's clock for at least `margin`; `lost`, with the reason, if not.
    pub fn ensure(&mut self, now: Instant, margin: Wait) -> Result<(), Error> {
        let left = self.valid_until(now)?.since(now);
        if left < margin.as_millis() {
            let needed = margin.as_millis();
            let detail = format!("{left} ms are left of it and {needed} ms are needed");
            return Err(self.lock.lost(Reason::Expired, detail));
        }
        Ok(())
    }

    /// Why it is no longer ours, if it was lost by `now`; nothing if it is ours, or was given away on purpose.
    pub fn lost(&mut self, now: Instant) -> Option<&Error> {
        self.look_at_clock(now);
        self.lost.as_ref()
    }

    /// Whether the holder has let go of it, or begun to.
    pub fn is_left(&self) -> bool {
        self.leaving != Leaving::No
    }

    /// What has become of it since this was asked the last time, for those who count; nothing most times.
    pub fn news(&mut self, now: Instant) -> Option<News> {
        self.look_at_clock(now);
        let end = match (&self.lost, self.leaving) {
            (Some(lost), _) => lost.code().reason().map(End::Lost),
            (None, Leaving::Done) => Some(End::Released),
            (None, Leaving::Transferred) => Some(End::Transferred),
            (None, Leaving::No | Leaving::Asked { .. }) => None,
        };
        self.notes.news(end, now.min(self.valid_until))
    }

    /// Whether its end was told as [news](Self::news).
    pub fn has_told_its_end(&self) -> bool {
        self.notes.has_ended()
    }

    /// Starts to extend it to `ttl` from now; `lost` if it is known not to be ours.
    pub fn extend(
        &mut self,
        ttl: LeaseTtl,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Started<Extend, Instant>, Extending), Error> {
        let before = self.valid_until(now)?;
        let lock = self.lock.with_ttl(ttl);
        let number = self.next_extend;
        let extending = Extending {
            before,
            number,
            ttl,
            started_at: now,
        };
        self.next_extend = number.wrapping_add(1);
        self.recent.push((number, ttl));
        self.extending += 1;
        // It may be made shorter, and from now on nobody knows when.
        self.valid_until = before.min(ttl.valid_until(now));
        let (extend, step) = Extend::start(lock, &self.token, before, settings, seed, now);
        let extend = extend.rejoining(&self.token, self.fence, settings, seed, now);
        Ok(((extend, step), extending))
    }

    /// Takes in how an extend ended.
    pub fn extended(
        &mut self,
        Extending {
            before,
            number,
            ttl,
            started_at,
        }: Extending,
        result: Result<Instant, Error>,
    ) -> Result<(), Error> {
        let others = self.recent.iter().filter(|(other, _)| *other != number);
        let is_alone = others.clone().next().is_none();
        let rival = others.map(|(_, ttl)| *ttl).chain(self.stray).min();
        match &result {
            // The server may execute a rival after it, at the earliest just after this one began.
            Ok(until) => {
                (self.ttl, self.given_at, self.trouble) = (ttl, started_at, None);
                let shortened = rival.map(|rival| rival.valid_until(started_at));
                self.valid_until = shortened.map_or(*until, |shortened| shortened.min(*until));
            }
            Err(error) => match error.code() {
                // What is lost while it is being released is lost by that.
                Code::Lost(_) if self.is_left() => {}
                Code::Lost(_) => self.lose(error),
                Code::OutcomeUnknown => {
                    self.trouble = Some(error.detail().to_owned());
                    self.stray = Some(self.stray.map_or(ttl, |stray| stray.min(ttl)));
                }
                // Nothing was changed.
                _ => {
                    self.trouble = Some(error.detail().to_owned());
                    if is_alone {
                        self.valid_until = before;
                    }
                }
            },
        }
        self.extending -= 1;
        if self.extending == 0 {
            self.recent.clear();
        }
        match (result, &self.lost) {
            // It came too late: the holder has been told.
            (Ok(_), Some(lost)) => Err(lost.clone()),
            (result, _) => result.map(|_| ()),
        }
    }

    /// Starts to release it, and says when that was; nothing if that was done, or another holds it now.
    pub fn release(
        &mut self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Option<Started<Release, ()>> {
        self.leave(now)
            .then(|| self.begin_release(settings, seed, now))
    }

    /// Lets go of it, before the release is sent; whether there is one to send.
    pub(super) fn leave(&mut self, now: Instant) -> bool {
        // What was over before is lost, and not released.
        self.look_at_clock(now);
        self.leaving = match self.leaving {
            Leaving::No => {
                self.notes.let_go(now);
                Leaving::Asked {
                    open: 1,
                    since: now,
                }
            }
            Leaving::Asked { open, since } => Leaving::Asked {
                open: open + 1,
                since,
            },
            Leaving::Done | Leaving::Transferred => return false,
        };
        true
    }

    /// Starts the release of what was [left](Self::leave).
    pub(super) fn begin_release(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Started<Release, ()> {
        Release::start(
            self.lock.clone(),
            &self.token,
            self.valid_until,
            settings,
            seed,
            now,
        )
    }

    /// Gives the right away: whoever has what this gives may [adopt](Transferred::adopt) the lease. `lost` if it is known not
    /// to be ours, and nothing is given away then.
    pub(super) fn transfer(&mut self, now: Instant) -> Result<Transferred, Error> {
        self.valid_until(now)?;
        self.leaving = Leaving::Transferred;
        self.notes.let_go(now);
        Ok(Transferred::new(self.token.clone(), self.fence))
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
            1 => {
                if self.lost.is_none() {
                    self.notes.hold_on();
                }
                Leaving::No
            }
            more => Leaving::Asked {
                open: more - 1,
                since,
            },
        };
        match (&self.lost, error.code()) {
            (Some(first), Code::Lost(_)) => Err(first.clone()),
            _ => Err(error),
        }
    }

    /// Starts to ask the server whether it is ours; `lost` if it is known not to be.
    pub fn verify(
        &mut self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<Started<Verify, Instant>, Error> {
        let believed = self.valid_until(now)?;
        let (lock, token) = (self.lock.clone(), self.token.clone());
        Ok(Verify::start(lock, token, believed, settings, seed, now))
    }

    /// Takes in what the server said; `lost` if it is not ours, or not for at least `margin`.
    pub fn verified(
        &mut self,
        result: Result<Instant, Error>,
        now: Instant,
        margin: Wait,
    ) -> Result<(), Error> {
        match result {
            // What is lost while it is being released is lost by that.
            Err(error) if self.is_left() => {
                self.valid_until(now)?;
                Err(error)
            }
            Err(error) => {
                self.lose(&error);
                Err(error)
            }
            Ok(until) if until.since(now) < margin.as_millis() => {
                let left = until.since(now);
                let detail = format!("the server leaves it to us for {left} ms");
                Err(self.lock.lost(Reason::Expired, detail))
            }
            Ok(_) => self.ensure(now, margin),
        }
    }

    /// Until when it is ours, unless it is known not to be.
    pub(super) fn valid_until(&mut self, now: Instant) -> Result<Instant, Error> {
        self.look_at_clock(now);
        match (&self.lost, self.leaving) {
            (Some(error), _) => Err(error.clone()),
            (None, Leaving::No) => Ok(self.valid_until),
            (None, Leaving::Asked { .. } | Leaving::Done) => {
                Err(self.lock.lost(Reason::Expired, "it was released"))
            }
            (None, Leaving::Transferred) => {
                Err(self.lock.lost(Reason::Expired, "it was transferred"))
            }
        }
    }

    /// Takes in that it is no longer ours; another error than `lost` says nothing of that.
    pub(super) fn lose(&mut self, error: &Error) {
        if error.code().reason().is_some() {
            self.lost.get_or_insert_with(|| error.clone());
        }
    }

    /// Takes in how a renewal of its own ended, for those who count.
    pub(super) fn tried(&mut self, renewal: Tried) {
        self.notes.tried(renewal);
    }

    /// What its time was given for, and when; the basis of the next renewal.
    pub(super) const fn given(&self) -> (LeaseTtl, Instant) {
        (self.ttl, self.given_at)
    }

    /// Remembers that its time is over, if it is: from then on it is lost, whatever answers come yet.
    fn look_at_clock(&mut self, now: Instant) {
        if now < self.valid_until || self.is_left() || self.lost.is_some() {
            return;
        }
        self.lost = Some(match &self.trouble {
            Some(trouble) => {
                let detail = format!("its time was over before it could be extended: {trouble}");
                self.lock.lost(Reason::Unreachable, detail)
            }
            None => self.lock.lost(Reason::Expired, "its time is over"),
        });
    }
}
