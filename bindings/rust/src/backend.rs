//! What both clients are built on: settings, a clock, and what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tallylock_core::claim::Claimed;
use tallylock_core::counter::Drained;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Keeping, Stolen};
use tallylock_core::metrics::{Counts, Metrics};
use tallylock_core::settings::{Scripts, Settings};
use tallylock_core::step::{Operation, Undelivered};
use tallylock_core::time::Instant;

use crate::clock::Clock;
use crate::memory::Memory;
use crate::per_process::PerProcess;

/// A client's settings, its clock, and its counts.
pub(crate) struct Backend {
    clock: Clock,
    with_scripts: Settings,
    without_scripts: Settings,
    /// By the server, or by the client's own settings.
    scripts_are_refused: AtomicBool,
    counts: PerProcess<Arc<Counts>>,
    closed: AtomicBool,
}

impl Backend {
    pub(crate) fn new(settings: Settings, clock: Clock) -> Self {
        // The server in memory has nothing but the scripts' twins.
        let avoided = settings.scripts == Scripts::Avoided && clock.memory().is_none();
        Self {
            clock,
            with_scripts: Settings {
                scripts: Scripts::Tried,
                ..settings.clone()
            },
            without_scripts: Settings {
                scripts: Scripts::Avoided,
                ..settings
            },
            scripts_are_refused: AtomicBool::new(avoided),
            counts: PerProcess::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// The time on the clock by which this client's leases run.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The same, for who waits for it to pass.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How a lease is kept here: in memory none is renewed, for what a test lets pass is a pause of the whole process.
    pub(crate) fn keeping(&self, wanted: Keeping) -> Keeping {
        match &self.clock {
            Clock::Machine => wanted,
            Clock::Virtual(_) => wanted.never(),
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
        if was_healed {
            self.counts().healed();
        }
    }

    /// What a steal has done; it is counted, and logged with its reason.
    pub(crate) fn stole(&self, stolen: Option<Stolen>) -> Option<Stolen> {
        if let Some(Stolen { fence, message }) = &stolen {
            self.counts().stolen();
            tracing::warn!(fence, "{message}");
        }
        stolen
    }

    /// What is counted in this process.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        self.counts.get_or_init(Arc::default)
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.counts().metrics()
    }

    pub(crate) fn memory(&self) -> Option<Memory> {
        self.clock
            .memory()
            .map(|server| Memory::new(Arc::clone(server)))
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
