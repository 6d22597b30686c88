//! Locks: acquiring. `ttl_us` is how long the lease lasts unless it is extended, in microseconds.

use std::sync::Arc;
use std::time::Duration;

use crate::completion::{AtClose, Outcome, submit};
use crate::error::{CallError, about};
use crate::lease::{Holder, Lease};
use crate::{argument, registry};

/// Says whether a lock could have this key and TTL, without any I/O.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn check_lock(key: &[u8], ttl_us: i64) -> Result<(), CallError> {
    Ok(argument::check_lease_ttl(key, ttl_us)?)
}

/// Tries once to take a lock and gives the lease's id, to be freed with `lease_free`.
///
/// Fails with `busy` if another holds it, and with `wrong_type`, `timeout`, `unavailable`, `read_only`, `forbidden`, `out_of_memory`,
/// `unsupported`, `closed`.
#[uniffi::export]
pub fn lock_acquire(client: u64, key: &[u8], ttl_us: i64) -> Result<u64, CallError> {
    Ok(registry::add_lease(acquire(client, key, ttl_us)?, None))
}

/// Takes a lock in the background, waiting for it at most `wait_us` microseconds (0: one try); a lease comes under `ticket`, to
/// be freed with `lease_free`. A call that is given up leaves no lock behind.
///
/// The error is one of `lock_acquire`; `busy` comes at the end of the wait.
#[uniffi::export]
pub fn submit_lock_acquire(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    wait_us: i64,
) -> Result<(), CallError> {
    submit_acquire(client, ticket, None, key, ttl_us, wait_us)
}

/// `submit_lock_acquire` with an id for the lease that the caller chose, as in `packed_lock_acquire`.
#[uniffi::export]
pub fn submit_lock_acquire_as(
    client: u64,
    ticket: u64,
    lease: u64,
    key: &[u8],
    ttl_us: i64,
    wait_us: i64,
) -> Result<(), CallError> {
    submit_acquire(client, ticket, Some(lease), key, ttl_us, wait_us)
}

pub(crate) fn acquire(client: u64, key: &[u8], ttl_us: i64) -> Result<Arc<Lease>, CallError> {
    let call = || {
        let ttl = argument::ttl(ttl_us)?;
        let here = registry::client(client)?;
        here.blocking()?.lock(key, ttl)?.acquire(Duration::ZERO)
    };
    let lease = call().map_err(about(key))?;
    Ok(Lease::new(key, Holder::Blocking(lease)))
}

fn submit_acquire(
    client: u64,
    ticket: u64,
    lease_id: Option<u64>,
    key: &[u8],
    ttl_us: i64,
    wait_us: i64,
) -> Result<(), CallError> {
    argument::check_lease_ttl(key, ttl_us)?;
    let ttl = argument::ttl(ttl_us)?;
    let wait = argument::wait(wait_us).map_err(about(key))?;
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    submit(
        client,
        ticket,
        about,
        AtClose::Ends,
        move |here| async move {
            let lock = here.background().await?.lock(&key, ttl)?;
            let lease = Lease::new(key, Holder::Background(lock.acquire(wait).await?));
            Ok(Outcome::Lease(lease, lease_id))
        },
    )
}
