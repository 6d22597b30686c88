//! A client: what its handles share, and how a call of JavaScript becomes an operation that is driven.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use js_sys::Promise;
use tallylock_core::drive::{Clock, drive, nothing_to_tell};
use tallylock_core::error::{Code, Error};
use tallylock_core::key::Key;
use tallylock_core::lock::Keeping;
use tallylock_core::metrics::Counts;
use tallylock_core::settings::Settings;
use tallylock_core::step::{Event, Node, Undelivered};
use tallylock_core::time::Instant;
use tallylock_core::token::{Label, Seed};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::counter::Counter;
use crate::duration;
use crate::executor::promise;
use crate::hearing::{self, Hearing};
use crate::held::Held;
use crate::host::Host;
use crate::link::{Lane, Link};
use crate::lock::Lock;
use crate::reply;
use crate::slots::{Number, Slots};
use crate::stop::{Stop, Wish};
use crate::task::{Answer, StartedTask, Task};
use crate::value::Value;
use crate::waiters::Waiters;

/// A client of one server.
#[wasm_bindgen]
pub struct Client {
    shared: Rc<Shared>,
}

#[wasm_bindgen]
impl Client {
    /// A client over what the host gives; `invalid_argument` for a time-out or a label that cannot be.
    #[wasm_bindgen(constructor)]
    pub fn new(
        host: Host,
        timeout_ms: Option<f64>,
        label: Option<String>,
    ) -> Result<Client, JsValue> {
        let settings = settings(timeout_ms, label).map_err(|error| host.failure(&error))?;
        Ok(Self::over(Link::new(host), settings))
    }

    /// How long a call may take, in milliseconds.
    #[wasm_bindgen(getter, js_name = timeoutMs)]
    pub fn timeout_ms(&self) -> f64 {
        self.shared.timeout() as f64
    }

    /// Connects. Rejects with `forbidden`, `unavailable` or `timeout`.
    pub fn open(&self) -> Promise {
        let shared = Rc::clone(&self.shared);
        let opening = Box::pin(async move {
            let _turn = shared.enter(None)?;
            let link = &shared.link;
            let deadline = shared.now().plus(shared.timeout());
            let error = match link.within(deadline, link.open(Node::ONLY.0)).await {
                Some(Ok(_)) => return Ok(JsValue::UNDEFINED),
                Some(Err(Undelivered::Refused(error))) => error,
                Some(Err(Undelivered::NotSent(why) | Undelivered::MaybeSent(why))) => {
                    Error::new(Code::Unavailable, why)
                }
                None => Error::new(Code::Timeout, "no connection by the deadline"),
            };
            Err(link.failure(&error))
        });
        promise(&self.shared.link.host, opening)
    }

    /// A counter; `invalid_argument` for a key or a TTL that cannot be.
    pub fn counter(&self, key: Vec<u8>, ttl_ms: f64, fixed: bool) -> Result<Counter, JsValue> {
        self.make(|shared| {
            Ok(Counter::new(
                shared,
                Key::new(key)?,
                duration::ttl(ttl_ms)?,
                fixed,
            ))
        })
    }

    /// A value; `invalid_argument` for a key that cannot be.
    pub fn value(&self, key: Vec<u8>) -> Result<Value, JsValue> {
        self.make(|shared| Ok(Value::new(shared, Key::new(key)?)))
    }

    /// A lock, renewed so often, or never, or after a third of its TTL, and no longer than so; `invalid_argument` for a key or
    /// a time that cannot be.
    pub fn lock(
        &self,
        key: Vec<u8>,
        ttl_ms: f64,
        is_renewed: bool,
        renew_every_ms: Option<f64>,
        max_hold_ms: Option<f64>,
    ) -> Result<Lock, JsValue> {
        self.make(|shared| {
            let key = Key::new(key)?;
            let ttl = duration::lease_ttl(ttl_ms)?;
            let mut keeping = Keeping::default();
            if let Some(ms) = renew_every_ms {
                keeping = keeping.every(duration::least_one("renewEveryMs", ms)?, ttl)?;
            }
            if let Some(ms) = max_hold_ms {
                keeping = keeping.at_most(duration::least_one("maxHoldMs", ms)?);
            }
            if !is_renewed {
                keeping = keeping.never();
            }
            Ok(Lock::new(shared, key, ttl, keeping))
        })
    }

    /// What was counted, by its place in core's `Counts`; -1 for nothing yet.
    pub fn figure(&self, place: usize) -> f64 {
        let figure = self.shared.counts.figure(place);
        figure.map_or(-1.0, |figure| figure as f64)
    }

    /// The error for an argument that JavaScript could not even hand over.
    #[wasm_bindgen(js_name = invalidArgument)]
    pub fn invalid_argument(&self, detail: String, key: Option<Vec<u8>>) -> JsValue {
        let error = Error::new(Code::InvalidArgument, detail);
        self.shared
            .link
            .failure(&key.map_or(error.clone(), |key| error.about(&key)))
    }

    /// Takes in the replies to a call, one a command, in RESP.
    pub fn answered(&self, call: Number, replies: &[u8]) {
        self.shared.link.calls.put(call, reply::decode(replies));
    }

    /// Takes in that a call has no replies: `sent` is `no`, `maybe` or `refused`.
    pub fn undelivered(
        &self,
        call: Number,
        sent: &str,
        message: String,
        server_words: Option<String>,
    ) {
        let undelivered = reply::undelivered(sent, message, server_words.as_deref());
        self.shared.link.calls.put(call, Err(undelivered));
    }

    /// Takes in that a timer has run out.
    pub fn woke(&self, timer: Number) {
        self.shared.link.timers.ran_out(timer);
    }

