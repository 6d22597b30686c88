//! Renewing the leases of threads that do something else meanwhile.

use std::sync::{Arc, OnceLock};
use std::thread;

use tallylock_core::error::{Code, Error};
use tallylock_core::settings::Settings;
use tallylock_core::time::Instant;

use crate::Client;
use crate::clock::Clock;
use crate::held::Held;
use crate::renewals::Renewals;
use crate::site::Site;

/// The leases of a client, and the thread that renews them over a connection of its own. It is started for the first.
pub(super) struct Renewer {
    process: u32,
    renewals: Arc<Renewals>,
    /// Those of a child of this process, which has neither its thread nor, perhaps, an open lock.
    child: OnceLock<Box<Renewer>>,
}

impl Renewer {
    pub(super) fn new(clock: Clock) -> Self {
        Self::of_process(std::process::id(), clock)
    }

    fn of_process(process: u32, clock: Clock) -> Self {
        Self {
            process,
            renewals: Renewals::new(clock),
            child: OnceLock::new(),
        }
    }

    /// Has a lease looked at when that is due.
    pub(super) fn keep(
        &self,
        held: &Arc<Held>,
        at: Instant,
        site: impl FnOnce() -> Site,
        settings: &Settings,
    ) -> Result<(), Error> {
        let renewals = &self.of(std::process::id()).renewals;
        if !renewals.put(held, at) {
            return Ok(());
        }
        start(renewals, &site(), settings.clone()).map_err(|error| {
            renewals.not_started();
            let detail = format!("the system starts no thread to renew leases: {error}");
            Error::new(Code::Unavailable, detail)
        })
    }

    /// Has a lease of this process renewed no more.
    pub(super) fn remove(&self, held: &Held) {
        if held.is_here() {
            self.of(std::process::id()).renewals.remove(held);
        }
    }

    /// Has the key of a lost lease removed, if it is there yet.
    pub(super) fn give_back(&self, held: &Arc<Held>) {
        if held.is_here() {
            self.of(std::process::id()).renewals.give_back(held);
        }
    }

    /// Renews no lease any more.
    pub(super) fn renew_no_more(&self) {
        self.of(std::process::id()).renewals.renew_no_more();
    }

    fn of(&self, process: u32) -> &Self {
        if process == self.process {
            return self;
        }
        let child = || Box::new(Self::of_process(process, self.renewals.clock()));
        self.child.get_or_init(child).of(process)
    }
}

impl Drop for Renewer {
    fn drop(&mut self) {
        // In a child the queue is the parent's, and perhaps locked for ever.
        if std::process::id() == self.process {
            self.renewals.close();
        }
    }
}

fn start(renewals: &Arc<Renewals>, site: &Site, settings: Settings) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = Client::for_renewals(settings, site, runtime.handle().clone(), renewals);
    let renewals = Arc::clone(renewals);
    thread::Builder::new()
        .name("tallylock-renewal".into())
        .spawn(move || runtime.block_on(renewals.run(client.downgrade())))
        .map(drop)
}
