//! What both clients are built on: settings, where the data is, and what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tallylock_core::claim::Claimed;
use tallylock_core::counter::Drained;
use tallylock_core::error::{Code, Error};
use tallylock_core::settings::{Scripts, Settings};
use tallylock_core::step::{Operation, Undelivered};
use tallylock_core::time::Instant;

use crate::clock;
use crate::memory::{Memory, Server};

/// A client's settings, its data's place (`S` for one behind a socket), and its counts.
pub(crate) struct Backend<S> {
    pub(crate) place: Place<S>,
    with_scripts: Settings,
    without_scripts: Settings,
    scripts_are_refused: AtomicBool,
    healed: AtomicU64,
    closed: AtomicBool,
}

/// Where the data is.
pub(crate) enum Place<S> {
    Server(S),
    Memory(Arc<Server>),
}

impl<S> Backend<S> {
    pub(crate) fn new(settings: Settings, place: Place<S>) -> Self {
        Self {
            place,
            without_scripts: Settings {
                scripts: Scripts::Avoided,
                ..settings.clone()
            },
            with_scripts: settings,
            scripts_are_refused: AtomicBool::new(false),
            healed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// The time on the clock by which this client's leases run.
    pub(crate) fn now(&self) -> Instant {
        match &self.place {
            Place::Server(_) => clock::now(),
            Place::Memory(server) => server.now(),
        }
    }

    /// The settings for an operation that begins now.
    pub(crate) fn settings(&self) -> &Settings {
        if self.scripts_are_refused.load(Ordering::Relaxed) {
            &self.without_scripts
        } else {
            &self.with_scripts
        }
    }

    /// Remembers what an operation under way has met.
    pub(crate) fn observe(&self, operation: &impl Operation) {
        if operation.met_refusal_of_scripts() {
            self.scripts_are_refused.store(true, Ordering::Relaxed);
        }
    }

    /// The amount that a drain took; a healed counter is counted.
    pub(crate) fn drained(&self, drained: Option<Drained>) -> Option<i64> {
        let drained = drained?;
        self.count_healed(drained.healed);
        Some(drained.amount)
    }

    /// What a claim took; a healed counter is counted.
    pub(crate) fn claimed(&self, claimed: Option<Claimed>) -> Option<Claimed> {
        self.count_healed(claimed.is_some_and(|claimed| claimed.healed));
        claimed
    }

    fn count_healed(&self, was_healed: bool) {
        self.healed
            .fetch_add(u64::from(was_healed), Ordering::Relaxed);
    }

    pub(crate) fn healed(&self) -> u64 {
        self.healed.load(Ordering::Relaxed)
    }

    pub(crate) fn memory(&self) -> Option<Memory> {
        match &self.place {
            Place::Server(_) => None,
            Place::Memory(server) => Some(Memory::new(Arc::clone(server))),
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// `closed` if it is.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(Code::Closed, "the client was closed"));
        }
        Ok(())
    }
}

/// Why a client could not connect.
pub(crate) fn connect_error(undelivered: Undelivered) -> Error {
    match undelivered {
        Undelivered::Refused(error) => error,
        Undelivered::NotSent(why) | Undelivered::MaybeSent(why) => {
            Error::new(Code::Unavailable, why)
        }
    }
}
