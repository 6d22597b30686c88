//! Many adds in one round trip. The adds come as one piece of bytes, little-endian, since each that crosses by itself costs
//! as much as all that is in it:
//!
//! | for each | bytes |
//! | --- | --- |
//! | the counter | `[ttl_ms f64][fixed u8][length u32][key]`, which a handle packs once |
//! | the add | `[amount i64][kind u8]` |
//! | if the kind is 1 or 2 | `[length u32][idempotency key]` |
//! | if the kind is 2 | `[remember_ms f64]` |
//!
//! The results go as `[bytes, failures]`, with `[kind u8][number i64]` for each: the total, counted before (0) or now (1),
//! or the place among the failures (2).

use js_sys::{Array, Promise, Uint8Array};
use tallylock_core::counter::{Add, AddMany, AddOnce, Added, Entry};
use tallylock_core::error::{Code, Error};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::{Client, Shared};
use crate::counter::expiry;
use crate::duration;
use crate::task::Answer;

const PLAIN: u8 = 0;
const KEYED: u8 = 1;
const FAILED: u8 = 2;

#[wasm_bindgen]
impl Client {
    /// Adds all entries; resolves with their results, in the same order.
    #[wasm_bindgen(js_name = addMany)]
    pub fn add_many(&self, entries: &[u8]) -> Promise {
        let ask = unpack(entries).map(|entries| {
            Ask::new(
                move |settings, seed, now| Ok(AddMany::start(entries, settings, seed, now)?.into()),
                |shared, answer| match answer {
                    Answer::Batch(results) => pack(shared, results),
                    // A batch ends with no other answer.
                    _ => JsValue::UNDEFINED,
                },
            )
        });
        self.shared().ask(None, ask)
    }
}

fn pack(shared: &Shared, results: Vec<Result<Added, Error>>) -> JsValue {
    let mut packed = Vec::with_capacity(results.len() * 9);
    let failures = Array::new();
    for result in results {
        let (kind, number) = match result {
            Ok(added) => (u8::from(added.applied), added.total),
            // It answers with the length, which the failure's place is one less than.
            Err(error) => {
                let length = failures.push(&shared.link.failure(&error));
                (FAILED, i64::from(length) - 1)
            }
        };
        packed.push(kind);
        packed.extend_from_slice(&number.to_le_bytes());
    }
    Array::of2(&Uint8Array::from(packed.as_slice()), &failures).into()
}

fn unpack(packed: &[u8]) -> Result<Vec<Entry>, Error> {
    let mut rest = Reader(packed);
    let mut entries = Vec::new();
    while !rest.0.is_empty() {
        entries.push(rest.entry()?);
    }
    Ok(entries)
}

/// What is left of a piece of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Result<Entry, Error> {
        let ttl_ms = self.milliseconds()?;
        let expiry = expiry(self.byte()? != 0);
        let key = Key::new(self.text()?)?;
        let about = |error: Error| error.about(key.as_bytes());
        let ttl = duration::ttl(ttl_ms).map_err(about)?;
        let amount = i64::from_le_bytes(self.array()?);
        let kind = self.byte()?;
        if kind == PLAIN {
            return Ok(Entry::Plain(Add {
                key,
                amount,
                ttl,
                expiry,
            }));
        }
        let id = Id::new(self.text()?).map_err(about)?;
        let remembered = if kind == KEYED {
            None
        } else {
            Some(duration::ttl(self.milliseconds()?).map_err(about)?)
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

    fn milliseconds(&mut self) -> Result<f64, Error> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// A length and so many bytes.
    fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
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
    Error::new(Code::InvalidArgument, "a packed entry ends too early")
}
