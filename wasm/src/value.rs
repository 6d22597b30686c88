//! A value's handle.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::request::Single;
use tallylock_core::time::Ttl;
use tallylock_core::value::{
    CompareAndSet, Get, GuardedDelete, GuardedSet, Offered, ReplaceIfPresent, Touch, Update,
};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::Shared;
use crate::duration;
use crate::task::{Answer, Verb};

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
        self.ask(|key| Ok(Get { key }))
    }

    /// Writes value and TTL if the key is there; resolves with whether it was.
    #[wasm_bindgen(js_name = replaceIfPresent)]
    pub fn replace_if_present(&self, value: Vec<u8>, ttl_ms: f64) -> Promise {
        self.ask(|key| {
            let ttl = duration::ttl(ttl_ms)?;
            Ok(ReplaceIfPresent { key, value, ttl })
        })
    }

    /// Sets the TTL if the key is there; resolves with whether it was.
    pub fn touch(&self, ttl_ms: f64) -> Promise {
        self.ask(|key| {
            let ttl = duration::ttl(ttl_ms)?;
            Ok(Touch { key, ttl })
        })
    }

    /// Writes value and TTL if the key holds `expected`; resolves with whether it did.
    #[wasm_bindgen(js_name = compareAndSet)]
    pub fn compare_and_set(&self, expected: Vec<u8>, value: Vec<u8>, ttl_ms: f64) -> Promise {
        self.ask(|key| {
            Ok(CompareAndSet {
                key,
                expected,
                value,
                ttl: duration::ttl(ttl_ms)?,
            })
        })
    }

    /// Writes value and TTL unless a higher fence was seen there.
    #[wasm_bindgen(js_name = guardedSet)]
    pub fn guarded_set(&self, value: Vec<u8>, fence: u64, ttl_ms: f64) -> Promise {
        self.ask(|key| {
            Ok(GuardedSet {
                key,
                value,
                fence,
                ttl: duration::ttl(ttl_ms)?,
            })
        })
    }

    /// Deletes the value unless a higher fence was seen there; resolves with whether there was one.
    #[wasm_bindgen(js_name = guardedDelete)]
    pub fn guarded_delete(&self, fence: u64) -> Promise {
        self.ask(|key| Ok(GuardedDelete { key, fence }))
    }

    /// Reads the value, to be given another one with this TTL; resolves with an [`Updating`], or null.
    #[wasm_bindgen(js_name = readForUpdate)]
    pub fn read_for_update(&self, ttl_ms: f64) -> Promise {
        let (key, begun) = (self.key.clone(), self.shared.now());
        let get = Verb::from(Get { key: key.clone() });
        let ask = duration::ttl(ttl_ms).map(|ttl| {
            Ask::new(
                move |settings, seed, now| Ok(Single::start(get, settings, seed, now).into()),
                move |shared, answer| {
                    let Answer::Bytes(Some(present)) = answer else {
                        return JsValue::NULL;
                    };
                    let update = Update::new(key.clone(), present, &shared.settings, begun);
                    Updating {
                        shared: Rc::clone(shared),
                        key,
                        ttl,
                        update: Rc::new(RefCell::new(update)),
                    }
                    .into()
                },
            )
        });
        self.shared.ask(Some(&self.key), ask)
    }
}

impl Value {
    pub(crate) fn new(shared: Rc<Shared>, key: Key) -> Self {
        Self { shared, key }
    }

    fn ask<R: Into<Verb>>(&self, make: impl FnOnce(Key) -> Result<R, Error>) -> Promise {
        let ask = make(self.key.clone()).map(|request| Ask::Request(request.into()));
        self.shared.ask(Some(&self.key), ask)
    }
}

/// A value that was read to be changed.
#[wasm_bindgen]
pub struct Updating {
    shared: Rc<Shared>,
    key: Key,
    ttl: Ttl,
    update: Rc<RefCell<Update>>,
}

#[wasm_bindgen]
impl Updating {
    /// The bytes that were read last.
    pub fn present(&self) -> Vec<u8> {
        self.update.borrow().present().to_vec()
    }

    /// Writes another value if the key still holds what was read; resolves with whether it did, or null if the key is gone.
    /// If it did not, what is there now has been read.
    pub fn offer(&self, value: Vec<u8>) -> Promise {
        let (read, ttl) = (Rc::clone(&self.update), self.ttl);
        let update = read.borrow().clone();
        let ask = Ask::new(
            move |settings, seed, now| Ok(update.offer(value, ttl, settings, seed, now).into()),
            move |_, answer| match answer {
                Answer::Offered(Offered::Written) => JsValue::TRUE,
                Answer::Offered(Offered::Overtaken(update)) => {
                    read.replace(update);
                    JsValue::FALSE
                }
                _ => JsValue::NULL,
            },
        );
        self.shared.ask(Some(&self.key), Ok(ask))
    }
}
