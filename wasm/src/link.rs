//! The way from an operation to the outside: where its calls go and whose clock it goes by.

use std::cell::Cell;
use std::rc::Rc;

use tallylock_core::drive::{Clock, Transport};
use tallylock_core::error::Error;
use tallylock_core::step::{Call, Lane as On, Outcome, Undelivered};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;
use tallylock_core::transaction;
use wasm_bindgen::JsValue;

use crate::host::Host;
#[cfg(feature = "memory")]
use crate::memory::Server;
use crate::reply;
use crate::slots::{Number, Slots};

/// What a client's operations share of the outside.
pub(crate) struct Link {
    host: Host,
    pub(crate) calls: Slots<Outcome>,
    pub(crate) timers: Rc<Timers>,
    operations: Cell<u32>,
    #[cfg(feature = "memory")]
    pub(crate) memory: Option<Rc<Server>>,
}

impl Link {
    pub(crate) fn new(host: Host) -> Self {
        let timers = Rc::new(Timers {
            host: host.again(),
            slots: Slots::default(),
        });
        Self {
            host,
            calls: Slots::default(),
            timers,
            operations: Cell::new(0),
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

    #[cfg(feature = "memory")]
    pub(crate) fn host(&self) -> Host {
        self.host.again()
    }

    pub(crate) fn failure(&self, error: &Error) -> JsValue {
        self.host.failure(error)
    }

    /// Sixteen bytes drawn for one operation.
    pub(crate) fn seed(&self) -> Seed {
        let mut bytes = [0; 16];
        let drawn = self.host.random();
        // A host that gives fewer would otherwise end the instance by a panic.
        if drawn.length() == 16 {
            drawn.copy_to(&mut bytes);
        }
        Seed::new(bytes)
    }

    /// Connects, as far as the transport does so ahead of the first call.
    pub(crate) async fn open(&self) -> Outcome {
        let call = self.calls.open();
        self.host.open(call);
        self.calls.wait(call, |_| ()).await
    }

    /// A lane for one operation.
    pub(crate) fn lane(&self) -> Lane<'_> {
        let operation = self.operations.get();
        self.operations.set(operation.wrapping_add(1));
        Lane {
            link: self,
            operation,
        }
    }
}

/// The host's timers.
pub(crate) struct Timers {
    host: Host,
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
    link: &'a Link,
    operation: u32,
}

impl Transport for Lane<'_> {
    async fn send(&self, call: Call) -> Outcome {
        #[cfg(feature = "memory")]
        if let Some(memory) = &self.link.memory {
            return memory.execute(&call);
        }
        if call.lane != On::Shared {
            // A transaction needs a connection that nobody else uses meanwhile.
            return Err(Undelivered::Refused(transaction::unavailable()));
        }
        let Link { host, calls, .. } = self.link;
        let number = calls.open();
        let count = u32::try_from(call.commands.len()).unwrap_or(u32::MAX);
        host.send(
            number,
            self.operation,
            count,
            &reply::encode(&call.commands),
        );
        calls.wait(number, |_| host.forget(self.operation)).await
    }
}
