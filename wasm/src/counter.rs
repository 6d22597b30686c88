//! A counter's handle.

use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::counter::{Add, Drain, Expiry, Finish, Read};
use tallylock_core::key::Key;
use tallylock_core::time::Ttl;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::Shared;
use crate::task::request;

/// A counter by its key.
#[wasm_bindgen]
pub struct Counter {
    shared: Rc<Shared>,
    key: Key,
    ttl: Ttl,
    expiry: Expiry,
}

#[wasm_bindgen]
impl Counter {
    /// Adds; resolves with the total.
    pub fn add(&self, amount: i64) -> Promise {
        let (key, ttl, expiry) = (self.key.clone(), self.ttl, self.expiry);
        let add = Add {
            key,
            amount,
            ttl,
            expiry,
        };
        self.shared.ask(&self.key, request(add))
    }

    /// Resolves with the total, or null.
    pub fn read(&self) -> Promise {
        let key = self.key.clone();
        self.shared.ask(&self.key, request(Read { key }))
    }

    /// Takes what is there and leaves 0; resolves with the amount, or null.
    pub fn drain(&self) -> Promise {
        let (key, ttl) = (self.key.clone(), self.ttl);
        self.shared.ask(
            &self.key,
            request(Drain {
                key,
                ttl,
                fence: None,
            }),
        )
    }

    /// Deletes the counter; resolves with what was left, or null.
    pub fn finish(&self) -> Promise {
        let key = self.key.clone();
        self.shared.ask(&self.key, request(Finish { key }))
    }
}

impl Counter {
    pub(crate) fn new(shared: Rc<Shared>, key: Key, ttl: Ttl, fixed: bool) -> Self {
        let expiry = if fixed {
            Expiry::Fixed
        } else {
            Expiry::Sliding
        };
        Self {
            shared,
            key,
            ttl,
            expiry,
        }
    }
}
