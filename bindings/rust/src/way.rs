//! How an operation's calls travel, and by which clock it waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tallylock_core::drive::{Clock, Transport};
use tallylock_core::step::{Call, Lane, Outcome, Undelivered};
use tallylock_core::time::{Instant, Ttl};

use crate::clock;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::memory::Caller;

/// The way of one operation to its server.
pub(crate) enum Way {
    Server(ServerWay),
    Memory(Caller),
}

/// All of an operation's calls go over the connection that it began with, in order, as long as that lasts.
pub(crate) struct ServerWay {
    connections: Arc<Connections>,
    /// When the operation's own deadline is.
    deadline: Instant,
    timeout: Ttl,
    unanswered: AtomicUsize,
    /// Calls go out one after the other: whoever has to wait for a connection is not overtaken by a later call.
    turn: tokio::sync::Mutex<()>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    shared: Option<Arc<Connection>>,
    /// The lane of its own that was begun last, and its connection unless that was lost.
    own: Option<(u32, Option<Arc<Connection>>)>,
}

impl Way {
    pub(crate) fn to_server(
        connections: &Arc<Connections>,
        deadline: Instant,
        timeout: Ttl,
    ) -> Self {
        Self::Server(ServerWay {
            connections: Arc::clone(connections),
            deadline,
            timeout,
            unanswered: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
            lines: Mutex::default(),
        })
    }
}

impl Transport for &Way {
    async fn send(&self, call: Call) -> Outcome {
        match self {
            Way::Server(server) => server.send(call).await,
            Way::Memory(caller) => caller.execute(&call),
        }
    }
}

impl Clock for &Way {
    fn now(&self) -> Instant {
        match self {
            Way::Server(_) => clock::now(),
            Way::Memory(caller) => caller.now(),
        }
    }

    async fn sleep_until(&self, until: Instant) {
        match self {
            Way::Server(server) => {
                let sleep = {
                    let _entered = server.connections.runtime().enter();
                    tokio::time::sleep(clock::left_until(until))
                };
                sleep.await;
                // After a stall a reply may be in the socket that is as old as the timer: its reader goes first.
                tokio::task::yield_now().await;
            }
            Way::Memory(caller) => caller.sleep_until(until).await,
        }
    }
}

impl ServerWay {
    async fn send(&self, call: Call) -> Outcome {
        let turn = self.turn.lock().await;
        let connection = self.connection(call.lane).await?;
        if self.unanswered.fetch_add(1, Ordering::Relaxed) > 0 {
            // The operation goes on without an earlier answer: it has waited long enough for it.
            connection.mark_silent();
        }
        let mut sending = pin!(connection.send(&call));
        // Polled once, it has its place in the connection's queue.
        let at_once = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
        drop(turn);
        let outcome = match at_once {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => sending.await,
        };
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.lose(&connection);
        }
        outcome
    }

    async fn connection(&self, lane: Lane) -> Result<Arc<Connection>, Undelivered> {
        match lane {
            Lane::Shared => {
                let pinned = self.lines().shared.clone();
                if let Some(connection) = pinned {
                    return Ok(connection);
                }
                let connection = self.connections.shared(self.patience()).await?;
                self.lines().shared = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Lane::Own(number) => {
                let begun = self.lines().own.clone();
                let connection = match begun {
                    Some((same, Some(connection))) if same == number || connection.is_good() => {
                        connection
                    }
                    Some((same, None)) if same == number => {
                        return Err(Undelivered::NotSent(
                            "the connection that watched the keys was lost".into(),
                        ));
                    }
                    _ => self.connections.own(self.patience()).await?,
                };
                self.lines().own = Some((number, Some(Arc::clone(&connection))));
                Ok(connection)
            }
        }
    }

    /// Until when a connection is waited for: a little less than the operation waits, so that it learns that nothing was
    /// sent before it gives up.
    fn patience(&self) -> Instant {
        let now = clock::now();
        let longest = now.plus(self.timeout.as_millis());
        let until = if now < self.deadline {
            longest.min(self.deadline)
        } else {
            longest
        };
        Instant::from_millis(until.as_millis().saturating_sub(1))
    }

    fn lose(&self, lost: &Arc<Connection>) {
        let mut lines = self.lines();
        lines
            .shared
            .take_if(|connection| Arc::ptr_eq(connection, lost));
        if let Some((_, connection)) = &mut lines.own {
            connection.take_if(|connection| Arc::ptr_eq(connection, lost));
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerWay {
    fn drop(&mut self) {
        let own = self.lines().own.take();
        if let Some((_, Some(connection))) = own {
            self.connections.put_back(connection);
        }
    }
}