    /// Takes in that it is time to look at a lease, or at the connection for subscriptions.
    pub fn due(&self, lease: Number) {
        if cfg!(feature = "waiting") && lease == hearing::ALARM {
            hearing::alarm(&self.shared);
        } else if let Some(held) = self.shared.leases.look(lease) {
            held.look();
        }
    }

    /// Takes in that nobody has a lease any more.
    pub fn forget(&self, lease: Number) {
        self.shared.leases.close(lease);
    }

    /// Refuses further calls, stops acquires that wait, and resolves once nothing is under way any more.
    pub fn close(&self) -> Promise {
        let shared = Rc::clone(&self.shared);
        shared.closed.set(true);
        for stop in shared.stops.take() {
            if let Some(stop) = stop.upgrade() {
                stop.fire(Wish::Closed);
            }
        }
        if cfg!(feature = "waiting") {
            hearing::tend(&shared);
        }
        let closing = Box::pin(async move {
            poll_fn(|context| {
                if shared.running.get() == 0 {
                    return Poll::Ready(());
                }
                shared.closing.borrow_mut().push(context.waker().clone());
                Poll::Pending
            })
            .await;
            Ok(JsValue::UNDEFINED)
        });
        promise(&self.shared.link.host, closing)
    }
}

/// The error for options that a client cannot be made with.
#[wasm_bindgen(js_name = refuseOptions)]
pub fn refuse_options(host: &Host, detail: String) -> JsValue {
    host.failure(&Error::new(Code::InvalidArgument, detail))
}

impl Client {
    pub(crate) fn over(link: Link, settings: Settings) -> Self {
        Self {
            shared: Rc::new(Shared {
                link,
                settings,
                closed: Cell::new(false),
                counts: Counts::default(),
                running: Cell::new(0),
                closing: RefCell::default(),
                stops: RefCell::default(),
                leases: Slots::default(),
                waiters: Waiters::default(),
                hearing: Hearing::default(),
            }),
        }
    }

    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    fn make<H>(&self, make: impl FnOnce(Rc<Shared>) -> Result<H, Error>) -> Result<H, JsValue> {
        make(Rc::clone(&self.shared)).map_err(|error| self.shared.link.failure(&error))
    }
}

/// The settings for what JavaScript has given of them; core's defaults for the rest.
pub(crate) fn settings(timeout_ms: Option<f64>, label: Option<String>) -> Result<Settings, Error> {
    let mut settings = Settings::default();
    if let Some(ms) = timeout_ms {
        settings.timeout = duration::ttl(ms)?;
    }
    settings.label = label.map(Label::new).transpose()?;
    Ok(settings)
}

/// What a client and its handles share.
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) settings: Settings,
    pub(crate) counts: Counts,
    closed: Cell<bool>,
    /// How many operations are under way.
    running: Cell<u32>,
    /// Who waits for none to be under way.
    closing: RefCell<Vec<Waker>>,
    /// The acquires that a close has to stop.
    stops: RefCell<Vec<Weak<Stop>>>,
    /// The leases that JavaScript has, but for those that were released.
    pub(crate) leases: Slots<Rc<Held>>,
    pub(crate) waiters: Waiters,
    pub(crate) hearing: Hearing,
}

impl Shared {
    pub(crate) fn timeout(&self) -> u64 {
        self.settings.timeout.as_millis()
    }

    pub(crate) fn now(&self) -> Instant {
        (&self.link).now()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Enters an operation, unless the client is closed.
    pub(crate) fn enter(&self, key: Option<&[u8]>) -> Result<Turn<'_>, JsValue> {
        if self.closed.get() {
            return Err(self.link.failure(&closed(key)));
        }
        Ok(self.begin())
    }

    /// Begins an operation that even a closed client owes.
    pub(crate) fn begin(&self) -> Turn<'_> {
        self.running.set(self.running.get() + 1);
        Turn { shared: self }
    }

    /// Lets a close stop an operation.
    pub(crate) fn stop_on_close(&self, stop: &Rc<Stop>) {
        let mut stops = self.stops.borrow_mut();
        stops.retain(|known| known.strong_count() > 0);
        stops.push(Rc::downgrade(stop));
    }

    /// What an operation is started with; an acquire needs a [secret](Link::secret).
    pub(crate) fn at_start(&self) -> (&Settings, Seed, Instant) {
        (&self.settings, self.link.jitter(), self.now())
    }

    /// Drives a task that nobody stops to its end.
    pub(crate) async fn run(self: &Rc<Self>, started: StartedTask) -> Result<Answer, Error> {
        self.run_until(&Stop::default(), started, &mut nothing_to_tell, &mut |_| ())
            .await
    }

    /// Drives a task to its end, tells it what `notified` gives, and shows it to `observe` after every step.
    pub(crate) async fn run_until(
        self: &Rc<Self>,
        stop: &Stop,
        StartedTask(task, first): StartedTask,
        notified: &mut dyn FnMut(&mut Context<'_>) -> Poll<Event>,
        observe: &mut dyn FnMut(&Task),
    ) -> Result<Answer, Error> {
        drive(
            task,
            first,
            Lane::new(self),
            &self.link,
            stop.fired(),
            notified,
            observe,
        )
        .await
    }
}

/// An operation that is under way.
pub(crate) struct Turn<'a> {
    shared: &'a Shared,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let running = self.shared.running.get().saturating_sub(1);
        self.shared.running.set(running);
        if running == 0 {
            self.shared.closing.take().into_iter().for_each(Waker::wake);
        }
    }
}

pub(crate) fn closed(key: Option<&[u8]>) -> Error {
    let error = Error::new(Code::Closed, "the client is closed");
    match key {
        Some(key) => error.about(key),
        None => error,
    }
}
