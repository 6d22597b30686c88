//! The test face of `memory://`: other programs' writes, the passing of time and faults, at will.
//!
//! Each fails with `unsupported` where the client's URL is not `memory://`, and with `closed`.

use tallylock::{Code, Error, Memory};

use crate::argument;
use crate::error::CallError;
use crate::registry;

/// A key of the memory.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct MemoryKey {
    /// The key.
    pub key: Vec<u8>,
    /// Its text, or nothing for a key of another type.
    pub value: Option<Vec<u8>>,
    /// Its remaining time in microseconds, or nothing for a key without a TTL.
    pub ttl_us: Option<i64>,
}

/// Whether the client's server is in memory. Fails with `closed`.
#[uniffi::export]
pub fn client_has_memory(client: u64) -> Result<bool, CallError> {
    Ok(registry::client(client)?.has_memory)
}

/// Lets that many microseconds pass, rounded up to milliseconds. Fails with `invalid_argument` if negative or over 10 years.
#[uniffi::export]
pub fn memory_advance(client: u64, by_us: i64) -> Result<(), CallError> {
    let by = argument::wait(by_us)?;
    memory(client)?.advance(by);
    Ok(())
}

/// Every live key, ordered.
#[uniffi::export]
pub fn memory_keys(client: u64) -> Result<Vec<MemoryKey>, CallError> {
    let keys = memory(client)?.keys().into_iter().map(|found| MemoryKey {
        key: found.key,
        value: found.value,
        ttl_us: found.ttl.map(argument::micros),
    });
    Ok(keys.collect())
}

/// Puts a text there as another program would, without a TTL if none is given.
#[uniffi::export]
pub fn memory_put(
    client: u64,
    key: &[u8],
    value: &[u8],
    ttl_us: Option<i64>,
) -> Result<(), CallError> {
    let ttl = ttl_us.map(argument::ttl).transpose()?;
    Ok(memory(client)?.put(key, value, ttl)?)
}

/// Puts a key of another type there as another program would, without a TTL if none is given.
#[uniffi::export]
pub fn memory_put_other_type(
    client: u64,
    key: &[u8],
    ttl_us: Option<i64>,
) -> Result<(), CallError> {
    let ttl = ttl_us.map(argument::ttl).transpose()?;
    Ok(memory(client)?.put_other_type(key, ttl)?)
}

/// Removes a key as another program would.
#[uniffi::export]
pub fn memory_remove(client: u64, key: &[u8]) -> Result<(), CallError> {
    memory(client)?.remove(key);
    Ok(())
}

/// Executes the next call, but loses its reply.
#[uniffi::export]
pub fn memory_lose_next_reply(client: u64) -> Result<(), CallError> {
    memory(client)?.lose_next_reply();
    Ok(())
}

/// Forgets which scripts it was sent, as a server does when it restarts.
#[uniffi::export]
pub fn memory_forget_scripts(client: u64) -> Result<(), CallError> {
    memory(client)?.forget_scripts();
    Ok(())
}

fn memory(client: u64) -> Result<Memory, CallError> {
    let here = registry::client(client)?;
    let memory = if here.has_memory {
        here.blocking().memory()
    } else {
        None
    };
    memory.ok_or_else(|| {
        Error::new(
            Code::Unsupported,
            "only a client of memory:// has this test face",
        )
        .into()
    })
}
