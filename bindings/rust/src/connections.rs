//! The connections of a client: one that all operations share, and some for those that need one of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock_core::step::Undelivered;
use tallylock_core::time::{Instant, Ttl};
use tokio::runtime::Handle;

use crate::clock;
use crate::connection::{Connection, Sending};
use crate::endpoint::Endpoint;
use crate::opening::{Opened, Opening, Queued};
use crate::timers::Timers;

/// How many connections are kept for operations that need one of their own.
const MOST_IDLE: usize = 4;

/// Opens connections when they are needed, on the client's runtime.
pub(crate) struct Connections {
    endpoint: Arc<Endpoint>,
    timeout: Ttl,
    runtime: Handle,
    timers: Timers,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    shared: Option<Arc<Opening>>,
    idle: Vec<Arc<Connection>>,
}

impl Connections {
    pub(crate) fn new(endpoint: Endpoint, timeout: Ttl, runtime: Handle) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            timeout,
            timers: Timers::new(runtime.clone()),
            runtime,
            known: Mutex::default(),
        }
    }

    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.endpoint)
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// The connection that all share; waits for it no longer than until this moment.
    pub(crate) async fn shared(&self, until: Instant) -> Opened {
        self.wait(&self.opening(), until).await
    }

    /// The shared connection, which begins to be opened if it is not, or is no longer good.
    pub(crate) fn opening(&self) -> Arc<Opening> {
        let mut known = self.known();
        if let Some(opening) = known.shared.as_ref().filter(|opening| opening.is_good()) {
            return Arc::clone(opening);
        }
        let opening = self.open();
        known.shared = Some(Arc::clone(&opening));
        opening
    }

    /// Waits until a call is sent; gives over which connection, and what comes of it.
    pub(crate) async fn sent(
        &self,
        queued: Queued,
    ) -> Result<(Arc<Connection>, Sending), Undelivered> {
        let opened = self.wait(&queued.opening, queued.until).await;
        match (queued.leave(), opened) {
            (Some(sent), _) => Ok(sent),
            (None, Err(error)) => Err(error),
            // It was too late for the call.
            (None, Ok(_)) => Err(self.no_answer()),
        }
    }

    /// A connection that nobody else uses until it is [put back](Self::put_back).
    pub(crate) async fn own(&self, until: Instant) -> Opened {
        loop {
            let idle = self.known().idle.pop();
            let Some(connection) = idle else { break };
            if connection.is_good() {
                return Ok(connection);
            }
        }
        self.wait(&self.open(), until).await
    }

    /// Keeps a connection for the next operation that needs one of its own.
    pub(crate) fn put_back(&self, connection: Arc<Connection>) {
        let mut known = self.known();
        if connection.is_good() && known.idle.len() < MOST_IDLE {
            known.idle.push(connection);
        }
    }

    /// Closes the connections, each when the last operation on it is over.
    pub(crate) fn clear(&self) {
        let closed = std::mem::take(&mut *self.known());
        drop(closed);
    }

    /// Opens a connection in a task: a caller who gives up does not stop it, since others may wait for it too.
    fn open(&self) -> Arc<Opening> {
        let (opener, begun) = Opening::begin();
        let (endpoint, timeout) = (
            Arc::clone(&self.endpoint),
            Duration::from_millis(self.timeout.as_millis()),
        );
        self.runtime.spawn(async move {
            let result = match tokio::time::timeout(timeout, Connection::open(&endpoint)).await {
                Ok(result) => result.map(Arc::new),
                Err(_) => Err(Undelivered::NotSent(format!(
                    "{} did not answer within {timeout:?}",
                    endpoint.address
                ))),
            };
            opener.end(result);
        });
        begun
    }

    async fn wait(&self, opening: &Opening, until: Instant) -> Opened {
        let opened = {
            // A timer belongs to a runtime, and the caller's executor need not be one.
            let _entered = self.runtime.enter();
            tokio::time::timeout(clock::left_until(until), opening.wait())
        };
        match opened.await {
            Ok(Some(opened)) => opened,
            Ok(None) => Err(Undelivered::NotSent(
                "the client's runtime was shut down".into(),
            )),
            Err(_) => Err(self.no_answer()),
        }
    }

    fn no_answer(&self) -> Undelivered {
        Undelivered::NotSent(format!("{} does not answer", self.endpoint.address))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
