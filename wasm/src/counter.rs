//! A counter's handle.

use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::claim::{Abort, Commit, Open};
use tallylock_core::counter::{Add, AddOnce, Drain, Expiry, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::time::Ttl;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::Shared;
use crate::task::Verb;
use crate::{duration, scan};

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
        self.ask(|key| {
            Ok(Add {
                key,
                amount,
                ttl: self.ttl,
                expiry: self.expiry,
            })
        })
    }

    /// Adds unless it was added under this id before; resolves with `[total, applied]`.
    #[wasm_bindgen(js_name = addOnce)]
    pub fn add_once(&self, amount: i64, id: Vec<u8>, remember_ms: Option<f64>) -> Promise {
        self.ask(|key| {
            Ok(AddOnce {
                key,
                id: Id::new(id)?,
                amount,
                ttl: self.ttl,
                expiry: self.expiry,
                remembered: remember_ms.map(duration::ttl).transpose()?,
            })
        })
    }

    /// Resolves with the total, or null.
    pub fn read(&self) -> Promise {
        self.ask(|key| Ok(Read { key }))
    }

    /// Takes what is there and leaves 0; resolves with the amount, or null.
    pub fn drain(&self, fence: Option<u64>) -> Promise {
        self.ask(|key| {
            Ok(Drain {
                key,
                ttl: self.ttl,
                fence,
            })
        })
    }

    /// Deletes the counter; resolves with what was left, or null.
    pub fn finish(&self) -> Promise {
        self.ask(|key| Ok(Finish { key }))
    }

    /// Takes what is there for the claim of this id; resolves with `[amount, state]`, or null.
    pub fn claim(&self, id: Vec<u8>, fence: Option<u64>) -> Promise {
        self.ask(|key| {
            Ok(Open {
                key,
                id: Id::new(id)?,
                ttl: self.ttl,
                fence,
            })
        })
    }

    /// Ends a claim as billed with this amount.
    pub fn commit(&self, id: Vec<u8>, amount: i64) -> Promise {
        self.ask(|key| {
            Ok(Commit {
                key,
                id: Id::new(id)?,
                amount,
            })
        })
    }

    /// Ends a claim as not billed; resolves with the amount that the counter got back.
    pub fn abort(&self, id: Vec<u8>, fence: Option<u64>) -> Promise {
        self.ask(|key| {
            Ok(Abort {
                key,
                id: Id::new(id)?,
                ttl: self.ttl,
                fence,
            })
        })
    }

    /// Looks for open claims on one page of the server's keys; see [`scan`] for what it resolves with.
    pub fn claims(&self, cursor: Option<Vec<u8>>) -> Promise {
        self.shared.ask(
            Some(&self.key),
            scan::claims_of(&self.key, cursor.as_deref()),
        )
    }
}

impl Counter {
    pub(crate) fn new(shared: Rc<Shared>, key: Key, ttl: Ttl, fixed: bool) -> Self {
        Self {
            shared,
            key,
            ttl,
            expiry: expiry(fixed),
        }
    }

    fn ask<R: Into<Verb>>(&self, make: impl FnOnce(Key) -> Result<R, Error>) -> Promise {
        let ask = make(self.key.clone()).map(|request| Ask::Request(request.into()));
        self.shared.ask(Some(&self.key), ask)
    }
}

pub(crate) fn expiry(fixed: bool) -> Expiry {
    if fixed {
        Expiry::Fixed
    } else {
        Expiry::Sliding
    }
}
