//! A value's handle.

use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::key::Key;
use tallylock_core::time::Ttl;
use tallylock_core::value::{CompareAndSet, Get, ReplaceIfPresent, Touch};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::Shared;
use crate::duration;
use crate::task::{Start, request};

/// A value by its key.
#[wasm_bindgen]
pub struct Value {
    shared: Rc<Shared>,
    key: Key,
}

#[wasm_bindgen]
impl Value {
    /// Resolves with the bytes, or null.
    pub fn get(&self) -> Promise {
        let key = self.key.clone();
        self.shared.ask(&self.key, request(Get { key }))
    }

    /// Writes value and TTL if the key is there; resolves with whether it was.
    #[wasm_bindgen(js_name = replaceIfPresent)]
    pub fn replace_if_present(&self, value: Vec<u8>, ttl_ms: f64) -> Promise {
        self.ask(ttl_ms, |key, ttl| {
            request(ReplaceIfPresent { key, value, ttl })
        })
    }

    /// Sets the TTL if the key is there; resolves with whether it was.
    pub fn touch(&self, ttl_ms: f64) -> Promise {
        self.ask(ttl_ms, |key, ttl| request(Touch { key, ttl }))
    }

    /// Writes value and TTL if the key holds `expected`; resolves with whether it did.
    #[wasm_bindgen(js_name = compareAndSet)]
    pub fn compare_and_set(&self, expected: Vec<u8>, value: Vec<u8>, ttl_ms: f64) -> Promise {
        self.ask(ttl_ms, |key, ttl| {
            request(CompareAndSet {
                key,
                expected,
                value,
                ttl,
            })
        })
    }
}

impl Value {
    pub(crate) fn new(shared: Rc<Shared>, key: Key) -> Self {
        Self { shared, key }
    }

    fn ask(&self, ttl_ms: f64, start: impl FnOnce(Key, Ttl) -> Start) -> Promise {
        match duration::ttl(ttl_ms) {
            Ok(ttl) => self.shared.ask(&self.key, start(self.key.clone(), ttl)),
            Err(error) => {
                let error = error.about(self.key.as_bytes());
                Promise::reject(&self.shared.link.failure(&error))
            }
        }
    }
}
