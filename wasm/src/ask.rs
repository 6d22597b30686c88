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
use crate::task::{Answer, StartedTask, Verb};

/// An operation that nobody stops.
pub(crate) enum Ask {
    /// A request of one script, whose answer is shown as it stands.
    Request(Verb),
    /// Another operation, or another way to show what it ends with.
    Own { start: Box<Start>, show: Box<Show> },
}

type Start = dyn FnOnce(&Settings, Seed, Instant) -> Result<StartedTask, Error>;
type Show = dyn FnOnce(&Rc<Shared>, Answer) -> JsValue;

impl Ask {
    pub(crate) fn new(
        start: impl FnOnce(&Settings, Seed, Instant) -> Result<StartedTask, Error> + 'static,
        show: impl FnOnce(&Rc<Shared>, Answer) -> JsValue + 'static,
    ) -> Self {
        Self::Own {
            start: Box::new(start),
            show: Box::new(show),
        }
    }

    fn start(self, shared: &Shared) -> Result<(StartedTask, Option<Box<Show>>), Error> {
        let (settings, seed, now) = shared.at_start();
        match self {
            Self::Request(verb) => Ok((Single::start(verb, settings, seed, now).into(), None)),
            Self::Own { start, show } => Ok((start(settings, seed, now)?, Some(show))),
        }
    }
}

impl Shared {
    /// Runs an operation; what cannot even be asked for, or asked of a client that is closed, rejects the promise.
    pub(crate) fn ask(self: &Rc<Self>, key: Option<&Key>, ask: Result<Ask, Error>) -> Promise {
        let (shared, key) = (Rc::clone(self), key.cloned());
        let asking = Box::pin(async move {
            let key = key.as_ref().map(Key::as_bytes);
            let _turn = shared.enter(key)?;
            let answer = match ask.and_then(|ask| ask.start(&shared)) {
                Ok((task, show)) => {
                    let answer = shared.run(task).await;
                    answer.map(|answer| (answer, show))
                }
                Err(error) => Err(error),
            };
            let (answer, show) = answer.map_err(|error| {
                let error = match key {
                    Some(key) if error.key().is_none() => error.about(key),
                    _ => error,
                };
                shared.link.failure(&error)
            })?;
            if answer.is_healed() {
                shared.counts.healed();
            }
            Ok(match show {
                Some(show) => show(&shared, answer),
                None => answer.show(),
            })
        });
        promise(&self.link.host, asking)
    }
}
