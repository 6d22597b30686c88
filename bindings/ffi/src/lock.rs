//! Locks: acquiring and adopting.
//!
//! In microseconds: `ttl_us` is how long a lease lasts unless it is renewed or extended, `interval_us` after how long it is
//! renewed (0: a third of the TTL, -1: not at all), `max_hold_us` for how long at most (0: for as long as it is held).

use std::sync::Arc;
use std::time::Duration;

use tallylock_core::lock::already_held;

use crate::argument::LockTerms;
use crate::completion::{AtClose, Outcome, submit, submit_begun};
use crate::error::{CallError, about};
use crate::lease::{Holder, Lease};
use crate::{argument, registry};

/// Says whether a lock could have this key, TTL, interval and longest hold, without any I/O.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn check_lock(
    key: &[u8],
    ttl_us: i64,
    interval_us: i64,
    max_hold_us: i64,
) -> Result<(), CallError> {
    LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    Ok(())
}

/// Makes sure that a handle does not hold its lock by this lease, which it acquired before: to wait for it would be to wait for
/// itself. A lease that was freed, let go of or lost is not held.
///
/// Fails with `already_held`.
#[uniffi::export]
pub fn lock_check_free(lease: u64) -> Result<(), CallError> {
    match registry::lease(lease) {
        Ok(lease) if lease.is_valid() => Err(already_held(&lease.key).into()),
        _ => Ok(()),
    }
}

/// Tries once to take a lock and gives the lease's id, to be freed with `lease_free`.
///
/// Fails with `busy` if another holds it, and with `wrong_type`, `timeout`, `unavailable`, `read_only`, `forbidden`, `out_of_memory`,
/// `unsupported`, `closed`.
#[uniffi::export]
pub fn lock_acquire(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    interval_us: i64,
    max_hold_us: i64,
) -> Result<u64, CallError> {
    let terms = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    Ok(registry::add_lease(acquire(client, key, terms)?, None))
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
    interval_us: i64,
    max_hold_us: i64,
    wait_us: i64,
) -> Result<(), CallError> {
    let terms = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    submit_acquire(client, ticket, None, key, terms, wait_us)
}

/// `submit_lock_acquire` with an id for the lease that the caller chose, as in `packed_lock_acquire`.
#[uniffi::export]
#[allow(clippy::too_many_arguments, reason = "the boundary is flat")]
pub fn submit_lock_acquire_as(
    client: u64,
    ticket: u64,
    lease: u64,
    key: &[u8],
    ttl_us: i64,
    interval_us: i64,
    max_hold_us: i64,
    wait_us: i64,
) -> Result<(), CallError> {
    let terms = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    submit_acquire(client, ticket, Some(lease), key, terms, wait_us)
}

/// Takes over a lease that `lease_transfer` gave away, on the calling thread, and gives its id, to be freed with `lease_free`: one
/// that the caller chose, if any, as in `packed_lock_acquire`.
///
/// Fails with `lost` if the lock is not held by this token any more, and with `invalid_argument`, `unavailable`,
/// `outcome_unknown`, `read_only`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
#[allow(clippy::too_many_arguments, reason = "the boundary is flat")]
pub fn lock_adopt(
    client: u64,
    lease: Option<u64>,
    key: &[u8],
    ttl_us: i64,
    interval_us: i64,
    max_hold_us: i64,
    token: &[u8],
) -> Result<u64, CallError> {
    let LockTerms { ttl, keeping } = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    let adopt = || {
        let here = registry::client(client)?;
        let lock = here.blocking().lock(key, ttl)?.kept(keeping);
        lock.adopt(&String::from_utf8_lossy(token))
    };
    let adopted = adopt().map_err(about(key))?;
    let adopted = Lease::new(key, Holder::Blocking(Box::new(adopted)));
    Ok(registry::add_lease(adopted, lease))
}

/// `lock_adopt` in the background; an adopted lease comes under `ticket`.
#[uniffi::export]
#[allow(clippy::too_many_arguments, reason = "the boundary is flat")]
pub fn submit_lock_adopt(
    client: u64,
    ticket: u64,
    lease: Option<u64>,
    key: &[u8],
    ttl_us: i64,
    interval_us: i64,
    max_hold_us: i64,
    token: &[u8],
) -> Result<(), CallError> {
    let LockTerms { ttl, keeping } = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    let token = String::from_utf8_lossy(token).into_owned();
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    submit(
        client,
        ticket,
        about,
        AtClose::Ends,
        move |here| async move {
            let lock = here.background().lock(&key, ttl)?.kept(keeping);
            let adopted = Lease::new(key, Holder::Background(lock.adopt(&token).await?));
            Ok(Outcome::Adopted(adopted, lease))
        },
    )
}

pub(crate) fn acquire(
    client: u64,
    key: &[u8],
    LockTerms { ttl, keeping }: LockTerms,
) -> Result<Arc<Lease>, CallError> {
    let acquire = || {
        let here = registry::client(client)?;
        let lock = here.blocking().lock(key, ttl)?.kept(keeping);
        lock.acquire(Duration::ZERO)
    };
    let lease = acquire().map_err(about(key))?;
    Ok(Lease::new(key, Holder::Blocking(Box::new(lease))))
}

fn submit_acquire(
    client: u64,
    ticket: u64,
    chosen: Option<u64>,
    key: &[u8],
    LockTerms { ttl, keeping }: LockTerms,
    wait_us: i64,
) -> Result<(), CallError> {
    let wait = argument::wait(wait_us).map_err(about(key))?;
    let key: Arc<[u8]> = key.into();
    let about = Arc::clone(&key);
    // It stands in line from now on: those who wait have the lock in the order in which they came.
    submit_begun(
        client,
        ticket,
        about,
        AtClose::Ends,
        move |here| async move {
            let lock = here.background().lock(&key, ttl)?.kept(keeping);
            let acquired = Lease::new(key, Holder::Background(lock.acquire(wait).await?));
            Ok(Outcome::Lease(acquired, chosen))
        },
    )
}
