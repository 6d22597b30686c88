//! Many adds in one round trip, as one buffer each way, little-endian.
//!
//! An entry is `[ttl_us i64][fixed u8][length u32][key]`, which a handle can pack once, then `[amount i64][length u32]` and,
//! if that length is not 0, the idempotency key and `[remember_us i64]`, 0 for the shared default.
//!
//! A result is `[kind u8]` and, for the kinds 0 (counted before) and 1 (counted now), `[total i64]`; for the kind 2 an error as
//! in [`completion`](crate::completion).

use std::sync::Arc;

use tallylock::{Added, Code, Entry, Error, Expiry};
use tallylock_core::counter::{Add, AddOnce};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
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
    let results = registry::client(client)?.blocking()?.add_many(entries)?;
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
            let results = here.background().await?.add_many(entries).await?;
            Ok(Outcome::Bytes(pack(results)))
        },
    )
}

fn unpack(packed: &[u8]) -> Result<Vec<Entry>, CallError> {
    let mut rest = Reader(packed);
    let mut entries = Vec::new();
    while !rest.0.is_empty() {
        entries.push(rest.entry()?);
    }
    Ok(entries)
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

/// What is left of a buffer.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Result<Entry, Error> {
        let ttl = Ttl::from_micros(self.integer()?);
        let [fixed] = self.array()?;
        let key = Key::new(self.text()?)?;
        let about = |error: Error| error.about(key.as_bytes());
        let ttl = ttl.map_err(about)?;
        let expiry = if fixed == 0 {
            Expiry::Sliding
        } else {
            Expiry::Fixed
        };
        let amount = self.integer()?;
        let id = self.text()?;
        if id.is_empty() {
            return Ok(Entry::Plain(Add {
                key,
                amount,
                ttl,
                expiry,
            }));
        }
        let id = Id::new(id).map_err(about)?;
        let remembered = match self.integer()? {
            0 => None,
            micros => Some(Ttl::from_micros(micros).map_err(about)?),
        };
        Ok(Entry::Keyed(AddOnce {
            key,
            id,
            amount,
            ttl,
            expiry,
            remembered,
        }))
    }

    fn integer(&mut self) -> Result<i64, Error> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A length and so many bytes.
    fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = u32::from_le_bytes(self.array()?);
        let (text, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.0.split_at_checked(length))
            .ok_or_else(malformed)?;
        self.0 = rest;
        Ok(text)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*array)
    }
}

fn malformed() -> Error {
    Error::new(
        Code::InvalidArgument,
        "a packed entry ends too early: package and library are of different versions",
    )
}
