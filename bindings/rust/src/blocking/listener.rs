//! Hearing of releases for threads that wait for them.

use std::sync::Arc;
use std::thread;

use tallylock_core::error::Error;
use tallylock_core::lock::Lock as LockSpec;
use tallylock_core::settings::Settings;
use tallylock_core::time::Wait;

use super::pool::Pool;
use crate::memory::Server;
use crate::per_process::PerProcess;
use crate::subscriber;
use crate::waiters::{Waiter, Waiters};

/// Those who wait through a client, in each process its own, and the thread that hears of releases for them. It is started for
/// the first who waits.
pub(super) struct Listener {
    memory: Option<Arc<Server>>,
    waiters: PerProcess<Arc<Waiters>>,
}

impl Listener {
    pub(super) fn new(memory: Option<Arc<Server>>) -> Self {
        Self {
            memory,
            waiters: PerProcess::new(),
        }
    }

    /// Stands in line for a lock, unless the caller does not want to wait.
    pub(super) fn join(&self, lock: &LockSpec, wait: Wait) -> Result<Waiter, Error> {
        let waiters = self.waiters.get(|| Ok(Waiters::new(self.memory.clone())))?;
        Ok(waiters.join(lock, wait))
    }

    /// Starts the thread. Where the system gives none, those who wait look by themselves.
    pub(super) fn start(&self, pool: &Pool, settings: &Settings) {
        if let Some(waiters) = self.waiters.present()
            && start(waiters, pool, settings).is_err()
        {
            waiters.not_served();
        }
    }

    /// Ends the thread as soon as nobody waits.
    pub(super) fn close(&self) {
        if let Some(waiters) = self.waiters.present() {
            waiters.close();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

fn start(waiters: &Arc<Waiters>, pool: &Pool, settings: &Settings) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let endpoint = Arc::new(pool.endpoint().clone());
    let hearing = subscriber::hear(Arc::clone(waiters), endpoint, settings.timeout);
    thread::Builder::new()
        .name("tallylock-waiting".into())
        .spawn(move || runtime.block_on(hearing))
        .map(drop)
}
