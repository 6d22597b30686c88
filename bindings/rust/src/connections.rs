//! The connections of a client: one that all operations share, and some for those that need one of their own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock_core::step::Undelivered;
use tallylock_core::time::{Instant, Ttl};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::clock;
use crate::connection::Connection;
use crate::endpoint::Endpoint;

/// How many connections are kept for operations that need one of their own.
const MOST_IDLE: usize = 4;

/// Opens connections when they are needed, on the client's runtime.
pub(crate) struct Connections {
    endpoint: Arc<Endpoint>,
    timeout: Ttl,
    runtime: Handle,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    shared: Option<Opening>,
    idle: Vec<Arc<Connection>>,
}

/// A connection that is being opened, or was: nothing yet, or how it went.
type Opening = watch::Receiver<Option<Opened>>;

type Opened = Result<Arc<Connection>, Undelivered>;

impl Connections {
    pub(crate) fn new(endpoint: Endpoint, timeout: Ttl, runtime: Handle) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            timeout,
            runtime,
            known: Mutex::default(),
        }
    }

    pub(crate) fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.endpoint)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The connection that all share; waits for it no longer than until this moment.
    pub(crate) async fn shared(&self, until: Instant) -> Opened {
        let opening = self.opening();
        let ready = opening.borrow().clone();
        match ready {
            Some(Ok(connection)) => Ok(connection),
            _ => self.wait(opening, until).await,
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
        self.wait(self.open(), until).await
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

    /// The shared connection, which begins to be opened if it is not, or is no longer good.
    fn opening(&self) -> Opening {
        let mut known = self.known();
        if let Some(opening) = &known.shared {
            let usable = match &*opening.borrow() {
                // A sender that is gone without a word was on a runtime that ended.
                None => opening.has_changed().is_ok(),
                Some(Ok(connection)) => connection.is_good(),
                // Those who waited were told; who comes now tries again.
                Some(Err(_)) => false,
            };
            if usable {
                return opening.clone();
            }
        }
        let opening = self.open();
        known.shared = Some(opening.clone());
        opening
    }

    /// Opens a connection in a task: a caller who gives up does not stop it, since others may wait for it too.
    fn open(&self) -> Opening {
        let (sender, opening) = watch::channel(None);
        let (endpoint, timeout) = (
            Arc::clone(&self.endpoint),
            Duration::from_millis(self.timeout.as_millis()),
        );
        self.runtime.spawn(async move {
            let opened = match tokio::time::timeout(timeout, Connection::open(&endpoint)).await {
                Ok(opened) => opened.map(Arc::new),
                Err(_) => Err(Undelivered::NotSent(format!(
                    "{} did not answer within {timeout:?}",
                    endpoint.address
                ))),
            };
            sender.send_replace(Some(opened));
        });
        opening
    }

    async fn wait(&self, mut opening: Opening, until: Instant) -> Opened {
        let opened = {
            // A timer belongs to a runtime, and the caller's executor need not be one.
            let _entered = self.runtime.enter();
            tokio::time::timeout(clock::left_until(until), async move {
                opening
                    .wait_for(Option::is_some)
                    .await
                    .map(|opened| opened.clone())
            })
        };
        match opened.await {
            Ok(Ok(Some(opened))) => opened,
            Ok(_) => Err(Undelivered::NotSent(
                "the client's runtime was shut down".into(),
            )),
            Err(_) => Err(Undelivered::NotSent(format!(
                "{} does not answer",
                self.endpoint.address
            ))),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
