//! Failures that come when the time-out is over.

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
        let begun = Instant::now();
        let result = call();
        let elapsed = begun.elapsed();
        let error = result.err().expect("a failure");
        assert!(
            elapsed + Duration::from_millis(5) >= TIMEOUT,
            "too early: {elapsed:?}, {error}"
        );
        if elapsed <= TIMEOUT + LATENESS {
            return error;
        }
        late.push(elapsed);
        assert!(late.len() < ATTEMPTS, "always too late: {late:?}, {error}");
    }
}
