//! A lock's handle, and the taking of it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::Context;

use js_sys::Promise;
use tallylock_core::error::{Code, Error};
use tallylock_core::key::Key;
use tallylock_core::lock::{self, Grant, Keeping, LeaseTtl, Transferred, already_held};
use tallylock_core::time::Wait;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::ask::Ask;
use crate::client::{Shared, closed};
use crate::duration;
use crate::executor::{Outcome, Settle, spawn};
use crate::held::Held;
use crate::stop::{Stop, Wish};
use crate::task::{Answer, Task};
use crate::waiters::Waiter;

/// A lock by its key. It is for one holder at a time.
#[wasm_bindgen]
#[derive(Clone)]
pub struct Lock {
    pub(crate) spec: Rc<Spec>,
}

/// How a lock is taken, and what was taken last.
pub(crate) struct Spec {
    pub(crate) shared: Rc<Shared>,
    pub(crate) lock: lock::Lock,
    keeping: Keeping,
    held: RefCell<Weak<Held>>,
}

#[wasm_bindgen]
impl Lock {
    /// Takes the lock, waiting for it at the longest as long as is said; resolves with the number of a lease.
    pub fn acquire(&self, wait_ms: Option<f64>) -> Promise {
        self.acquiring(wait_ms).start()
    }

    /// The same as acquire for a caller who may stop it.
    pub fn acquiring(&self, wait_ms: Option<f64>) -> Acquiring {
        Acquiring {
            spec: Rc::clone(&self.spec),
            wait_ms,
            stop: Rc::default(),
        }
    }

    /// Takes over the lease that was given away under this text; resolves with the number of a lease.
    pub fn adopt(&self, token: &str) -> Promise {
        let (asked, adopted) = (Rc::clone(&self.spec), Rc::clone(&self.spec));
        let ask = Transferred::read(token).map(|transferred| {
            Ask::new(
                move |settings, seed, now| {
                    asked.check_free()?;
                    Ok(transferred
                        .adopt(asked.lock.clone(), settings, seed, now)
                        .into())
                },
                move |_, answer| match answer {
                    Answer::Granted(grant) => {
                        adopted.shared.counts.adopted();
                        adopted.hold(grant).number.into()
                    }
                    // An adoption ends with nothing else.
                    _ => JsValue::UNDEFINED,
                },
            )
        });
        let Spec { shared, lock, .. } = &*self.spec;
        shared.ask(Some(lock.key()), ask)
    }
}

impl Lock {
    /// A lock whose leases are renewed after a third of their TTL, or so often or never, and no longer than so.
    pub(crate) fn new(shared: Rc<Shared>, key: Key, ttl: LeaseTtl, keeping: Keeping) -> Self {
        Self {
            spec: Rc::new(Spec {
                shared,
                lock: lock::Lock::new(key, ttl),
                keeping,
                held: RefCell::default(),
            }),
        }
    }
}

impl Spec {
    /// Fails with `already_held` while a lease that was taken through this handle is ours.
    fn check_free(&self) -> Result<(), Error> {
        let held = self.held.borrow().upgrade();
        if held.is_some_and(|held| held.is_ours()) {
            return Err(already_held(self.lock.key().as_bytes()));
        }
        Ok(())
    }

    fn hold(&self, grant: Grant) -> Rc<Held> {
        let keeping = self.shared.link.keeping(self.keeping);
        let held = Held::new(&self.shared, self.lock.clone(), keeping, grant);
        self.held.replace(Rc::downgrade(&held));
        held
    }
}

/// The taking of a lock.
#[wasm_bindgen]
pub struct Acquiring {
    spec: Rc<Spec>,
    wait_ms: Option<f64>,
    stop: Rc<Stop>,
}

#[wasm_bindgen]
impl Acquiring {
    /// Begins it; resolves with the number of a lease. If it was stopped already, nothing is sent.
    pub fn start(&self) -> Promise {
        let (spec, stop) = (Rc::clone(&self.spec), Rc::clone(&self.stop));
        let wait = duration::wait(self.wait_ms);
        let (promise, settle) = Settle::new(&spec.shared.link.host);
        spec.shared.stop_on_close(&stop);
        // The operation may outlive the promise: a refusal is told at once, what it left behind is undone after that.
        spawn(Box::pin(async move {
            settle.with(acquire(&spec, wait, &stop, &settle).await);
            Ok(JsValue::UNDEFINED)
        }));
        promise
    }

    /// Rejects the promise with `cancelled`, and undoes what may have been done already.
    pub fn stop(&self) {
        self.stop.fire(Wish::Cancelled);
    }
}

async fn acquire(spec: &Spec, wait: Result<Wait, Error>, stop: &Stop, settle: &Settle) -> Outcome {
    let Spec { shared, lock, .. } = spec;
    let key = lock.key().as_bytes();
    let _turn = shared.enter(Some(key))?;
    let refused = |error: Error| {
        let error = match (error.code(), stop.wish()) {
            (Code::Cancelled, Some(Wish::Closed)) => closed(Some(key)),
            _ => error.about(key),
        };
        Err(shared.link.failure(&error))
    };
    let cancelled = |why| refused(Error::new(Code::Cancelled, why));
    if stop.wish().is_some() {
        return cancelled("the acquire was cancelled before it began");
    }
    let wait = match spec.check_free().and(wait) {
        Ok(wait) => wait,
        Err(error) => return refused(error),
    };
    let now = shared.now();
    let waiter = Waiter::join(shared, lock, wait);
    let started = waiter.start(lock.clone(), wait);
    let mut notified = |context: &mut Context<'_>| waiter.poll_notice(context);
    let answered = Cell::new(false);
    let asked = Cell::new(0);
    let count = |refused: Option<&Error>| {
        if !answered.replace(true) {
            let took = shared.now().since(now);
            let code = refused.map(Error::code);
            shared.counts.acquired(asked.get(), took, code);
        }
    };
    let mut observe = |task: &Task| {
        let Some(acquire) = task.acquire() else {
            return;
        };
        asked.set(acquire.asked());
        waiter.observe(acquire);
        if let Some(error) = acquire.refusal()
            && let Some(error) = waiter.leave(Some(error.clone()))
        {
            count(Some(&error));
            settle.with(refused(error));
        }
    };
    let result = shared
        .run_until(stop, started, &mut notified, &mut observe)
        .await;
    let reason = waiter.leave(result.as_ref().err().cloned());
    count(reason.as_ref());
    match reason.map_or(result, Err) {
        Ok(Answer::Granted(grant)) => {
            let held = spec.hold(grant);
            if stop.wish().is_none() {
                return Ok(held.number.into());
            }
            // It was granted while the wish to stop was on its way: nobody would release it.
            held.abandon();
            held.forget();
            cancelled("the acquire was cancelled")
        }
        // An acquire ends with nothing else.
        Ok(_) => Ok(JsValue::UNDEFINED),
        Err(error) => refused(error),
    }
}
