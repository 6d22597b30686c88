//! Several independent servers, asked for threads in the background: a thread that asked one after the other would let one
//! that hangs eat up the time of all.

use std::future::pending;
use std::sync::{Arc, mpsc};

use tallylock_core::drive::{drive, nothing_to_tell};
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Grant};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Operation, Step};
use tallylock_core::time::Instant;

use super::background::{runtime, wait, wait_for};
use crate::acquiring::Acquiring;
use crate::backend::Backend;
use crate::held::Held;
use crate::per_process::PerProcess;
use crate::redlock::over;
use crate::site::Site;
use crate::way::Way;
use crate::{Client, RedlockOptions};

/// The servers, and the client that asks them in the background, in each process one of its own.
pub(super) struct Nodes {
    sites: Vec<Site>,
    backend: Arc<Backend>,
    client: PerProcess<Client>,
}

impl Nodes {
    pub(super) fn new(options: RedlockOptions) -> Self {
        let (sites, backend) = options.open();
        Self {
            sites,
            backend,
            client: PerProcess::new(),
        }
    }

    /// Connects to more than half of the servers.
    pub(super) fn reach(&self) -> Result<(), Error> {
        let client = self.client()?.clone();
        wait_for(async move { client.reach().await })?
    }

    pub(super) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    pub(super) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Drives an operation to its end, if it can be started.
    pub(super) fn run<O>(
        &self,
        start: impl FnOnce(&Settings, Instant) -> Result<(O, Step<O::Output>), Error>,
    ) -> Result<O::Output, Error>
    where
        O: Operation<Output: Send + 'static> + Send + 'static,
    {
        let (client, settings) = (self.client()?.clone(), self.backend.settings());
        let (way, now) = client.begin(settings.timeout.as_millis());
        let (operation, step) = start(settings, now)?;
        wait_for(async move { client.run(operation, step, &way).await })
    }

    /// The way of an operation that begins now and lasts for so many milliseconds at the longest, and now.
    pub(super) fn begin(&self, longest: u64) -> Result<(Way, Instant), Error> {
        Ok(self.client()?.begin(longest))
    }

    /// Drives an acquire until its caller can have an answer; what it has to undo then goes on.
    pub(super) fn acquire(
        &self,
        acquire: Acquire,
        step: Step<Result<Grant, Error>>,
        way: Way,
        acquiring: &Arc<Acquiring>,
    ) -> Result<Grant, Error> {
        let client = self.client()?.clone();
        let (answer, answered) = mpsc::channel();
        let acquiring = Arc::clone(acquiring);
        runtime()?.spawn(async move {
            let observe = |acquire: &Acquire| {
                client.backend().observe(acquire);
                acquiring.observe(acquire);
                if let Some(refusal) = acquire.refusal() {
                    // The first that is sent counts; whoever has it hears no more.
                    drop(answer.send(Err(refusal.clone())));
                }
            };
            let result = drive(
                acquire,
                step,
                &way,
                &way,
                pending(),
                nothing_to_tell,
                observe,
            )
            .await;
            client.clear_if_closed();
            drop(answer.send(result));
        });
        wait(&answered)?
    }

    /// Has a lease looked at when that is due.
    pub(super) fn keep(&self, held: &Arc<Held>) -> Result<(), Error> {
        self.client()?.keep(held);
        Ok(())
    }

    /// Has a lease renewed no more.
    pub(super) fn keep_no_longer(&self, held: &Held) {
        if let Some(client) = self.client.present() {
            client.keep_no_longer(held);
        }
    }

    /// Has the keys of a lost lease removed, if they are there yet.
    pub(super) fn give_back(&self, held: &Arc<Held>) {
        if let Some(client) = self.client.present() {
            client.give_back(held);
        }
    }

    pub(super) fn close(&self) {
        if let Some(client) = self.client.present() {
            client.close();
        }
    }

    /// The client of this process.
    fn client(&self) -> Result<&Client, Error> {
        self.client
            .get(|| Ok(over(&self.sites, &self.backend, runtime()?.clone())))
    }
}
