//! A lease as both clients hold it: what the core knows of it, in the process that acquired it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock_core::error::{Error, Reason};
use tallylock_core::lock::{Extend, Extending, Grant, Lease, LeaseTtl, Lock, Release};
use tallylock_core::settings::Settings;
use tallylock_core::step::Step;
use tallylock_core::time::{Instant, Ttl, Wait};
use tallylock_core::token::Seed;

/// A granted lock, with what has become of it since.
#[derive(Debug)]
pub(crate) struct Held {
    lock: Lock,
    fence: u64,
    /// The process that acquired it: a lease does not pass to a child.
    process: u32,
    lease: Mutex<Lease>,
}

/// An operation that was started, with its first step.
pub(crate) type Started<O, T> = (O, Step<Result<T, Error>>);

impl Held {
    pub(crate) fn new(lock: Lock, grant: Grant) -> Self {
        Self {
            lock: lock.clone(),
            fence: grant.fence,
            process: std::process::id(),
            lease: Mutex::new(Lease::new(lock, grant)),
        }
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// How long it is still ours by our clock.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        let left = self.lease().map_or(0, |lease| lease.remaining(now));
        Duration::from_millis(left)
    }

    /// `lost` if less than `margin`, or nothing, is left of it by our clock.
    pub(crate) fn ensure(&self, now: Instant, margin: Duration) -> Result<(), Error> {
        let margin = Wait::from_duration(margin).map_err(|error| self.about(error))?;
        self.lease()?.ensure(now, margin)
    }

    /// Starts to extend it to `ttl` from now.
    pub(crate) fn extend(
        &self,
        ttl: Duration,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Started<Extend, Instant>, Extending), Error> {
        let ttl = Ttl::from_duration(ttl)
            .and_then(LeaseTtl::new)
            .map_err(|error| self.about(error))?;
        self.lease()?.extend(ttl, settings, seed, now)
    }

    /// Takes in how an extend ended.
    pub(crate) fn extended(
        &self,
        extending: Extending,
        result: Result<Instant, Error>,
    ) -> Result<(), Error> {
        self.lease()?.extended(extending, result)
    }

    /// Starts to release it; nothing if that is done already.
    pub(crate) fn release(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<Option<Started<Release, ()>>, Error> {
        Ok(self.lease()?.release(settings, seed, now))
    }

    /// Takes in how a release ended.
    pub(crate) fn released(&self, result: Result<(), Error>) -> Result<(), Error> {
        self.lease()?.released(result)
    }

    /// The lease, for the process that acquired it.
    fn lease(&self) -> Result<MutexGuard<'_, Lease>, Error> {
        if std::process::id() != self.process {
            let detail = "it belongs to the process that forked this one";
            return Err(self.lock.lost(Reason::Forked, detail));
        }
        // Nothing panics while it holds the mutex.
        Ok(self.lease.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.lock.key().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use tallylock_core::error::Code;
    use tallylock_core::lock::Acquire;
    use tallylock_core::memory::Memory;
    use tallylock_core::step::{Event, Next, Operation};

    use super::*;
    use crate::spec;

    const TTL: Duration = Duration::from_secs(60);
    const START: Instant = Instant::from_millis(0);

    fn seed() -> Seed {
        Seed::new([7; 16])
    }

    fn held() -> Held {
        let lock = spec::lock(b"l", TTL).unwrap();
        let mut node = Memory::default();
        let settings = Settings::default();
        let (mut acquire, mut step) =
            Acquire::start(lock.clone(), Wait::NONE, &settings, seed(), START);
        loop {
            match step.next {
                Next::Done(grant) => return Held::new(lock, grant.unwrap()),
                Next::WaitUntil(_) => {
                    let call = &step.calls[0];
                    let replied = Event::Replied {
                        call: call.id,
                        outcome: node.execute(call),
                    };
                    step = acquire.handle(START, replied);
                }
            }
        }
    }

    #[test]
    fn a_child_process_holds_nothing() {
        let held = Held {
            process: std::process::id() + 1,
            ..held()
        };
        let settings = Settings::default();
        assert_eq!(held.remaining(START), Duration::ZERO);
        let forked = [
            held.ensure(START, Duration::ZERO).unwrap_err(),
            held.extend(TTL, &settings, seed(), START).unwrap_err(),
            held.release(&settings, seed(), START).unwrap_err(),
        ];
        assert!(
            forked
                .iter()
                .all(|error| error.code() == Code::Lost(Reason::Forked))
        );
    }

    #[test]
    fn a_margin_that_is_no_time_is_refused_by_name() {
        let error = held().ensure(START, Duration::MAX).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("\"l\""), "{error}");
    }
}
