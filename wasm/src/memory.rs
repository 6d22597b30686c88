//! `memory://`: a server in memory with a clock of its own, and its face for tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use js_sys::{Array, Uint8Array};
use tallylock_core::error::Error;
use tallylock_core::memory::Memory;
use tallylock_core::step::{Call, Outcome};
use tallylock_core::time::{Instant, Ttl};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{Client, Shared, settings};
use crate::duration;
use crate::executor::spawn;
use crate::held::Held;
use crate::host::Host;
use crate::link::{Link, Timers};
use crate::slots::{Number, Slots};

/// A server in memory. When all its callers are parked, its clock jumps to the next moment that one of them waits for.
#[derive(Default)]
pub(crate) struct Server {
    node: RefCell<Memory>,
    sleepers: Slots<()>,
    /// When to wake whom.
    alarms: RefCell<Vec<(Instant, Who)>>,
    /// A look at whether all are parked is on its way.
    looking: Cell<bool>,
    /// The clients whose waiters are told of what is published.
    clients: RefCell<Vec<Weak<Shared>>>,
}

/// Who is woken at some moment.
#[derive(Clone)]
enum Who {
    /// A caller who waits for that: the clock may jump there.
    Sleeper(Number),
    /// A lease, if the clock comes by.
    Lease(Weak<Held>),
}

impl Who {
    fn is_sleeper(&self, number: Number) -> bool {
        matches!(self, Self::Sleeper(known) if *known == number)
    }

    fn is_lease(&self, held: &Held) -> bool {
        matches!(self, Self::Lease(known) if std::ptr::eq(known.as_ptr(), held))
    }
}

thread_local! {
    /// The servers that have a name, as long as a client has them.
    static NAMED: RefCell<BTreeMap<String, Weak<Server>>> = const { RefCell::new(BTreeMap::new()) };
}

impl Server {
    /// The server of this name; one of its own for a client that gives none.
    fn named(name: &str) -> Rc<Self> {
        if name.is_empty() {
            return Rc::default();
        }
        NAMED.with_borrow_mut(|named| {
            named.retain(|_, server| server.strong_count() > 0);
            named.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
                let server = Rc::default();
                named.insert(name.into(), Rc::downgrade(&server));
                server
            })
        })
    }

    pub(crate) fn now(&self) -> Instant {
        self.node.borrow().now()
    }

    /// Executes a call at once, and tells what it has published.
    pub(crate) fn execute(&self, call: &Call) -> Outcome {
        let mut node = self.node.borrow_mut();
        let outcome = node.execute(call);
        let published = node.published().to_vec();
        drop(node);
        for channel in published {
            let clients = self.clients.borrow().clone();
            for client in clients.iter().filter_map(Weak::upgrade) {
                client.waiters.released(&channel);
            }
        }
        outcome
    }

    /// Has the waiters of a client told.
    fn tell(&self, client: &Rc<Shared>) {
        let mut clients = self.clients.borrow_mut();
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Rc::downgrade(client));
    }

    pub(crate) async fn sleep_until(self: &Rc<Self>, timers: &Rc<Timers>, until: Instant) {
        let sleeper = self.sleepers.open();
        self.alarms
            .borrow_mut()
            .push((until, Who::Sleeper(sleeper)));
        self.look_soon(Rc::clone(timers));
        let forget = |sleeper| {
            self.alarms
                .borrow_mut()
                .retain(|(_, who)| !who.is_sleeper(sleeper));
        };
        self.sleepers.wait(sleeper, forget).await;
    }

    pub(crate) fn watch(&self, held: &Rc<Held>, at: Instant) {
        self.unwatch(held);
        self.alarms
            .borrow_mut()
            .push((at, Who::Lease(Rc::downgrade(held))));
    }

    pub(crate) fn unwatch(&self, held: &Held) {
        self.alarms
            .borrow_mut()
            .retain(|(_, who)| !who.is_lease(held));
    }

    /// The next moment that a caller waits for.
    fn next_wake(&self) -> Option<Instant> {
        let alarms = self.alarms.borrow();
        let sleepers = alarms
            .iter()
            .filter(|(_, who)| matches!(who, Who::Sleeper(_)));
        sleepers.map(|(at, _)| *at).min()
    }

    fn take_due(&self) -> Option<Who> {
        let now = self.now();
        let mut alarms = self.alarms.borrow_mut();
        let (place, (at, _)) = alarms.iter().enumerate().min_by_key(|(_, (at, _))| *at)?;
        (*at <= now).then(|| alarms.remove(place).1)
    }

    fn advance(&self, millis: u64) {
        self.node.borrow_mut().advance(millis);
        while let Some(who) = self.take_due() {
            match who {
                Who::Sleeper(sleeper) => self.sleepers.put(sleeper, ()),
                Who::Lease(held) => {
                    if let Some(held) = held.upgrade() {
                        held.look();
                    }
                }
            }
        }
    }

    /// Once JavaScript has nothing left to do at once, whoever is not done is parked.
    fn look_soon(self: &Rc<Self>, timers: Rc<Timers>) {
        if self.looking.replace(true) {
            return;
        }
        let server = Rc::clone(self);
        spawn(Box::pin(async move {
            loop {
                timers.until(Instant::from_millis(0)).await;
                let Some(at) = server.next_wake() else { break };
                server.advance(at.since(server.now()));
            }
            server.looking.set(false);
            Ok(JsValue::UNDEFINED)
        }));
    }
}

