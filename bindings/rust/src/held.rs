//! A lease as both clients hold it: what is known of it here, and the operations on it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Extend, Grant, Lock, Release};
use tallylock_core::settings::Settings;
use tallylock_core::step::Step;
use tallylock_core::time::Instant;
use tallylock_core::token::{Seed, Token};

use crate::spec;

/// A granted lock, with what has become of it since.
#[derive(Debug)]
pub(crate) struct Held {
    lock: Lock,
    token: Token,
    fence: u64,
    /// The process that acquired it: a lease does not pass to a child.
    process: u32,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    valid_until: Instant,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Ours,
    /// The server said that it is no longer ours.
    Lost(Error),
    /// A release is under way, or ended without our knowing how; then since when.
    Releasing {
        unknown_since: Option<Instant>,
    },
    Released,
}

/// An operation that was started, with its first step.
pub(crate) type Started<O, T> = (O, Step<Result<T, Error>>);

impl Held {
    pub(crate) fn new(lock: Lock, grant: Grant) -> Self {
        let known = Known {
            valid_until: grant.valid_until,
            state: State::Ours,
        };
        Self {
            lock,
            token: grant.token,
            fence: grant.fence,
            process: std::process::id(),
            known: Mutex::new(known),
        }
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// How long it is still ours by our clock.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        let valid_until = self.valid_until(&self.known());
        valid_until.map_or(Duration::ZERO, |valid_until| {
            Duration::from_millis(valid_until.since(now))
        })
    }

    /// `lost` if less than `margin`, or nothing, is left of it by our clock.
    pub(crate) fn ensure(&self, now: Instant, margin: Duration) -> Result<(), Error> {
        let left = Duration::from_millis(self.valid_until(&self.known())?.since(now));
        if left.is_zero() || left < margin {
            let detail = format!(
                "{} ms are left of it and {margin:?} are needed",
                left.as_millis()
            );
            return Err(self.lost(Reason::Expired, detail));
        }
        Ok(())
    }

    /// Starts to extend it to `ttl` from now; also gives until when it was ours before.
    pub(crate) fn extend(
        &self,
        ttl: Duration,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Started<Extend, Instant>, Instant), Error> {
        let lock = self.lock.with_ttl(spec::lease_ttl(self.lock.key(), ttl)?);
        let mut known = self.known();
        let before = self.valid_until(&known)?;
        // It may be made shorter, and from now on nobody knows when.
        known.valid_until = before.min(lock.ttl().valid_until(now));
        Ok((
            Extend::start(lock, &self.token, before, settings, seed, now),
            before,
        ))
    }

    /// Takes in how an extend ended.
    pub(crate) fn extended(
        &self,
        result: Result<Instant, Error>,
        before: Instant,
    ) -> Result<(), Error> {
        let mut known = self.known();
        match result {
            Ok(valid_until) => {
                known.valid_until = valid_until;
                Ok(())
            }
            Err(error) => {
                match error.code() {
                    Code::Lost(_) if matches!(known.state, State::Ours) => {
                        known.state = State::Lost(error.clone());
                    }
                    Code::Lost(_) | Code::OutcomeUnknown => {}
                    _ => known.valid_until = before,
                }
                Err(error)
            }
        }
    }

    /// Starts to release it; nothing if that is done already.
    pub(crate) fn release(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<Option<Started<Release, ()>>, Error> {
        self.check_process()?;
        let mut known = self.known();
        match known.state {
            State::Released => return Ok(None),
            State::Releasing { .. } => {}
            State::Ours | State::Lost(_) => {
                known.state = State::Releasing {
                    unknown_since: None,
                }
            }
        }
        Ok(Some(Release::start(
            self.lock.clone(),
            &self.token,
            known.valid_until,
            settings,
            seed,
            now,
        )))
    }

    /// Takes in how a release that was started at `start` ended.
    pub(crate) fn released(&self, result: Result<(), Error>, start: Instant) -> Result<(), Error> {
        let mut known = self.known();
        let unknown_since = match known.state {
            State::Releasing { unknown_since } => unknown_since,
            State::Released => return Ok(()),
            State::Ours | State::Lost(_) => None,
        };
        let Err(error) = result else {
            known.state = State::Released;
            return Ok(());
        };
        known.state = match error.code() {
            // An earlier release of ours did it: its reply was lost while the lease was still valid.
            Code::Lost(Reason::Expired)
                if unknown_since.is_some_and(|since| since < known.valid_until) =>
            {
                State::Released
            }
            Code::Lost(_) => State::Lost(error.clone()),
            Code::OutcomeUnknown => State::Releasing {
                unknown_since: unknown_since.or(Some(start)),
            },
            _ if unknown_since.is_some() => State::Releasing { unknown_since },
            _ => State::Ours,
        };
        if matches!(known.state, State::Released) {
            Ok(())
        } else {
            Err(error)
        }
    }

    /// Until when it is ours, unless it is known not to be.
    fn valid_until(&self, known: &Known) -> Result<Instant, Error> {
        self.check_process()?;
        match &known.state {
            State::Ours => Ok(known.valid_until),
            State::Lost(error) => Err(error.clone()),
            State::Releasing { .. } | State::Released => {
                Err(self.lost(Reason::Expired, "it was released"))
            }
        }
    }

    fn check_process(&self) -> Result<(), Error> {
        if std::process::id() == self.process {
            return Ok(());
        }
        Err(self.lost(
            Reason::Forked,
            "it belongs to the process that forked this one",
        ))
    }

    fn lost(&self, reason: Reason, detail: impl Into<String>) -> Error {
        Error::new(Code::Lost(reason), detail).about(self.lock.key().as_bytes())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
