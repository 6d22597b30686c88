//! What an operator does to a lock: look at its holder, and take it away. `ttl_us` is that of the lock's handle.
//!
//! Results with parts come as bytes, little-endian, none of them if nobody holds the lock, or nothing was stolen:
//!
//! | result | bytes |
//! | --- | --- |
//! | holder | `[remaining_us i64][has a fence u8][fence u64][length u32][token][length u32][label]`, -1 for a lock without a TTL, no label for none |
//! | stolen | `[fence u64][length u32][message]`: what the caller's language is to log |

use std::future::Future;
use std::sync::Arc;

use tallylock::{Error, Holder, Lock, Stolen, blocking};

use crate::argument::LockTerms;
use crate::completion::{AtClose, Outcome, pack_bytes, submit};
use crate::error::{CallError, about};
use crate::{argument, registry};

/// Tells who holds a lock; gives `holder`.
///
/// Fails with `wrong_type`, `timeout`, `unavailable`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn lock_inspect(client: u64, key: &[u8], ttl_us: i64) -> Result<Vec<u8>, CallError> {
    with_lock(client, key, ttl_us, |lock| Ok(pack_holder(lock.inspect()?)))
}

/// Takes a lock away from the holder of the token `expected`, for a reason in UTF-8; gives `stolen`.
///
/// Fails with `invalid_argument` if the reason says nothing, `wrong_type`, `not_an_integer`, and those of every write: `timeout`,
/// `unavailable`, `outcome_unknown`, `read_only`, `forbidden`, `out_of_memory`, `unsupported`, `closed`.
#[uniffi::export]
pub fn lock_steal(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    expected: &[u8],
    reason: &[u8],
) -> Result<Vec<u8>, CallError> {
    with_lock(client, key, ttl_us, |lock| {
        let reason = String::from_utf8_lossy(reason);
        Ok(pack_stolen(lock.steal(expected, &reason)?))
    })
}

/// `lock_inspect` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_lock_inspect(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    submit_with_lock(client, ticket, key, ttl_us, |lock| async move {
        Ok(Outcome::Bytes(pack_holder(lock.inspect().await?)))
    })
}

/// `lock_steal` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_lock_steal(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    expected: &[u8],
    reason: &[u8],
) -> Result<(), CallError> {
    let (expected, reason) = (
        expected.to_vec(),
        String::from_utf8_lossy(reason).into_owned(),
    );
    submit_with_lock(client, ticket, key, ttl_us, move |lock| async move {
        Ok(Outcome::Bytes(pack_stolen(
            lock.steal(expected, &reason).await?,
        )))
    })
}

fn with_lock<T>(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    verb: impl FnOnce(blocking::Lock) -> Result<T, Error>,
) -> Result<T, CallError> {
    let call = || {
        let ttl = argument::ttl(ttl_us)?;
        verb(registry::client(client)?.blocking().lock(key, ttl)?)
    };
    Ok(call().map_err(about(key))?)
}

fn submit_with_lock<F>(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    verb: impl FnOnce(Lock) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let ttl = LockTerms::new(key, ttl_us, LockTerms::NEVER, 0)?.ttl;
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    submit(
        client,
        ticket,
        about,
        AtClose::RunsOn,
        move |here| async move { verb(here.background().lock(key, ttl)?).await },
    )
}

fn pack_holder(holder: Option<Holder>) -> Vec<u8> {
    let mut packed = Vec::new();
    if let Some(holder) = holder {
        let remaining = holder.remaining.map_or(-1, argument::micros);
        packed.extend(remaining.to_le_bytes());
        packed.push(u8::from(holder.fence.is_some()));
        packed.extend(holder.fence.unwrap_or_default().to_le_bytes());
        pack_bytes(&mut packed, &holder.token);
        pack_bytes(&mut packed, holder.label().unwrap_or_default().as_bytes());
    }
    packed
}

fn pack_stolen(stolen: Option<Stolen>) -> Vec<u8> {
    let mut packed = Vec::new();
    if let Some(Stolen { fence, message }) = stolen {
        packed.extend(fence.to_le_bytes());
        pack_bytes(&mut packed, message.as_bytes());
    }
    packed
}
