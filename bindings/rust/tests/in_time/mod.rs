//! Failures that come when the time-out is over.

use std::thread;
use std::time::{Duration, Instant};

use tallylock::Error;

/// The time-out of the clients in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(300);

/// How much later than its time-out a call may end.
const LATENESS: Duration = Duration::from_millis(50);

/// Makes a call that must fail when its time-out is over: not earlier, and at most 50 ms later.
///
/// A busy machine is late with everything; how late, a thread tells that sleeps beside the call for just as long.
pub(crate) fn in_time<T>(call: impl FnOnce() -> Result<T, Error>) -> Error {
    let control = thread::spawn(|| {
        let begun = Instant::now();
        thread::sleep(TIMEOUT);
        begun.elapsed().saturating_sub(TIMEOUT)
    });
    let begun = Instant::now();
    let result = call();
    let elapsed = begun.elapsed();
    let machine = control.join().expect("a thread that only sleeps");
    let error = result.err().expect("a failure");
    assert!(
        elapsed + Duration::from_millis(5) >= TIMEOUT,
        "too early: {elapsed:?}, {error}"
    );
    // A future has two threads to wait for, and the control measures one of the moments only.
    let latest = TIMEOUT + LATENESS + 4 * machine;
    assert!(
        elapsed <= latest,
        "too late: {elapsed:?}, the machine is late by {machine:?}, {error}"
    );
    error
}
