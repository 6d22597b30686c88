//! Guarded values: writes that refuse a holder who was overtaken. What they can be opened with is what `check_value` says.

use std::future::Future;
use std::sync::Arc;

use tallylock::{Error, Guarded, blocking};

use crate::completion::{AtClose, Outcome, submit};
use crate::error::{CallError, about};
use crate::{argument, registry};

/// Writes a value and sets its TTL for the holder of a lock with this fence.
///
/// Fails with `fenced_off` if a higher fence was seen there, `wrong_type`, and those of every write: `timeout`, `unavailable`,
/// `outcome_unknown`, `read_only`, `forbidden`, `out_of_memory`, `unsupported`, `closed`.
#[uniffi::export]
pub fn guarded_set(
    client: u64,
    key: &[u8],
    value: &[u8],
    fence: u64,
    ttl_us: i64,
) -> Result<(), CallError> {
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    with_guarded(client, key, |found| found.set(value, fence, ttl))
}

/// Deletes a value for the holder of a lock with this fence; says whether there was one. Fails like `guarded_set`.
#[uniffi::export]
pub fn guarded_delete(client: u64, key: &[u8], fence: u64) -> Result<bool, CallError> {
    with_guarded(client, key, |found| found.delete(fence))
}

/// `guarded_set` in the background; nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_guarded_set(
    client: u64,
    ticket: u64,
    key: &[u8],
    value: &[u8],
    fence: u64,
    ttl_us: i64,
) -> Result<(), CallError> {
    let (value, ttl) = (value.to_vec(), argument::ttl(ttl_us).map_err(about(key))?);
    submit_with_guarded(client, ticket, key, move |found| async move {
        found.set(value, fence, ttl).await?;
        Ok(Outcome::Nothing)
    })
}

/// `guarded_delete` in the background; a truth comes under `ticket`.
#[uniffi::export]
pub fn submit_guarded_delete(
    client: u64,
    ticket: u64,
    key: &[u8],
    fence: u64,
) -> Result<(), CallError> {
    submit_with_guarded(client, ticket, key, move |found| async move {
        Ok(Outcome::Truth(found.delete(fence).await?))
    })
}

fn with_guarded<T>(
    client: u64,
    key: &[u8],
    verb: impl FnOnce(blocking::Guarded) -> Result<T, Error>,
) -> Result<T, CallError> {
    let call = || verb(registry::client(client)?.blocking().guarded(key)?);
    Ok(call().map_err(about(key))?)
}

fn submit_with_guarded<F>(
    client: u64,
    ticket: u64,
    key: &[u8],
    verb: impl FnOnce(Guarded) -> F + Send + 'static,
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
        move |here| async move { verb(here.background().guarded(key)?).await },
    )
}