/// The face of a server in memory for tests.
#[wasm_bindgen]
pub struct MemoryFace {
    server: Rc<Server>,
    host: Rc<Host>,
}

#[wasm_bindgen]
impl Client {
    /// A client of the server in memory of this name, or of one of its own if the name is empty.
    #[wasm_bindgen(js_name = ofMemory)]
    pub fn of_memory(
        host: Host,
        name: &str,
        timeout_ms: Option<f64>,
        label: Option<String>,
    ) -> Result<Client, JsValue> {
        let settings = settings(timeout_ms, label).map_err(|error| host.failure(&error))?;
        let server = Server::named(name);
        let client = Self::over(Link::to_memory(host, Rc::clone(&server)), settings);
        server.tell(client.shared());
        Ok(client)
    }

    /// The face for tests of the server in memory, if it has one.
    #[wasm_bindgen(getter)]
    pub fn memory(&self) -> Option<MemoryFace> {
        let link = &self.shared().link;
        link.memory.as_ref().map(|server| MemoryFace {
            server: Rc::clone(server),
            host: Rc::clone(&link.host),
        })
    }
}

#[wasm_bindgen]
impl MemoryFace {
    /// Lets so many milliseconds pass.
    pub fn advance(&self, ms: f64) -> Result<(), JsValue> {
        let time = self.understand(duration::time("time", ms))?;
        self.server.advance(time.as_millis());
        Ok(())
    }

    /// Every live key: `[key, value or null for another type, remaining milliseconds or null]`.
    pub fn keys(&self) -> Array {
        let bytes = |bytes: &[u8]| JsValue::from(Uint8Array::from(bytes));
        let number = |number: u64| JsValue::from(number as f64);
        let node = self.server.node.borrow();
        node.keys()
            .map(|(key, text, ttl)| {
                let (text, ttl) = (
                    text.map_or(JsValue::NULL, bytes),
                    ttl.map_or(JsValue::NULL, number),
                );
                Array::of3(&bytes(key), &text, &ttl)
            })
            .collect()
    }

    /// Puts a text there as another program would.
    pub fn put(&self, key: &[u8], value: &[u8], ttl_ms: Option<f64>) -> Result<(), JsValue> {
        let ttl = self.ttl(ttl_ms)?;
        self.server.node.borrow_mut().put(key, value, ttl);
        Ok(())
    }

    /// Puts a key of another type there as another program would.
    #[wasm_bindgen(js_name = putOtherType)]
    pub fn put_other_type(&self, key: &[u8], ttl_ms: Option<f64>) -> Result<(), JsValue> {
        let ttl = self.ttl(ttl_ms)?;
        self.server.node.borrow_mut().put_other_type(key, ttl);
        Ok(())
    }

    /// Removes a key as another program would.
    pub fn remove(&self, key: &[u8]) {
        self.server.node.borrow_mut().remove(key);
    }

    /// Executes the next call, but loses its reply.
    #[wasm_bindgen(js_name = loseNextReply)]
    pub fn lose_next_reply(&self) {
        self.server.node.borrow_mut().lose_next_reply();
    }

    /// Forgets which scripts it was sent, as a server does when it restarts.
    #[wasm_bindgen(js_name = forgetScripts)]
    pub fn forget_scripts(&self) {
        self.server.node.borrow_mut().forget_scripts();
    }
}

impl MemoryFace {
    fn ttl(&self, ms: Option<f64>) -> Result<Option<Ttl>, JsValue> {
        self.understand(ms.map(duration::ttl).transpose())
    }

    fn understand<T>(&self, parsed: Result<T, Error>) -> Result<T, JsValue> {
        parsed.map_err(|error| self.host.failure(&error))
    }
}
