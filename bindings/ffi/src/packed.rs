//! The hottest calls, with all that a handle stands for packed into one byte slice.
//!
//! In Python each argument of a call costs half a microsecond, so a handle packs once what all of its calls have in common:
//! little-endian, `[client u64][ttl_us i64]`, for a counter `[fixed u8]`, for a lock `[interval_us i64][max_hold_us i64]`, and the
//! bytes of the key.

use tallylock::{Code, Error};

use crate::argument::LockTerms;
use crate::counter::counter_add;
use crate::error::CallError;
use crate::lock::acquire;
use crate::registry;

/// `counter_add`, given a packed counter.
#[uniffi::export]
pub fn packed_counter_add(counter: &[u8], amount: i64) -> Result<i64, CallError> {
    let (client, ttl_us, rest) = unpack(counter)?;
    let (fixed, key) = rest.split_first().ok_or_else(malformed)?;
    counter_add(client, key, ttl_us, *fixed != 0, amount)
}

/// `lock_acquire`, given a packed lock, for a language that can be interrupted before it has seen the lease's id: the caller
/// chooses it, at least 2^63 and never used before, and can always give it to `lease_abandon`.
#[uniffi::export]
pub fn packed_lock_acquire(lock: &[u8], lease: u64) -> Result<(), CallError> {
    let (client, ttl_us, rest) = unpack(lock)?;
    let (interval, rest) = rest.split_at_checked(8).ok_or_else(malformed)?;
    let (max_hold, key) = rest.split_at_checked(8).ok_or_else(malformed)?;
    let [interval_us, max_hold_us] = [interval, max_hold].map(|us| number(us).cast_signed());
    let terms = LockTerms::new(key, ttl_us, interval_us, max_hold_us)?;
    registry::add_lease(acquire(client, key, terms)?, Some(lease));
    Ok(())
}

/// `lease_free` for many: their ids, each a little-endian `u64`.
#[uniffi::export]
pub fn packed_leases_free(leases: &[u8]) {
    for id in leases.chunks_exact(8) {
        drop(registry::remove_lease(number(id)));
    }
}

/// Client, TTL, and what follows them.
fn unpack(handle: &[u8]) -> Result<(u64, i64, &[u8]), CallError> {
    if handle.len() < 16 {
        return Err(malformed());
    }
    let (client, rest) = handle.split_at(8);
    let (ttl_us, rest) = rest.split_at(8);
    Ok((number(client), number(ttl_us).cast_signed(), rest))
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn malformed() -> CallError {
    Error::new(
        Code::InvalidArgument,
        "a packed handle is too short: package and library are of different versions",
    )
    .into()
}
