//! What a verb asks of a client: how its operation starts, and what JavaScript gets of its answer.
//!
//! Both are boxed, so that what runs them is compiled once for all verbs.

use std::rc::Rc;

use js_sys::Promise;
use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::request::Single;
use tallylock_core::settings::Settings;
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;
use wasm_bindgen::JsValue;

use crate::client::Shared;
use crate::executor::promise;
use crate::stop::Stop;
use crate::task::{Answer, StartedTask, Verb};

/// An operation that nobody stops.
pub(crate) struct Ask {
    start: Box<Start>,
    show: Box<Show>,
}

type Start = dyn FnOnce(&Settings, Seed, Instant) -> Result<StartedTask, Error>;
type Show = dyn FnOnce(&Rc<Shared>, Answer) -> JsValue;

impl Ask {
    pub(crate) fn new(
        start: impl FnOnce(&Settings, Seed, Instant) -> Result<StartedTask, Error> + 'static,
        show: impl FnOnce(&Rc<Shared>, Answer) -> JsValue + 'static,
    ) -> Self {
        Self {
            start: Box::new(start),
            show: Box::new(show),
        }
    }

    /// A request of one script, whose answer is shown as it stands.
    pub(crate) fn request(request: impl Into<Verb>) -> Self {
        Self::showing(request.into(), |_, answer| answer.show())
    }

    /// A request of one script, and what is made of its answer.
    pub(crate) fn showing(
        request: Verb,
        show: impl FnOnce(&Rc<Shared>, Answer) -> JsValue + 'static,
    ) -> Self {
        let start = move |settings: &Settings, seed, now| {
            Ok(Single::start(request, settings, seed, now).into())
        };
        Self::new(start, show)
    }
}

impl Shared {
    /// Runs an operation; what cannot even be asked for, or asked of a client that is closed, rejects the promise.
    pub(crate) fn ask(self: &Rc<Self>, key: Option<&Key>, ask: Result<Ask, Error>) -> Promise {
        let (shared, key) = (Rc::clone(self), key.cloned());
        promise(async move {
            let key = key.as_ref().map(Key::as_bytes);
            let _turn = shared.enter(key)?;
            let failure = |error: Error| {
                let error = match key {
                    Some(key) if error.key().is_none() => error.about(key),
                    _ => error,
                };
                shared.link.failure(&error)
            };
            let Ask { start, show } = ask.map_err(failure)?;
            let (settings, seed, now) = shared.at_start();
            let started = start(settings, seed, now).map_err(failure)?;
            let answer = shared.run(started, &Stop::default(), &mut |_| ()).await;
            let answer = answer.map_err(failure)?;
            if answer.is_healed() {
                shared.count_healed();
            }
            Ok(show(&shared, answer))
        })
    }
}
