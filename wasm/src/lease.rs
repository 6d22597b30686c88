//! A lease: the right to a lock for a limited time.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{self, Grant, LeaseTtl, Lock};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{Shared, Turn};
use crate::duration;
use crate::executor::{promise, spawn};
use crate::stop::Stop;
use crate::task::{Answer, StartedTask};

/// A lease of a lock.
#[wasm_bindgen]
pub struct Lease {
    held: Rc<Held>,
}

/// What the core knows of a lease; it is borrowed between awaits only, so that calls may overlap.
struct Held {
    shared: Rc<Shared>,
    lease: RefCell<lock::Lease>,
}

#[wasm_bindgen]
impl Lease {
    /// The fencing token.
    #[wasm_bindgen(getter)]
    pub fn fence(&self) -> u64 {
        self.held.lease.borrow().fence()
    }

    /// How long it is still ours by our own clock, in milliseconds; 0 once it is not.
    #[wasm_bindgen(js_name = remainingMs)]
    pub fn remaining_ms(&self) -> f64 {
        let Held { shared, lease } = &*self.held;
        lease.borrow().remaining(shared.now()) as f64
    }

    /// Throws `lost` if less than so many milliseconds are left by our own clock.
    pub fn ensure(&self, margin_ms: f64) -> Result<(), JsValue> {
        let Held { shared, lease } = &*self.held;
        duration::time("margin", margin_ms)
            .and_then(|margin| lease.borrow().ensure(shared.now(), margin))
            .map_err(|error| self.held.failure(error))
    }

    /// Gives it a TTL from now, the lock's own if none is said.
    pub fn extend(&self, ttl_ms: Option<f64>) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            let _turn = held.enter()?;
            let done = match held.ttl(ttl_ms) {
                Ok(ttl) => held.extend(ttl).await,
                Err(error) => Err(error),
            };
            done.map(|()| JsValue::UNDEFINED)
                .map_err(|error| held.failure(error))
        })
    }

    /// Deletes the lock if it is still ours. Once it has succeeded, a further release does nothing.
    pub fn release(&self) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            let _turn = held.enter()?;
            let done = held.release().await;
            done.map(|()| JsValue::UNDEFINED)
                .map_err(|error| held.failure(error))
        })
    }

    /// Releases it for a caller who had cancelled the acquire when it was granted, and gives the error for that caller.
    pub fn cancelled(&self) -> JsValue {
        self.abandon();
        self.held
            .failure(Error::new(Code::Cancelled, "the acquire was cancelled"))
    }
}

impl Lease {
    pub(crate) fn new(shared: Rc<Shared>, lock: Lock, grant: Grant) -> Self {
        let lease = RefCell::new(lock::Lease::new(lock, grant));
        Self {
            held: Rc::new(Held { shared, lease }),
        }
    }

    /// Releases it, although nobody waits for that. If it fails, the TTL ends the lock, and nobody is left to be told.
    pub(crate) fn abandon(&self) {
        let held = Rc::clone(&self.held);
        spawn(async move {
            let _turn = held.shared.begin();
            let _ = held.release().await;
        });
    }
}

impl Held {
    /// Enters a call of the holder's, unless the client is closed.
    fn enter(&self) -> Result<Turn<'_>, JsValue> {
        let lease = self.lease.borrow();
        self.shared.enter(Some(lease.lock().key().as_bytes()))
    }

    fn ttl(&self, ms: Option<f64>) -> Result<LeaseTtl, Error> {
        match ms {
            Some(ms) => duration::lease_ttl(ms),
            None => Ok(self.lease.borrow().lock().ttl()),
        }
    }

    async fn extend(&self, ttl: LeaseTtl) -> Result<(), Error> {
        let (settings, seed, now) = self.shared.at_start();
        let (started, extending) = self.lease.borrow_mut().extend(ttl, settings, seed, now)?;
        let result = match self.run(started.into()).await {
            Ok(Answer::ValidUntil(until)) => Ok(until),
            Err(error) => Err(error),
            // An extend ends with no other answer.
            Ok(_) => return Ok(()),
        };
        self.lease.borrow_mut().extended(extending, result)
    }

    async fn release(&self) -> Result<(), Error> {
        let (settings, seed, now) = self.shared.at_start();
        let Some(started) = self.lease.borrow_mut().release(settings, seed, now) else {
            return Ok(());
        };
        let result = self.run(started.into()).await.map(|_| ());
        self.lease.borrow_mut().released(result)
    }

    async fn run(&self, started: StartedTask) -> Result<Answer, Error> {
        self.shared
            .run(started, &Stop::default(), &mut |_| ())
            .await
    }

    fn failure(&self, error: Error) -> JsValue {
        let error = if error.key().is_some() {
            error
        } else {
            error.about(self.lease.borrow().lock().key().as_bytes())
        };
        self.shared.link.failure(&error)
    }
}
