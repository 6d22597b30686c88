//! Values: texts of any bytes that are changed only where they already are.

use std::future::Future;
use std::sync::Arc;

use tallylock::{Error, Value, blocking};

use crate::completion::{AtClose, Outcome, submit};
use crate::error::{CallError, about};
use crate::{argument, registry};

/// Says whether a value could have this key, without any I/O.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn check_value(key: &[u8]) -> Result<(), CallError> {
    Ok(argument::check_key(key)?)
}

/// Reads a value, or nothing if there is none.
///
/// Fails with `wrong_type`, `timeout`, `unavailable`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn value_get(client: u64, key: &[u8]) -> Result<Option<Vec<u8>>, CallError> {
    with_value(client, key, |found| found.get())
}

/// Replaces a value and sets its TTL if it is there; says whether it was.
///
/// Fails with `wrong_type`, and those of every write: `timeout`, `unavailable`, `outcome_unknown`, `read_only`, `forbidden`,
/// `out_of_memory`, `unsupported`, `closed`.
#[uniffi::export]
pub fn value_replace_if_present(
    client: u64,
    key: &[u8],
    value: &[u8],
    ttl_us: i64,
) -> Result<bool, CallError> {
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    with_value(client, key, |found| found.replace_if_present(value, ttl))
}

/// Sets the TTL of a value if it is there; says whether it was. Fails like `value_replace_if_present`.
#[uniffi::export]
pub fn value_touch(client: u64, key: &[u8], ttl_us: i64) -> Result<bool, CallError> {
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    with_value(client, key, |found| found.touch(ttl))
}

/// Replaces a value and sets its TTL if it is `expected`; says whether it was. Fails like `value_replace_if_present`.
#[uniffi::export]
pub fn value_compare_and_set(
    client: u64,
    key: &[u8],
    expected: &[u8],
    value: &[u8],
    ttl_us: i64,
) -> Result<bool, CallError> {
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    with_value(client, key, |found| {
        found.compare_and_set(expected, value, ttl)
    })
}

/// `value_get` in the background; bytes or nothing come under `ticket`.
#[uniffi::export]
pub fn submit_value_get(client: u64, ticket: u64, key: &[u8]) -> Result<(), CallError> {
    submit_with_value(client, ticket, key, |found| async move {
        Ok(found.get().await?.map_or(Outcome::Nothing, Outcome::Bytes))
    })
}

/// `value_replace_if_present` in the background; a truth comes under `ticket`.
#[uniffi::export]
pub fn submit_value_replace_if_present(
    client: u64,
    ticket: u64,
    key: &[u8],
    value: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    let (value, ttl) = (value.to_vec(), argument::ttl(ttl_us).map_err(about(key))?);
    submit_with_value(client, ticket, key, move |found| async move {
        Ok(Outcome::Truth(found.replace_if_present(value, ttl).await?))
    })
}

/// `value_touch` in the background; a truth comes under `ticket`.
#[uniffi::export]
pub fn submit_value_touch(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    submit_with_value(client, ticket, key, move |found| async move {
        Ok(Outcome::Truth(found.touch(ttl).await?))
    })
}

/// `value_compare_and_set` in the background; a truth comes under `ticket`.
#[uniffi::export]
pub fn submit_value_compare_and_set(
    client: u64,
    ticket: u64,
    key: &[u8],
    expected: &[u8],
    value: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    let (expected, value, ttl) = (
        expected.to_vec(),
        value.to_vec(),
        argument::ttl(ttl_us).map_err(about(key))?,
    );
    submit_with_value(client, ticket, key, move |found| async move {
        Ok(Outcome::Truth(
            found.compare_and_set(expected, value, ttl).await?,
        ))
    })
}

/// Runs a verb on the calling thread.
pub(crate) fn with_value<T>(
    client: u64,
    key: &[u8],
    verb: impl FnOnce(blocking::Value) -> Result<T, Error>,
) -> Result<T, CallError> {
    let call = || verb(registry::client(client)?.blocking().value(key)?);
    Ok(call().map_err(about(key))?)
}

/// Runs a verb in the background.
pub(crate) fn submit_with_value<F>(
    client: u64,
    ticket: u64,
    key: &[u8],
    verb: impl FnOnce(Value) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    argument::check_key(key)?;
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    submit(
        client,
        ticket,
        about,
        AtClose::RunsOn,
        move |here| async move { verb(here.background().value(key)?).await },
    )
}
