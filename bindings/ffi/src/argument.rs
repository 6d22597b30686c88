//! What callers give, checked before any I/O. Durations cross the boundary as microseconds in an `i64`.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::lock::{Keeping, LeaseTtl};
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

/// What a lock is opened for, besides its key.
#[derive(Clone, Copy)]
pub(crate) struct LockTerms {
    pub(crate) ttl: Duration,
    pub(crate) keeping: Keeping,
}

impl LockTerms {
    /// For an interval: a third of the TTL, or none.
    const THIRD: i64 = 0;
    pub(crate) const NEVER: i64 = -1;

    /// How long a lease lasts, after how long it is renewed, and for how long at most (0 for as long as it is held); or
    /// `invalid_argument`, also if the key is no good.
    pub(crate) fn new(
        key: &[u8],
        ttl_us: i64,
        interval_us: i64,
        max_hold_us: i64,
    ) -> Result<Self, Error> {
        Key::new(key)?;
        Self::of(ttl_us, interval_us, max_hold_us).map_err(|error| error.about(key))
    }

    fn of(ttl_us: i64, interval_us: i64, max_hold_us: i64) -> Result<Self, Error> {
        let ttl = LeaseTtl::new(Ttl::from_micros(ttl_us)?)?;
        let keeping = Keeping::default();
        let keeping = match interval_us {
            Self::THIRD => keeping,
            Self::NEVER => keeping.never(),
            interval_us => keeping.every(Ttl::from_micros(interval_us)?, ttl)?,
        };
        let keeping = match max_hold_us {
            0 => keeping,
            max_hold_us => keeping.at_most(Ttl::from_micros(max_hold_us)?),
        };
        Ok(Self {
            ttl: Duration::from_millis(ttl.as_millis()),
            keeping,
        })
    }
}

/// A duration in microseconds.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
