//! Durations as JavaScript gives them: milliseconds, maybe with a fraction.

use js_sys::Number;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::LeaseTtl;
use tallylock_core::time::{LONGEST, Ttl, Wait};

pub(crate) fn ttl(ms: f64) -> Result<Ttl, Error> {
    least_one("ttl", ms)
}

/// A time of at least a millisecond.
pub(crate) fn least_one(what: &str, ms: f64) -> Result<Ttl, Error> {
    Ttl::from_millis(whole(what, ms, 1)?)
}

pub(crate) fn lease_ttl(ms: f64) -> Result<LeaseTtl, Error> {
    LeaseTtl::new(ttl(ms)?)
}

/// How long to wait; not at all if nothing is said.
pub(crate) fn wait(ms: Option<f64>) -> Result<Wait, Error> {
    ms.map_or(Ok(Wait::NONE), |ms| time("wait", ms))
}

/// A time that may be 0.
pub(crate) fn time(what: &str, ms: f64) -> Result<Wait, Error> {
    Wait::from_micros(whole(what, ms, 0)? * 1000)
}

/// Whole milliseconds, rounded up. NaN fails the comparisons.
///
/// JavaScript shows the number in the message: Rust's own way to do that is a twentieth of the wasm file.
fn whole(what: &str, ms: f64, least: u8) -> Result<i64, Error> {
    if f64::from(least) <= ms && ms <= LONGEST as f64 {
        return Ok(ms.ceil() as i64);
    }
    let shown = Number::from(ms)
        .to_string_with_radix(10)
        .map_or_else(|_| "that".into(), String::from);
    let detail = format!("{what} must be from {least} ms to 10 years (3650 days), not {shown} ms");
    Err(Error::new(Code::InvalidArgument, detail))
}
