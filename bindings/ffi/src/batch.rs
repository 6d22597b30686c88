//! Many adds in one round trip, as one buffer each way, little-endian.
//!
//! The entries are packed as [`packed`](tallylock_core::counter::packed) tells, times as microseconds in an `i64`.
//!
//! A result is `[kind u8]` and, for the kinds 0 (counted before) and 1 (counted now), `[total i64]`; for the kind 2 an error as
//! in [`completion`](crate::completion).

use std::sync::Arc;

use tallylock::{Added, Entry, Error};
use tallylock_core::counter::packed::unpack_entries;
use tallylock_core::time::Ttl;

use crate::completion::{AtClose, Outcome, pack_error, submit};
use crate::error::CallError;
use crate::registry;

/// Adds all entries and gives their results in the same order; a bad entry neither stops nor hides the others.
///
/// Fails, with nothing sent, with `invalid_argument` if an entry is malformed or there are more than 10,000, and with `closed`.
#[uniffi::export]
pub fn client_add_many(client: u64, entries: &[u8]) -> Result<Vec<u8>, CallError> {
    let entries = unpack(entries)?;
    let results = registry::client(client)?.blocking().add_many(entries)?;
    Ok(pack(results))
}

/// `client_add_many` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_client_add_many(client: u64, ticket: u64, entries: &[u8]) -> Result<(), CallError> {
    let entries = unpack(entries)?;
    submit(
        client,
        ticket,
        Arc::default(),
        AtClose::RunsOn,
        |here| async move {
            let results = here.background().add_many(entries).await?;
            Ok(Outcome::Bytes(pack(results)))
        },
    )
}

fn unpack(packed: &[u8]) -> Result<Vec<Entry>, Error> {
    unpack_entries(packed, |time| Ttl::from_micros(i64::from_le_bytes(time)))
}

fn pack(results: Vec<Result<Added, Error>>) -> Vec<u8> {
    let mut packed = Vec::with_capacity(results.len() * 9);
    for result in results {
        match result {
            Ok(added) => {
                packed.push(u8::from(added.applied));
                packed.extend(added.total.to_le_bytes());
            }
            Err(error) => {
                packed.push(2);
                pack_error(&mut packed, error.into());
            }
        }
    }
    packed
}
