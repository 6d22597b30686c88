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

#[cfg(test)]
mod tests {
    use tallylock_core::lock::Acquire;
    use tallylock_core::memory::Memory;
    use tallylock_core::step::{Event, Next, Operation};
    use tallylock_core::time::Wait;

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn seed() -> Seed {
        Seed::new([7; 16])
    }

    /// A lease of 60 s that was acquired at 0.
    fn held() -> Held {
        let lock = spec::lock(b"l", TTL).unwrap();
        let mut node = Memory::default();
        let (mut acquire, mut step) = Acquire::start(
            lock.clone(),
            Wait::NONE,
            &Settings::default(),
            seed(),
            at(0),
        );
        loop {
            match step.next {
                Next::Done(grant) => return Held::new(lock, grant.unwrap()),
                Next::WaitUntil(_) => {
                    let call = &step.calls[0];
                    let replied = Event::Replied {
                        call: call.id,
                        outcome: node.execute(call),
                    };
                    step = acquire.handle(at(0), replied);
                }
            }
        }
    }

    fn start_release(held: &Held, now: u64) {
        let started = held.release(&Settings::default(), seed(), at(now)).unwrap();
        assert!(started.is_some());
    }

    fn failure(code: Code) -> Result<(), Error> {
        Err(Error::new(code, "as the test has it"))
    }

    fn lost(reason: Reason) -> Code {
        Code::Lost(reason)
    }

    #[test]
    fn a_child_process_holds_nothing() {
        let held = Held {
            process: std::process::id() + 1,
            ..held()
        };
        let settings = Settings::default();
        assert_eq!(held.remaining(at(0)), Duration::ZERO);
        let forked = [
            held.ensure(at(0), Duration::ZERO).unwrap_err(),
            held.extend(TTL, &settings, seed(), at(0)).unwrap_err(),
            held.release(&settings, seed(), at(0)).unwrap_err(),
        ];
        assert!(
            forked
                .iter()
                .all(|error| error.code() == lost(Reason::Forked))
        );
    }

    #[test]
    fn a_release_that_was_done_by_its_lost_request_is_done() {
        let held = held();
        start_release(&held, 10);
        assert!(
            held.released(failure(Code::OutcomeUnknown), at(10))
                .is_err()
        );
        assert_eq!(held.remaining(at(20)), Duration::ZERO);
        start_release(&held, 20);
        assert_eq!(
            held.released(failure(lost(Reason::Expired)), at(20)),
            Ok(())
        );
        assert!(
            held.release(&Settings::default(), seed(), at(30))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_release_is_not_taken_for_done_where_another_may_have_ended_the_lease() {
        let taken = held();
        start_release(&taken, 10);
        assert!(
            taken
                .released(failure(Code::OutcomeUnknown), at(10))
                .is_err()
        );
        start_release(&taken, 20);
        let error = taken
            .released(failure(lost(Reason::TakenOver)), at(20))
            .unwrap_err();
        assert_eq!(error.code(), lost(Reason::TakenOver));

        let late = held();
        start_release(&late, 70_000);
        assert!(
            late.released(failure(Code::OutcomeUnknown), at(70_000))
                .is_err()
        );
        start_release(&late, 70_010);
        assert!(
            late.released(failure(lost(Reason::Expired)), at(70_010))
                .is_err()
        );
    }

    #[test]
    fn a_release_that_was_not_sent_leaves_the_lease_as_it_was() {
        let held = held();
        start_release(&held, 10);
        assert_eq!(
            held.remaining(at(10)),
            Duration::ZERO,
            "it is on its way out"
        );
        assert!(held.released(failure(Code::Unavailable), at(10)).is_err());
        held.ensure(at(10), Duration::from_secs(59)).unwrap();
    }

    #[test]
    fn an_extend_that_may_have_shortened_the_lease_is_believed_to_have() {
        let held = held();
        let short = Duration::from_secs(5);
        let settings = Settings::default();
        let (_, before) = held.extend(short, &settings, seed(), at(0)).unwrap();
        assert!(held.remaining(at(0)) < short);
        let unknown = Err(Error::new(Code::OutcomeUnknown, "as the test has it"));
        assert!(held.extended(unknown, before).is_err());
        assert!(held.remaining(at(0)) < short);

        let held = self::held();
        let (_, before) = held.extend(short, &settings, seed(), at(0)).unwrap();
        let not_sent = Err(Error::new(Code::Unavailable, "as the test has it"));
        assert!(held.extended(not_sent, before).is_err());
        held.ensure(at(0), Duration::from_secs(59)).unwrap();
    }

    #[test]
    fn what_the_server_said_is_remembered() {
        let held = held();
        let (_, before) = held
            .extend(TTL, &Settings::default(), seed(), at(0))
            .unwrap();
        let taken = Err(Error::new(lost(Reason::TakenOver), "as the test has it"));
        assert!(held.extended(taken, before).is_err());
        let error = held.ensure(at(0), Duration::ZERO).unwrap_err();
        assert_eq!(error.code(), lost(Reason::TakenOver));
    }
}
