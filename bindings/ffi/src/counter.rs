//! Counters. `ttl_us` is the time to live that a write gives the counter, in microseconds.

use std::future::Future;
use std::sync::Arc;

use tallylock::{Counter, Error, blocking};

use crate::completion::{AtClose, Outcome, submit};
use crate::error::{CallError, about};
use crate::{argument, registry};

/// Says whether a counter could have this key and TTL, without any I/O.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn check_counter(key: &[u8], ttl_us: i64) -> Result<(), CallError> {
    Ok(argument::check_ttl(key, ttl_us)?)
}

/// Adds to a counter and gives its total. The TTL is set on every add, or, if `fixed`, only where the counter has none.
///
/// Fails with `wrong_type`, `not_an_integer`, `overflow`, and those of every write: `timeout`, `unavailable`, `outcome_unknown`,
/// `read_only`, `forbidden`, `out_of_memory`, `unsupported`, `closed`.
#[uniffi::export]
pub fn counter_add(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    fixed: bool,
    amount: i64,
) -> Result<i64, CallError> {
    with_counter(client, key, ttl_us, |counter| {
        let counter = if fixed { counter.fixed() } else { counter };
        counter.add(amount)
    })
}

/// Reads a counter: its total, or nothing if there is none.
///
/// Fails with `wrong_type`, `not_an_integer`, `timeout`, `unavailable`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn counter_read(client: u64, key: &[u8], ttl_us: i64) -> Result<Option<i64>, CallError> {
    with_counter(client, key, ttl_us, |counter| counter.read())
}

/// Takes what a counter holds and leaves 0 with the TTL that it has; nothing if there is none. Fails like `counter_add`.
#[uniffi::export]
pub fn counter_drain(client: u64, key: &[u8], ttl_us: i64) -> Result<Option<i64>, CallError> {
    with_counter(client, key, ttl_us, |counter| counter.drain())
}

/// Deletes a counter and gives what it held; nothing if there is none. Fails like `counter_add`.
#[uniffi::export]
pub fn counter_finish(client: u64, key: &[u8], ttl_us: i64) -> Result<Option<i64>, CallError> {
    with_counter(client, key, ttl_us, |counter| counter.finish())
}

/// `counter_add` in the background; an integer comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_add(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    fixed: bool,
    amount: i64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, move |counter| async move {
        let counter = if fixed { counter.fixed() } else { counter };
        Ok(Outcome::Integer(counter.add(amount).await?))
    })
}

/// `counter_read` in the background; an integer or nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_read(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, |counter| async move {
        Ok(counter.read().await?.into())
    })
}

/// `counter_drain` in the background; an integer or nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_drain(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, |counter| async move {
        Ok(counter.drain().await?.into())
    })
}

/// `counter_finish` in the background; an integer or nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_finish(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, |counter| async move {
        Ok(counter.finish().await?.into())
    })
}

/// Runs a verb on the calling thread.
pub(crate) fn with_counter<T>(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    verb: impl FnOnce(blocking::Counter) -> Result<T, Error>,
) -> Result<T, CallError> {
    let call = || {
        let ttl = argument::ttl(ttl_us)?;
        verb(registry::client(client)?.blocking().counter(key, ttl)?)
    };
    Ok(call().map_err(about(key))?)
}

/// Runs a verb in the background.
pub(crate) fn submit_with_counter<F>(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    verb: impl FnOnce(Counter) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    argument::check_ttl(key, ttl_us)?;
    let ttl = argument::ttl(ttl_us)?;
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    submit(
        client,
        ticket,
        about,
        AtClose::RunsOn,
        move |here| async move { verb(here.background().counter(key, ttl)?).await },
    )
}
