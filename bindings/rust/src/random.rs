//! The randomness that operations are started with.

use std::sync::atomic::{AtomicU64, Ordering};

use tallylock_core::error::{Code, Error};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;

/// A seed that a token can be made of: 16 bytes of the system's cryptographic source.
///
/// Fails with `unavailable` if the system has none.
pub(crate) fn secret() -> Result<Seed, Error> {
    bytes().map(Seed::new)
}

/// A name that was not given before and is not guessed: 32 hexadecimal digits.
///
/// Fails with `unavailable` if the system gives no random bytes.
pub(crate) fn name() -> Result<String, Error> {
    Ok(format!("{:032x}", u128::from_be_bytes(bytes()?)))
}

/// A seed for an operation that makes no token: it only spreads the pauses between its repeats, and a system call on each
/// add costs more than that is worth. Different in each call and, by address and time, in each process.
pub(crate) fn jitter(now: Instant) -> Seed {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let place = std::ptr::from_ref(&COUNT).addr() as u64;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&count.to_be_bytes());
    bytes[8..].copy_from_slice(&(place ^ now.as_millis().rotate_left(32)).to_be_bytes());
    Seed::new(bytes)
}

fn bytes() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(
            Code::Unavailable,
            format!("the system gives no random bytes: {error}"),
        )
    })?;
    Ok(bytes)
}
