//! The verbs of a lease: the right to a lock for a limited time.
//!
//! JavaScript has its number and the lock's handle. An object of its own for each lease, with somebody who watches when it is
//! forgotten, would cost more than all else in an acquire and a release.

use std::rc::Rc;

use js_sys::{Function, Promise};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{LeaseTtl, Renewal};
use tallylock_core::time::{Instant, Wait};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::duration;
use crate::executor::{promise, spawn};
use crate::held::Held;
use crate::lock::Lock;
use crate::slots::Number;
use crate::task::{Answer, StartedTask};

#[wasm_bindgen]
impl Lock {
    /// The fencing token of a lease.
    pub fn fence(&self, lease: Number) -> u64 {
        self.held(lease).map_or(0, |held| held.fence)
    }

    /// How long it is still ours by our own clock, in milliseconds; 0 once it is not.
    #[wasm_bindgen(js_name = remainingMs)]
    pub fn remaining_ms(&self, lease: Number) -> f64 {
        let remaining = self
            .held(lease)
            .map(|held| held.with(|renewal, now| renewal.lease().remaining(now)));
        remaining.unwrap_or_default() as f64
    }

    /// Throws `lost` if less than so many milliseconds are left by our own clock.
    pub fn ensure(&self, lease: Number, margin_ms: f64) -> Result<(), JsValue> {
        let ensured = duration::time("margin", margin_ms).and_then(|margin| {
            let held = self.held(lease).ok_or_else(|| self.let_go())?;
            held.with(|renewal, now| renewal.lease().ensure(now, margin))
        });
        ensured.map_err(|error| self.failure(error))
    }

    /// Has a function called with the error when it is lost, at once if it is lost already. What it refers to is not forgotten
    /// as long as the lease is not.
    #[wasm_bindgen(js_name = onLost)]
    pub fn on_lost(&self, lease: Number, callback: Function) {
        if let Some(held) = self.held(lease) {
            held.on_lost(callback);
        }
    }

    /// Asks the server whether it is ours for at least so many milliseconds.
    pub fn verify(&self, lease: Number, margin_ms: f64) -> Promise {
        self.ask(lease, duration::time("margin", margin_ms).map(Wish::Verify))
    }

    /// Gives it a TTL from now, the lock's own if none is said.
    pub fn extend(&self, lease: Number, ttl_ms: Option<f64>) -> Promise {
        let ttl = match ttl_ms {
            Some(ms) => duration::lease_ttl(ms),
            None => Ok(self.spec.lock.ttl()),
        };
        self.ask(lease, ttl.map(Wish::Extend))
    }

    /// Gives it away; resolves with the text by which it is adopted.
    pub fn transfer(&self, lease: Number) -> Promise {
        self.ask(lease, Ok(Wish::Transfer))
    }

    /// Deletes the lock if it is still ours. Once it has succeeded, a further release does nothing.
    pub fn release(&self, lease: Number) -> Promise {
        self.ask(lease, Ok(Wish::Release))
    }

    /// Releases it for a caller who had cancelled the acquire when it was granted, and gives the error for that caller.
    pub fn cancelled(&self, lease: Number) -> JsValue {
        if let Some(held) = self.held(lease) {
            held.abandon();
            held.forget();
        }
        self.failure(Error::new(Code::Cancelled, "the acquire was cancelled"))
    }
}

/// What the holder may wish that the server has to do with.
enum Wish {
    Verify(Wait),
    Extend(LeaseTtl),
    Transfer,
    Release,
}

impl Lock {
    fn held(&self, lease: Number) -> Option<Rc<Held>> {
        self.spec.shared.leases.look(lease)
    }

