//! Meters: adds that are summed in memory and flushed now and then. They are named by ids and stay until they are freed.
//!
//! What a flush has come to is four numbers, each a little-endian `u64`: sums settled, their units, sums that wait, sums that
//! were refused. What was refused is for each sum `[length u32][key][amount i64]` and an error as in
//! [`completion`](crate::completion).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

use tallylock::{Code, Error, Flushed, MeterOptions};

use crate::completion::{AtClose, Outcome, pack_bytes, pack_error, submit};
use crate::error::{CallError, about};
use crate::{argument, registry, runtime};

/// What a meter is made with; what is not given is the default that all languages share.
#[derive(Clone, Debug, uniffi::Record)]
pub struct MeterSettings {
    /// The TTL of its counters, in microseconds.
    pub ttl_us: i64,
    /// Whether a flush sets the TTL only where a counter has none.
    pub fixed: bool,
    /// How often is flushed, in microseconds.
    pub interval_us: Option<i64>,
    /// How many units, by their absolute values, are flushed at once.
    pub max_units: Option<i64>,
    /// How many sums are held at most.
    pub max_counters: Option<i64>,
    /// How long the server remembers what was flushed, in microseconds.
    pub remember_us: Option<i64>,
    /// The directory of the journal, as the system names it.
    pub journal: Option<Vec<u8>>,
}

/// Makes a meter in the background; its id comes under `ticket` as an integer: the one that the caller chose (at least 2^63 and
/// never used before), so that it can always be given to `meter_free`, or else a new one.
///
/// Fails with `invalid_argument` (also for a damaged journal), `busy` if another meter uses the journal, `unsupported`,
/// `unavailable`, `closed`.
#[uniffi::export]
pub fn submit_meter_open(
    client: u64,
    ticket: u64,
    meter: Option<u64>,
    settings: MeterSettings,
) -> Result<(), CallError> {
    let options = settings.options()?;
    let none = Arc::default();
    submit(
        client,
        ticket,
        none,
        AtClose::Ends,
        move |here| async move {
            let client = here.background().clone();
            // It reads the files of a journal.
            let made = runtime::on_a_thread(move || client.meter(options)).await?;
            Ok(Outcome::Meter(made, meter))
        },
    )
}

/// Adds to what a meter holds for a counter; sends nothing.
///
/// Fails with `invalid_argument`, `overflow`, `busy` if it holds as many sums as it may, `unavailable` if its journal can't be
/// written to, `closed`.
#[uniffi::export]
pub fn meter_add(meter: u64, key: &[u8], amount: i64) -> Result<(), CallError> {
    let add = || registry::meter(meter)?.add(key, amount);
    Ok(add().map_err(about(key))?)
}

/// Brings what a meter holds to the server; bytes come under `ticket` of `client`.
///
/// Fails with the code of the reason if something still waits, and with `closed`.
#[uniffi::export]
pub fn submit_meter_flush(client: u64, ticket: u64, meter: u64) -> Result<(), CallError> {
    let meter = registry::meter(meter)?;
    let none = Arc::default();
    submit(
        client,
        ticket,
        none,
        AtClose::RunsOnUnheard,
        move |_here| async move { Ok(Outcome::Bytes(pack(meter.flush().await?))) },
    )
}

/// Lets nothing more in and flushes once; bytes come under `ticket` of `client`. The id stays until it is freed.
///
/// Fails with the code of the reason if something is neither on the server nor in a journal, and with `closed` in a child made by
/// `fork`.
#[uniffi::export]
pub fn submit_meter_close(client: u64, ticket: u64, meter: u64) -> Result<(), CallError> {
    let meter = registry::meter(meter)?;
    let none = Arc::default();
    submit(
        client,
        ticket,
        none,
        AtClose::RunsOnUnheard,
        move |_here| async move { Ok(Outcome::Bytes(pack(meter.close().await?))) },
    )
}

/// `submit_meter_close` on the calling thread, for a meter whose client is closed: it sends nothing then.
#[uniffi::export]
pub fn meter_close(meter: u64) -> Result<Vec<u8>, CallError> {
    let meter = registry::meter(meter)?;
    Ok(pack(runtime::wait_for(meter.close())?))
}

/// Takes what the server refuses for good; none if there is none.
///
/// Fails with `unavailable` if the journal can't be written to: then it is held as before; and with `closed`.
#[uniffi::export]
pub fn meter_take_refused(meter: u64) -> Result<Vec<u8>, CallError> {
    let mut packed = Vec::new();
    for refused in registry::meter(meter)?.take_refused()? {
        pack_bytes(&mut packed, &refused.key);
        packed.extend(refused.amount.to_le_bytes());
        pack_error(&mut packed, refused.error.into());
    }
    Ok(packed)
}

/// Why the last flush left something waiting, as an error is packed; empty if it did not.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn meter_trouble(meter: u64) -> Result<Vec<u8>, CallError> {
    let mut packed = Vec::new();
    if let Some(trouble) = registry::meter(meter)?.trouble() {
        pack_error(&mut packed, trouble.into());
    }
    Ok(packed)
}

/// Frees the id, without a flush: what is held and not in a journal is lost. Freeing again does nothing.
#[uniffi::export]
pub fn meter_free(meter: u64) {
    registry::remove_meter(meter);
}

impl MeterSettings {
    fn options(self) -> Result<MeterOptions, Error> {
        let mut options = MeterOptions::new(argument::ttl(self.ttl_us)?)?;
        if self.fixed {
            options = options.fixed();
        }
        if let Some(interval) = self.interval_us {
            options = options.interval(duration("interval", interval)?)?;
        }
        if let Some(units) = self.max_units {
            options = options.max_units(count("max_units", units)?)?;
        }
        if let Some(counters) = self.max_counters {
            options = options.max_counters(count("max_counters", counters)?)?;
        }
        if let Some(remember) = self.remember_us {
            options = options.remembering(duration("remember", remember)?)?;
        }
        if let Some(journal) = self.journal {
            options = options.journal(OsString::from_vec(journal));
        }
        Ok(options)
    }
}

fn duration(what: &str, micros: i64) -> Result<Duration, Error> {
    argument::ttl(micros).map_err(|error| {
        let detail = error.detail().replacen("ttl", what, 1);
        Error::new(error.code(), detail)
    })
}

fn count<T: TryFrom<i64>>(what: &str, number: i64) -> Result<T, Error> {
    T::try_from(number).map_err(|_| {
        Error::new(
            Code::InvalidArgument,
            format!("{what} must be at least 1, not {number}"),
        )
    })
}

fn pack(flushed: Flushed) -> Vec<u8> {
    let Flushed {
        settled,
        units,
        waiting,
        refused,
    } = flushed;
    [settled, units, waiting, refused]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}
