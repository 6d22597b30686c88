//! Durations as JavaScript gives them: milliseconds, maybe with a fraction.

use tallylock_core::error::{Code, Error};
use tallylock_core::lock::LeaseTtl;
use tallylock_core::time::{Ttl, Wait};

pub(crate) fn ttl(ms: f64) -> Result<Ttl, Error> {
    Ttl::from_millis_f64(ms)
}

pub(crate) fn lease_ttl(ms: f64) -> Result<LeaseTtl, Error> {
    LeaseTtl::new(Ttl::from_millis_f64(ms)?)
}

/// How long to wait; not at all if nothing is said.
pub(crate) fn wait(ms: Option<f64>) -> Result<Wait, Error> {
    ms.map_or(Ok(Wait::NONE), Wait::from_millis_f64)
}

/// What must be left of a lease, in milliseconds.
pub(crate) fn margin(ms: f64) -> Result<f64, Error> {
    // NaN fails the comparison.
    if ms >= 0.0 {
        Ok(ms)
    } else {
        Err(Error::new(
            Code::InvalidArgument,
            format!("a margin must be at least 0 ms, not {ms} ms"),
        ))
    }
}
