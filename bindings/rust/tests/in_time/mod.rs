//! Failures that come when the time-out is over.
#![allow(dead_code, reason = "each scenario uses its own part of this")]

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tallylock::Error;

/// The time-out of the clients in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

/// How much later than its time-out a call may end.
const LATENESS: Duration = Duration::from_millis(50);

/// How often a call is made if it is late: on a busy machine everything is late now and then.
const ATTEMPTS: usize = 10;

/// Makes a call that must fail when its time-out is over, never earlier and at most 50 ms later, and gives its error.
///
/// One that is late is made again: it must be in time once, and must fail with the same code each time.
pub(crate) fn in_time<T>(mut call: impl FnMut() -> Result<T, Error>) -> Error {
    let mut late = Vec::new();
    loop {
        let timer = Timer::start(TIMEOUT);
        let error = call().err().expect("a failure");
        let lateness = timer.lateness().expect("a call that takes its time");
        if lateness <= LATENESS {
            return error;
        }
        late.push(lateness);
        assert!(late.len() < ATTEMPTS, "always too late: {late:?}, {error}");
    }
}

/// A thread that does nothing but sleep for a time: where it wakes late, so does everything else on this machine.
#[derive(Debug)]
pub(crate) struct Timer {
    begun: Instant,
    time: Duration,
    sleeper: JoinHandle<Duration>,
}

impl Timer {
    pub(crate) fn start(time: Duration) -> Self {
        let begun = Instant::now();
        let sleeper = thread::spawn(move || {
            thread::sleep(time.saturating_sub(begun.elapsed()));
            begun.elapsed()
        });
        Self {
            begun,
            time,
            sleeper,
        }
    }

    /// How much later it is than when the thread woke; an error if its time is not over.
    pub(crate) fn lateness(self) -> Result<Duration, String> {
        let took = self.begun.elapsed();
        // Deadlines are known to a millisecond.
        if took + Duration::from_millis(5) < self.time {
            return Err(format!("too early: {took:?} instead of {:?}", self.time));
        }
        Ok(took.saturating_sub(self.sleeper.join().expect("a timer")))
    }
}