    fn ask(&self, lease: Number, wish: Result<Wish, Error>) -> Promise {
        let (lock, held) = (self.clone(), self.held(lease));
        let asking = Box::pin(async move {
            let _turn = lock.spec.shared.enter(Some(lock.key()))?;
            let done = match (wish, held) {
                (Err(error), _) => Err(error),
                (Ok(Wish::Release), None) => Ok(JsValue::UNDEFINED),
                (Ok(_), None) => Err(lock.let_go()),
                (Ok(Wish::Verify(margin)), Some(held)) => held.verify(margin).await,
                (Ok(Wish::Extend(ttl)), Some(held)) => held.extend(ttl).await,
                (Ok(Wish::Transfer), Some(held)) => held.transfer().await,
                (Ok(Wish::Release), Some(held)) => held.release().await,
            };
            done.map_err(|error| lock.failure(error))
        });
        promise(&self.spec.shared.link.host, asking)
    }

    fn let_go(&self) -> Error {
        let detail = "it was released, or transferred";
        self.spec.lock.lost(Reason::Expired, detail)
    }

    fn failure(&self, error: Error) -> JsValue {
        self.spec.shared.link.failure(&error.about(self.key()))
    }

    fn key(&self) -> &[u8] {
        self.spec.lock.key().as_bytes()
    }
}

impl Held {
    async fn verify(&self, margin: Wait) -> Result<JsValue, Error> {
        let (settings, seed, _) = self.shared.at_start();
        let started = self.with(|renewal, now| renewal.lease().verify(settings, seed, now))?;
        let result = self.run(started.into()).await;
        self.with(|renewal, now| renewal.lease().verified(result, now, margin))?;
        Ok(JsValue::UNDEFINED)
    }

    async fn extend(self: &Rc<Self>, ttl: LeaseTtl) -> Result<JsValue, Error> {
        let (settings, seed, _) = self.shared.at_start();
        let (started, extending) =
            self.with(|renewal, now| renewal.lease().extend(ttl, settings, seed, now))?;
        // It may be over sooner than it was to be looked at.
        self.look_in_time();
        let result = self.run(started.into()).await;
        let ended = self.with(|renewal, _| renewal.lease().extended(extending, result));
        self.look_in_time();
        ended.map(|()| JsValue::UNDEFINED)
    }

    async fn transfer(self: &Rc<Self>) -> Result<JsValue, Error> {
        let transferred = self.with(Renewal::transfer)?;
        self.settled().await;
        self.forget();
        Ok(transferred.text().into())
    }

    async fn release(self: &Rc<Self>) -> Result<JsValue, Error> {
        if let Some(lost) = self.lost() {
            // Its key may be there yet.
            self.abandon();
            return Err(lost);
        }
        self.let_go().await?;
        Ok(JsValue::UNDEFINED)
    }

    /// Releases it, although nobody waits for that. If it fails, the TTL ends the lock, and nobody is left to be told.
    pub(crate) fn abandon(self: &Rc<Self>) {
        let held = Rc::clone(self);
        spawn(Box::pin(async move {
            let _turn = held.shared.begin();
            let _ = held.let_go().await;
            Ok(JsValue::UNDEFINED)
        }));
    }

    async fn let_go(self: &Rc<Self>) -> Result<(), Error> {
        if !self.with(Renewal::leave) {
            return Ok(());
        }
        self.settled().await;
        let (settings, seed, _) = self.shared.at_start();
        let started = self.with(|renewal, now| renewal.release(settings, seed, now));
        let result = self.run(started.into()).await.map(|_| ());
        let released = self.with(|renewal, _| renewal.lease().released(result));
        match released {
            Ok(()) => self.forget(),
            // It can be asked for again.
            Err(_) => self.look_in_time(),
        }
        released
    }

    /// Runs an operation that ends with until when the lease is ours, or with nothing.
    async fn run(&self, started: StartedTask) -> Result<Instant, Error> {
        let answer = self.shared.run(started).await;
        answer.map(|answer| match answer {
            Answer::ValidUntil(until) => until,
            _ => Instant::from_millis(0),
        })
    }
}
