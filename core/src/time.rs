//! Points in time and durations, in whole milliseconds.

use core::time::Duration;

use crate::error::{Code, Error};

/// A point on the caller's monotonic clock, in milliseconds since a moment of the caller's choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(u64);

impl Instant {
    /// The last point there is.
    pub(crate) const LAST: Self = Self(u64::MAX);

    /// The point `millis` milliseconds after the clock's own beginning.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the clock's own beginning.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The point `millis` milliseconds later; the last point there is if that is out of range.
    #[must_use]
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The point `millis` milliseconds earlier; the clock's beginning if that is out of range.
    #[must_use]
    pub const fn minus(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Milliseconds from `earlier` to this point; 0 if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The longest TTL or wait: 10 years of 365 days, in milliseconds.
pub const LONGEST: u64 = 10 * 365 * 24 * 3600 * 1000;

/// A time to live that a server accepts: 1 ms to 10 years, in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ttl(u64);

impl Ttl {
    /// A TTL of `millis` milliseconds, or `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn from_millis(millis: i64) -> Result<Self, Error> {
        match u64::try_from(millis) {
            Ok(millis @ 1..=LONGEST) => Ok(Self(millis)),
            _ => Err(refuse("ttl", "1 ms", format_args!("{millis} ms"))),
        }
    }

    /// A TTL that is known to be one when this is compiled.
    pub(crate) const fn known(millis: u64) -> Self {
        assert!(1 <= millis && millis <= LONGEST, "no TTL");
        Self(millis)
    }

    /// A TTL of `millis` milliseconds, or the shortest or longest there is.
    pub(crate) const fn nearest(millis: u64) -> Self {
        match millis {
            0 => Self(1),
            LONGEST.. => Self(LONGEST),
            _ => Self(millis),
        }
    }

    /// A TTL of `micros` microseconds, rounded up to whole milliseconds; `invalid_argument` outside 1 ms and 10 years.
    pub fn from_micros(micros: i64) -> Result<Self, Error> {
        if micros < 1000 {
            return Err(refuse("ttl", "1 ms", format_args!("{micros} us")));
        }
        // `i64::div_ceil` is not stable.
        Self::from_millis(micros / 1000 + i64::from(micros % 1000 != 0))
    }

    /// A TTL of `duration`, rounded up to whole milliseconds; `invalid_argument` outside 1 ms and 10 years.
    pub fn from_duration(duration: Duration) -> Result<Self, Error> {
        if duration < Duration::from_millis(1) {
            return Err(refuse("ttl", "1 ms", format_args!("{duration:?}")));
        }
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Self::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// A TTL of `millis` milliseconds, rounded up; `invalid_argument` outside 1 ms and 10 years, and for NaN.
    pub fn from_millis_f64(millis: f64) -> Result<Self, Error> {
        whole_millis(millis, 1.0)
            .map(Self)
            .ok_or_else(|| refuse("ttl", "1 ms", format_args!("{millis} ms")))
    }

    /// The TTL in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

/// How long a caller is willing to wait: 0 to 10 years, in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Wait(u64);

impl Wait {
    /// Not to wait at all.
    pub const NONE: Self = Self(0);

    /// A wait of `micros` microseconds, rounded up; `invalid_argument` if negative or longer than 10 years.
    pub fn from_micros(micros: i64) -> Result<Self, Error> {
        match u64::try_from(micros) {
            Ok(micros) if micros.div_ceil(1000) <= LONGEST => Ok(Self(micros.div_ceil(1000))),
            _ => Err(refuse("wait", "0 ms", format_args!("{micros} us"))),
        }
    }

    /// A wait of `duration`, rounded up to whole milliseconds; `invalid_argument` if longer than 10 years.
    pub fn from_duration(duration: Duration) -> Result<Self, Error> {
        match u64::try_from(duration.as_nanos().div_ceil(1_000_000)) {
            Ok(millis @ 0..=LONGEST) => Ok(Self(millis)),
            _ => Err(refuse("wait", "0 ms", format_args!("{duration:?}"))),
        }
    }

    /// A wait of `millis` milliseconds, rounded up; `invalid_argument` for NaN, negative or longer than 10 years.
    pub fn from_millis_f64(millis: f64) -> Result<Self, Error> {
        whole_millis(millis, 0.0)
            .map(Self)
            .ok_or_else(|| refuse("wait", "0 ms", format_args!("{millis} ms")))
    }

    /// The wait in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

/// What a lease of this TTL loses to clocks that run at different speeds: a hundredth and 2 ms, in milliseconds.
pub const fn drift(ttl: Ttl) -> u64 {
    ttl.0 / 100 + 2
}

/// A number of milliseconds rounded up, if it is from `least` to the longest; NaN fails both comparisons.
#[allow(
    clippy::cast_precision_loss,
    reason = "the longest duration is far below 2^53"
)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds were just checked"
)]
fn whole_millis(millis: f64, least: f64) -> Option<u64> {
    (millis >= least && millis <= LONGEST as f64).then(|| millis.ceil() as u64)
}

fn refuse(what: &str, least: &str, got: core::fmt::Arguments<'_>) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!("{what} must be from {least} to 10 years (3650 days), not {got}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_is_rounded_up_and_bounded() {
        assert_eq!(Ttl::from_micros(1000).unwrap().as_millis(), 1);
        assert_eq!(Ttl::from_micros(1001).unwrap().as_millis(), 2);
        assert_eq!(Ttl::from_millis_f64(1.2).unwrap().as_millis(), 2);
        assert_eq!(
            Ttl::from_duration(Duration::from_nanos(1_000_001))
                .unwrap()
                .as_millis(),
            2
        );
        let longest = i64::try_from(LONGEST).unwrap();
        assert_eq!(Ttl::from_millis(longest).unwrap().as_millis(), LONGEST);
        for bad in [i64::MIN, -1, 0, longest + 1, i64::MAX] {
            assert_eq!(
                Ttl::from_millis(bad).unwrap_err().code(),
                Code::InvalidArgument
            );
        }
        for bad in [i64::MIN, -1000, 0, 999, longest * 1000 + 1, i64::MAX] {
            assert_eq!(
                Ttl::from_micros(bad).unwrap_err().code(),
                Code::InvalidArgument
            );
        }
        for bad in [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.999,
            315_360_000_001.0,
        ] {
            assert_eq!(
                Ttl::from_millis_f64(bad).unwrap_err().code(),
                Code::InvalidArgument
            );
        }
    }

    #[test]
    fn a_wait_may_be_zero_but_not_negative() {
        assert_eq!(Wait::from_micros(0).unwrap(), Wait::NONE);
        assert_eq!(Wait::from_micros(1).unwrap().as_millis(), 1);
        assert!(Wait::from_micros(-1).is_err());
        assert!(Wait::from_millis_f64(f64::NAN).is_err());
        assert!(Wait::from_millis_f64(-0.5).is_err());
    }

    #[test]
    fn drift_is_subtracted_from_every_ttl() {
        assert_eq!(drift(Ttl::from_millis(30_000).unwrap()), 302);
        assert_eq!(drift(Ttl::from_millis(3).unwrap()), 2);
    }
}
