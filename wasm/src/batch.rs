//! Many adds in one round trip.
//!
//! They come as [`packed`](tallylock_core::counter::packed) tells, times as milliseconds in an `f64`. The results go as
//! `[bytes, failures]`, with `[kind u8][number i64]` for each: the total, counted before (0) or now (1), or the place among
//! the failures (2).

use js_sys::{Array, Promise, Uint8Array};
use tallylock_core::counter::packed::unpack_entries;
use tallylock_core::counter::{AddMany, Added};
use tallylock_core::error::Error;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::{Client, Shared};
use crate::duration;
use crate::task::Answer;

const FAILED: u8 = 2;

#[wasm_bindgen]
impl Client {
    /// Adds all entries; resolves with their results, in the same order.
    #[wasm_bindgen(js_name = addMany)]
    pub fn add_many(&self, entries: &[u8]) -> Promise {
        let milliseconds = |time| duration::ttl(f64::from_le_bytes(time));
        let ask = unpack_entries(entries, milliseconds).map(|entries| {
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
