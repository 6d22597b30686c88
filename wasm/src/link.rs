//! The way from an operation to the outside: where its calls go and whose clock it goes by.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use tallylock_core::drive::{Clock, Transport};
use tallylock_core::error::Error;
use tallylock_core::lock::Keeping;
use tallylock_core::step::{Call, Lane as On, Outcome, Undelivered};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;
use tallylock_core::transaction;
use wasm_bindgen::JsValue;

use crate::client::Shared;
use crate::held::Held;
use crate::host::Host;
#[cfg(feature = "memory")]
use crate::memory::Server;
#[cfg(feature = "nodes")]
use crate::nodes;
use crate::reply;
use crate::slots::{Number, Slots};

/// What a client's operations share of the outside.
pub(crate) struct Link {
    pub(crate) host: Rc<Host>,
    pub(crate) calls: Slots<Outcome>,
    pub(crate) timers: Rc<Timers>,
    operations: Cell<u32>,
    drawn: RefCell<Drawn>,
    #[cfg(feature = "memory")]
    pub(crate) memory: Option<Rc<Server>>,
}

impl Link {
    pub(crate) fn new(host: Host) -> Self {
        let host = Rc::new(host);
        let timers = Rc::new(Timers {
            host: Rc::clone(&host),
            slots: Slots::default(),
        });
        let mut drawn = Drawn {
            bytes: [0; DRAWN_AT_ONCE],
            used: 0,
        };
        drawn.refill(&host);
        Self {
            host,
            calls: Slots::default(),
            timers,
            operations: Cell::new(0),
            drawn: RefCell::new(drawn),
            #[cfg(feature = "memory")]
            memory: None,
        }
    }

    /// The same link, whose calls go to a server in memory and whose clock is that server's.
    #[cfg(feature = "memory")]
    pub(crate) fn to_memory(host: Host, server: Rc<Server>) -> Self {
        Self {
            memory: Some(server),
            ..Self::new(host)
        }
    }

    pub(crate) fn failure(&self, error: &Error) -> JsValue {
        self.host.failure(error)
    }

    /// Sixteen bytes drawn for one operation, to make a token of.
    pub(crate) fn secret(&self) -> Seed {
        let mut drawn = self.drawn.borrow_mut();
        if drawn.used == DRAWN_AT_ONCE {
            drawn.refill(&self.host);
        }
        let mut seed = [0; SEED];
        let from = drawn.used;
        seed.copy_from_slice(&drawn.bytes[from..from + SEED]);
        drawn.used += SEED;
        Seed::new(seed)
    }

    /// Sixteen bytes for the pauses of one operation. They have to be other ones in each process and for each operation, and
    /// no secret.
    pub(crate) fn jitter(&self) -> Seed {
        let mut seed = [0; SEED];
        let (number, common) = seed.split_at_mut(4);
        number.copy_from_slice(&self.operations.get().to_le_bytes());
        common.copy_from_slice(&self.drawn.borrow().bytes[4..SEED]);
        Seed::new(seed)
    }

    /// Connects to a server, as far as the transport does so ahead of the first call.
    pub(crate) async fn open(&self, node: u16) -> Outcome {
        let call = self.calls.open();
        self.host.open(call, node);
        self.calls.wait(call, |_| ()).await
    }

    /// What a future gives, unless it takes longer than until this moment.
    pub(crate) async fn within<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let (mut future, mut timer) = (pin!(future), pin!(self.sleep_until(deadline)));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    /// How leases are kept. What a test lets pass in memory is what the process would have slept: none is renewed in it.
    #[cfg_attr(
        not(feature = "memory"),
        allow(clippy::unused_self, reason = "only a server in memory changes it")
    )]
    pub(crate) fn keeping(&self, wanted: Keeping) -> Keeping {
        #[cfg(feature = "memory")]
        if self.memory.is_some() {
            return wanted.never();
        }
        wanted
    }

    /// Has a lease looked at in time.
    pub(crate) fn watch(&self, held: &Rc<Held>, at: Instant) {
        #[cfg(feature = "memory")]
        if let Some(memory) = &self.memory {
            return memory.watch(held, at);
        }
        self.host.watch(held.number, at.as_millis() as f64);
    }

    /// Has a lease looked at no more; and whether there is nothing left of it.
    pub(crate) fn unwatch(&self, held: &Held, is_gone: bool) {
        #[cfg(feature = "memory")]
        if let Some(memory) = &self.memory {
            memory.unwatch(held);
        }
        self.host.unwatch(held.number, is_gone);
    }

    /// A number for one operation.
    fn number(&self) -> u32 {
        let operation = self.operations.get();
        self.operations.set(operation.wrapping_add(1));
        operation
    }
}

const SEED: usize = 16;
const DRAWN_AT_ONCE: usize = 128 * SEED;

/// Random bytes, many at once: the first go into what need not be secret, the others are used one after the other.
struct Drawn {
    bytes: [u8; DRAWN_AT_ONCE],
    used: usize,
}

impl Drawn {
    fn refill(&mut self, host: &Host) {
        host.random(&mut self.bytes);
        self.used = SEED;
    }
}

/// The host's timers.
pub(crate) struct Timers {
    host: Rc<Host>,
    slots: Slots<()>,
}

impl Timers {
    /// Waits until a moment on the host's clock; until the next turn if it is over.
    pub(crate) async fn until(&self, moment: Instant) {
        let timer = self.slots.open();
        self.host.set_timer(timer, moment.as_millis() as f64);
        self.slots
            .wait(timer, |timer| self.host.clear_timer(timer))
            .await;
    }

    /// Takes in that a timer has run out.
    pub(crate) fn ran_out(&self, timer: Number) {
        self.slots.put(timer, ());
    }
}

impl Clock for &Link {
    fn now(&self) -> Instant {
        #[cfg(feature = "memory")]
        if let Some(memory) = &self.memory {
            return memory.now();
        }
        Instant::from_millis(self.host.now() as u64)
    }

    async fn sleep_until(&self, until: Instant) {
        #[cfg(feature = "memory")]
        if let Some(memory) = &self.memory {
            return memory.sleep_until(&self.timers, until).await;
        }
        self.timers.until(until).await;
    }
}

/// What an operation sends through: its calls are known as belonging together, since an undo has to follow what it undoes
/// on the same connection.
pub(crate) struct Lane<'a> {
    shared: &'a Rc<Shared>,
    operation: u32,
}

impl<'a> Lane<'a> {
    /// A lane for one operation.
    pub(crate) fn new(shared: &'a Rc<Shared>) -> Self {
        Self {
            shared,
            operation: shared.link.number(),
        }
    }
}

impl Transport for Lane<'_> {
    async fn send(&self, call: Call) -> Outcome {
        let link = &self.shared.link;
        #[cfg(feature = "memory")]
        if let Some(memory) = &link.memory {
            return memory.execute(&call);
        }
        if call.lane != On::Shared {
            // A transaction needs a connection that nobody else uses meanwhile.
            return Err(Undelivered::Refused(transaction::unavailable()));
        }
        let Link { host, calls, .. } = link;
        let (number, node, operation) = (calls.open(), call.node.0, self.operation);
        let count = u32::try_from(call.commands.len()).unwrap_or(u32::MAX);
        let resp = reply::encode(&call.commands);
        host.send(number, node, operation, count, &resp);
        #[cfg(feature = "nodes")]
        if nodes::are_several(self.shared) {
            return nodes::answer(self.shared, number, node, operation).await;
        }
        calls.wait(number, |_| host.forget(node, operation)).await
    }
}
