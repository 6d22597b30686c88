//! What a meter is made with.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use tallylock_core::counter::Expiry;
use tallylock_core::error::{Code, Error};
use tallylock_core::meter::MeterSettings;
use tallylock_core::time::Ttl;

/// What a [`Meter`](crate::Meter) is made with: the TTL of its counters and, where the defaults do not suit, when it flushes, how
/// much it holds, and where it writes down what it counts.
///
/// ```
/// use std::time::Duration;
/// use tallylock::{MeterOptions, blocking::Client};
///
/// let client = Client::connect("memory://")?;
/// let options = MeterOptions::new(Duration::from_secs(900))?.interval(Duration::from_millis(200))?;
/// let meter = client.meter(options)?;
/// meter.add("session:42:billableSecondsPending", 30)?;
/// meter.close()?;
/// # Ok::<(), tallylock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeterOptions {
    pub(crate) settings: MeterSettings,
    pub(crate) journal: Option<PathBuf>,
}

impl MeterOptions {
    /// Options for counters that each flush gives `ttl` to live.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn new(ttl: Duration) -> Result<Self, Error> {
        Ok(Self {
            settings: MeterSettings::new(Ttl::from_duration(ttl)?),
            journal: None,
        })
    }

    /// Sets the TTL of a counter only if it has none, so that it ends a TTL after it began; each flush sets it anew if not said.
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.settings.terms.expiry = Expiry::Fixed;
        self
    }

    /// Sets how often what has gathered is flushed; every second if not set.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn interval(mut self, interval: Duration) -> Result<Self, Error> {
        self.settings.interval = time("interval", interval)?;
        Ok(self)
    }

    /// Flushes as soon as so many units, by their absolute values, have gathered; only the time counts if not set.
    ///
    /// # Errors
    /// `invalid_argument` if it is 0.
    pub fn max_units(mut self, units: u64) -> Result<Self, Error> {
        self.settings.max_units = Some(NonZeroU64::new(units).ok_or_else(|| zero("max_units"))?);
        Ok(self)
    }

    /// Sets how many sums are held at most, those included that wait for the server or were refused by it; 100,000 if not set.
    ///
    /// # Errors
    /// `invalid_argument` if it is 0.
    pub fn max_counters(mut self, counters: usize) -> Result<Self, Error> {
        self.settings.max_counters =
            NonZeroUsize::new(counters).ok_or_else(|| zero("max_counters"))?;
        Ok(self)
    }

    /// Sets how long the server remembers what was flushed, at each counter; an hour if not set. What could not be flushed
    /// with a certain end for so long is given up as `outcome_unknown`.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years; that it is too short for the client's time-out is said by
    /// [`Client::meter`](crate::Client::meter).
    pub fn remembering(mut self, time: Duration) -> Result<Self, Error> {
        self.settings.terms.remember = self::time("remember", time)?;
        Ok(self)
    }

    /// Writes each add down in this directory before it returns, so that the next meter with the same journal counts what this
    /// one did not come to; nothing is written down if not set. The directory is made if it is not there.
    #[must_use]
    pub fn journal(mut self, directory: impl Into<PathBuf>) -> Self {
        self.journal = Some(directory.into());
        self
    }
}

/// Such a duration, refused by its own name.
fn time(what: &str, duration: Duration) -> Result<Ttl, Error> {
    Ttl::from_duration(duration)
        .map_err(|error| Error::new(error.code(), error.detail().replacen("ttl", what, 1)))
}

fn zero(what: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!("{what} must be at least 1, not 0"),
    )
}
