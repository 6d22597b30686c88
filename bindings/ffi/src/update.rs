//! Reading a value, changing it in the caller's language, and writing it if nobody else has meanwhile.
//!
//! What was read is kept under an id, which is used up by the offer that is written or finds the key gone.

use tallylock::Offered;

use crate::completion::Outcome;
use crate::error::{CallError, about};
use crate::value::{submit_with_value, with_value};
use crate::{argument, registry};

/// Reads a value to change it, and gives the id of what was read; 0 if there is no value.
///
/// Fails like `value_get`.
#[uniffi::export]
pub fn update_begin(client: u64, key: &[u8]) -> Result<u64, CallError> {
    let read = with_value(client, key, |value| value.read_for_update())?;
    Ok(read.map_or(0, |read| registry::add_update(read, None)))
}

/// `update_begin` for a language that can be interrupted before it has seen the id: the caller chooses it, at least 2^63 and never
/// used before, and can always give it to `update_free`. Gives it, or 0 if there is no value.
#[uniffi::export]
pub fn update_begin_as(client: u64, key: &[u8], update: u64) -> Result<u64, CallError> {
    let read = with_value(client, key, |value| value.read_for_update())?;
    Ok(read.map_or(0, |read| registry::add_update(read, Some(update))))
}

/// What was read last. Fails with `closed` if the id names no update.
#[uniffi::export]
pub fn update_present(update: u64) -> Result<Vec<u8>, CallError> {
    Ok(registry::update(update)?.present().to_vec())
}

/// Offers a new value with its TTL. Gives 1 if it was written and 0 if the key is gone, and the id is used up; 2 if another
/// was faster, and the id stands for what is there now.
///
/// Fails, and uses the id up, with `conflict` if others were faster until the deadline, with `invalid_argument`, `closed` if the id
/// names no update, and like `value_compare_and_set`.
#[uniffi::export]
pub fn update_offer(
    client: u64,
    key: &[u8],
    update: u64,
    value: &[u8],
    ttl_us: i64,
) -> Result<u8, CallError> {
    let read = registry::take_update(update)?;
    let offered = with_value(client, key, |found| {
        found.offer(read, value, argument::ttl(ttl_us)?)
    })?;
    Ok(keep(update, offered))
}

/// Forgets what was read, for a caller whose own function failed. Forgetting again does nothing.
#[uniffi::export]
pub fn update_free(update: u64) {
    drop(registry::take_update(update));
}

/// `update_begin` in the background; an integer comes under `ticket`.
#[uniffi::export]
pub fn submit_update_begin(client: u64, ticket: u64, key: &[u8]) -> Result<(), CallError> {
    submit_with_value(client, ticket, key, |value| async move {
        Ok(Outcome::Update(value.read_for_update().await?, None))
    })
}

/// `update_begin_as` in the background; an integer comes under `ticket`, 0 if there is no value.
#[uniffi::export]
pub fn submit_update_begin_as(
    client: u64,
    ticket: u64,
    update: u64,
    key: &[u8],
) -> Result<(), CallError> {
    submit_with_value(client, ticket, key, move |value| async move {
        Ok(Outcome::Update(
            value.read_for_update().await?,
            Some(update),
        ))
    })
}

/// `update_offer` in the background; an integer comes under `ticket`.
#[uniffi::export]
pub fn submit_update_offer(
    client: u64,
    ticket: u64,
    key: &[u8],
    update: u64,
    value: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    let (read, value) = (registry::take_update(update)?, value.to_vec());
    let ttl = argument::ttl(ttl_us).map_err(about(key))?;
    submit_with_value(client, ticket, key, move |found| async move {
        Ok(Outcome::Offered(
            update,
            found.offer(read, value, ttl).await?,
        ))
    })
}

/// The number of what has become of an offer; what goes on keeps its id.
pub(crate) fn keep(id: u64, offered: Offered) -> u8 {
    match offered {
        Offered::Gone => 0,
        Offered::Written => 1,
        Offered::Overtaken(update) => {
            registry::keep_update(id, update);
            2
        }
    }
}
