//! What callers give, checked before any I/O. Durations cross the boundary as microseconds in an `i64`.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::lock::LeaseTtl;
use tallylock_core::time::{Ttl, Wait};

/// A TTL of that many microseconds, or `invalid_argument`.
pub(crate) fn ttl(micros: i64) -> Result<Duration, Error> {
    Ok(Duration::from_millis(Ttl::from_micros(micros)?.as_millis()))
}

/// A wait of that many microseconds, or `invalid_argument`.
pub(crate) fn wait(micros: i64) -> Result<Duration, Error> {
    Ok(Duration::from_millis(
        Wait::from_micros(micros)?.as_millis(),
    ))
}

/// A TTL of that many microseconds, or nothing for 0: the default is to hold.
pub(crate) fn choice(micros: i64) -> Result<Option<Duration>, Error> {
    if micros == 0 {
        return Ok(None);
    }
    let millis = Ttl::from_micros(micros)?.as_millis();
    Ok(Some(Duration::from_millis(millis)))
}

/// Whether these bytes can be a key, or `invalid_argument`.
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    Key::new(key)?;
    Ok(())
}

/// Whether this key and a TTL of that many microseconds go together in a counter, or `invalid_argument`.
pub(crate) fn check_ttl(key: &[u8], micros: i64) -> Result<(), Error> {
    Key::new(key)?;
    Ttl::from_micros(micros).map_err(|error| error.about(key))?;
    Ok(())
}

/// Whether this key and a TTL of that many microseconds go together in a lock, or `invalid_argument`.
pub(crate) fn check_lease_ttl(key: &[u8], micros: i64) -> Result<(), Error> {
    Key::new(key)?;
    Ttl::from_micros(micros)
        .and_then(LeaseTtl::new)
        .map_err(|error| error.about(key))?;
    Ok(())
}

/// A duration in microseconds.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
