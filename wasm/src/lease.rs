//! A lease: the right to a lock for a limited time, as this client's clock sees it.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::error::{Applied, Code, Error, Reason};
use tallylock_core::lock::{Extend, Grant, LeaseTtl, Lock, Release};
use tallylock_core::time::{Instant, Ttl, drift};
use tallylock_core::token::Token;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::Shared;
use crate::duration;
use crate::executor::promise;
use crate::stop::Stop;
use crate::task::{Answer, Start};

/// A lease of a lock.
#[wasm_bindgen]
pub struct Lease {
    held: Rc<Held>,
}

struct Held {
    shared: Rc<Shared>,
    lock: Lock,
    token: Token,
    fence: u64,
    valid_until: Cell<Instant>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    /// Its release was asked for, and may be asked for again.
    Leaving,
    Released,
    Lost(Reason),
}

#[wasm_bindgen]
impl Lease {
    /// The fencing token.
    #[wasm_bindgen(getter)]
    pub fn fence(&self) -> u64 {
        self.held.fence
    }

    /// How long it is still ours by our own clock, in milliseconds; 0 once it is not.
    #[wasm_bindgen(js_name = remainingMs)]
    pub fn remaining_ms(&self) -> f64 {
        self.held.remaining() as f64
    }

    /// Throws `lost` if less than so many milliseconds are left by our own clock.
    pub fn ensure(&self, margin_ms: f64) -> Result<(), JsValue> {
        self.held
            .ensure(margin_ms)
            .map_err(|error| self.held.failure(error))
    }

    /// Gives it a TTL from now, the lock's own if none is said.
    pub fn extend(&self, ttl_ms: Option<f64>) -> Promise {
        let held = Rc::clone(&self.held);
        promise(async move {
            let done = match held.ttl(ttl_ms) {
                Ok(ttl) => {
                    let _turn = held.shared.enter(Some(held.lock.key().as_bytes()))?;
                    held.extend(ttl).await
                }
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
            if held.state.get() == State::Released {
                return Ok(JsValue::UNDEFINED);
            }
            let _turn = held.shared.enter(Some(held.lock.key().as_bytes()))?;
            let done = held.release().await;
            done.map(|()| JsValue::UNDEFINED)
                .map_err(|error| held.failure(error))
        })
    }
}

impl Lease {
    pub(crate) fn new(shared: Rc<Shared>, lock: Lock, grant: Grant) -> Self {
        let Grant {
            token,
            fence,
            valid_until,
        } = grant;
        let (valid_until, state) = (Cell::new(valid_until), Cell::new(State::Held));
        Self {
            held: Rc::new(Held {
                shared,
                lock,
                token,
                fence,
                valid_until,
                state,
            }),
        }
    }
}

impl Held {
    fn remaining(&self) -> u64 {
        match self.state.get() {
            State::Held => self.valid_until.get().since(self.shared.now()),
            State::Leaving | State::Released | State::Lost(_) => 0,
        }
    }

    fn ensure(&self, margin_ms: f64) -> Result<(), Error> {
        let margin = duration::time("margin", margin_ms)?.as_millis();
        let lost = |reason, detail: String| Err(Error::new(Code::Lost(reason), detail));
        match (self.state.get(), self.remaining()) {
            (State::Lost(reason), _) => lost(reason, "it was lost before".into()),
            (State::Leaving | State::Released, _) => {
                lost(Reason::Expired, "it was released".into())
            }
            (State::Held, 0) => lost(Reason::Expired, "its time is over".into()),
            (State::Held, left) if left < margin => lost(
                Reason::Expired,
                format!("it has {left} ms left, less than the margin"),
            ),
            (State::Held, _) => Ok(()),
        }
    }

    fn ttl(&self, ms: Option<f64>) -> Result<Ttl, Error> {
        match ms {
            Some(ms) => duration::ttl(ms),
            // It was within the bounds when the lock was made.
            None => {
                Ttl::from_millis(i64::try_from(self.lock.ttl().as_millis()).unwrap_or(i64::MAX))
            }
        }
    }

    async fn extend(&self, ttl: Ttl) -> Result<(), Error> {
        let lock = self.lock.with_ttl(LeaseTtl::new(ttl)?);
        match self.state.get() {
            State::Held => {}
            State::Lost(reason) => {
                return Err(Error::new(Code::Lost(reason), "it was lost before"));
            }
            State::Leaving | State::Released => {
                return Err(Error::new(Code::Lost(Reason::Expired), "it was released"));
            }
        }
        let before = self.valid_until.get();
        // Until we know better: an extend may shorten a lease, and its reply may be lost.
        let shortest = self.shared.now().plus(ttl.as_millis() - drift(ttl));
        self.valid_until.set(before.min(shortest));
        let token = self.token.clone();
        let start: Start = Box::new(move |settings, seed, now| {
            Extend::start(lock, &token, before, settings, seed, now).into()
        });
        let outcome = self.shared.run(start, &Stop::default(), &mut |_| ()).await;
        match &outcome {
            Ok(Answer::ValidUntil(valid_until)) => self.valid_until.set(*valid_until),
            Err(error) if error.code().reason().is_some() => self.lose(error),
            Err(error) if error.applied() == Applied::No => self.valid_until.set(before),
            // It may have been applied; an extend ends with no other answer.
            Ok(_) | Err(_) => {}
        }
        outcome.map(|_| ())
    }

    async fn release(&self) -> Result<(), Error> {
        if self.state.get() == State::Held {
            self.state.set(State::Leaving);
        }
        let (lock, token, valid_until) = (
            self.lock.clone(),
            self.token.clone(),
            self.valid_until.get(),
        );
        let start: Start = Box::new(move |settings, seed, now| {
            Release::start(lock, &token, valid_until, settings, seed, now).into()
        });
        let outcome = self.shared.run(start, &Stop::default(), &mut |_| ()).await;
        match &outcome {
            Ok(_) => self.state.set(State::Released),
            Err(error) => self.lose(error),
        }
        outcome.map(|_| ())
    }

    fn lose(&self, error: &Error) {
        if let (Some(reason), true) = (error.code().reason(), self.state.get() != State::Released) {
            self.state.set(State::Lost(reason));
        }
    }

    fn failure(&self, error: Error) -> JsValue {
        let error = if error.key().is_some() {
            error
        } else {
            error.about(self.lock.key().as_bytes())
        };
        self.shared.link.failure(&error)
    }
}
