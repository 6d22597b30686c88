//! A lock's handle, and the taking of it.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::error::{Code, Error};
use tallylock_core::key::Key;
use tallylock_core::lock::{self, Acquire, LeaseTtl};
use tallylock_core::time::Wait;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{Shared, closed};
use crate::duration;
use crate::executor::{Settle, spawn};
use crate::lease::Lease;
use crate::stop::{Stop, Wish};
use crate::task::{Answer, Task};

/// A lock by its key.
#[wasm_bindgen]
pub struct Lock {
    shared: Rc<Shared>,
    lock: lock::Lock,
}

#[wasm_bindgen]
impl Lock {
    /// Takes the lock, waiting for it at the longest as long as is said; resolves with a lease.
    pub fn acquire(&self, wait_ms: Option<f64>) -> Promise {
        self.acquiring(wait_ms).start()
    }

    /// The same for a caller who may stop it.
    pub fn acquiring(&self, wait_ms: Option<f64>) -> Acquiring {
        Acquiring {
            shared: Rc::clone(&self.shared),
            lock: self.lock.clone(),
            wait_ms,
            stop: Rc::default(),
        }
    }
}

impl Lock {
    pub(crate) fn new(shared: Rc<Shared>, key: Key, ttl: LeaseTtl) -> Self {
        Self {
            shared,
            lock: lock::Lock::new(key, ttl),
        }
    }
}

/// The taking of a lock.
#[wasm_bindgen]
pub struct Acquiring {
    shared: Rc<Shared>,
    lock: lock::Lock,
    wait_ms: Option<f64>,
    stop: Rc<Stop>,
}

#[wasm_bindgen]
impl Acquiring {
    /// Begins it; resolves with a lease. If it was stopped already, nothing is sent.
    pub fn start(&self) -> Promise {
        match duration::wait(self.wait_ms) {
            Ok(wait) => self.promise_of_lease(wait),
            Err(error) => {
                let error = error.about(self.lock.key().as_bytes());
                Promise::reject(&self.shared.link.failure(&error))
            }
        }
    }

    /// Rejects the promise with `cancelled`, and undoes what may have been done already.
    pub fn stop(&self) {
        self.stop.fire(Wish::Cancelled);
    }
}

impl Acquiring {
    /// The operation may outlive the promise: a refusal is told at once, what it left behind is undone after that.
    fn promise_of_lease(&self, wait: Wait) -> Promise {
        let (shared, lock) = (Rc::clone(&self.shared), self.lock.clone());
        let stop = Rc::clone(&self.stop);
        let (promise, settle) = Settle::new();
        shared.stop_on_close(&stop);
        spawn(async move {
            let key = lock.key().as_bytes();
            let turn = shared.enter(Some(key));
            if let Err(failure) = &turn {
                return settle.reject(failure);
            }
            if stop.wish().is_some() {
                let error =
                    Error::new(Code::Cancelled, "the acquire was cancelled before it began");
                return settle.reject(&shared.link.failure(&error.about(key)));
            }
            let refused = |error: &Error| match (error.code(), stop.wish()) {
                (Code::Cancelled, Some(Wish::Closed)) => shared.link.failure(&closed(Some(key))),
                _ => shared.link.failure(error),
            };
            let told = Cell::new(false);
            let tell = |error: &Error| {
                if !told.replace(true) {
                    settle.reject(&refused(error));
                }
            };
            let (settings, seed, now) = shared.at_start();
            let started = Acquire::start(lock.clone(), wait, settings, seed, now);
            let mut observe = |task: &Task| {
                if let Some(error) = task.refusal() {
                    tell(error);
                }
            };
            match shared.run(started.into(), &stop, &mut observe).await {
                Ok(Answer::Granted(grant)) => {
                    let lease = Lease::new(Rc::clone(&shared), lock.clone(), grant);
                    if stop.wish().is_some() {
                        // It was granted while the wish to stop was on its way: nobody would release it.
                        lease.abandon();
                        tell(&Error::new(Code::Cancelled, "the acquire was cancelled").about(key));
                    } else {
                        settle.resolve(&lease.into());
                    }
                }
                // An acquire ends with nothing else.
                Ok(_) => {}
                Err(error) => tell(&error),
            }
            drop(turn);
        });
        promise
    }
}
