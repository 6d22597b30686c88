//! How an operation's calls travel, and by which clock it waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tallylock_core::drive::{Clock, Transport};
use tallylock_core::step::{Call, Lane, Outcome, Undelivered};
use tallylock_core::time::{Instant, Ttl};
use tokio::runtime::Handle;

use crate::clock;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::memory::Caller;
use crate::nodes::Nodes;

/// The way of one operation to its server.
pub(crate) enum Way {
    Server(ServerWay),
    Memory(Caller),
    Nodes(Nodes),
}

/// All of an operation's calls go over the connection that it began with, in order, as long as that lasts.
pub(crate) struct ServerWay {
    connections: Arc<Connections>,
    /// When the operation's own deadline is.
    deadline: Instant,
    timeout: Ttl,
    is_one_of_several: bool,
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
        Self::Server(ServerWay::new(connections, deadline, timeout))
    }
}

impl Transport for &Way {
    async fn send(&self, call: Call) -> Outcome {
        match self {
            Way::Server(server) => server.send(call).await,
            Way::Memory(caller) => caller.execute(&call),
            Way::Nodes(nodes) => nodes.send(call).await,
        }
    }
}

impl Clock for &Way {
    fn now(&self) -> Instant {
        match self {
            Way::Server(_) => clock::now(),
            Way::Memory(caller) => caller.now(),
            Way::Nodes(nodes) => nodes.now(),
        }
    }

    async fn sleep_until(&self, until: Instant) {
        match self {
            Way::Server(server) => sleep_until(until, server.connections.runtime()).await,
            Way::Memory(caller) => caller.sleep_until(until).await,
            Way::Nodes(nodes) => nodes.sleep_until(until).await,
        }
    }
}

/// Waits for one of two things, whichever comes first.
pub(crate) async fn first_of(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await;
}

/// Waits on the machine's clock.
pub(crate) async fn sleep_until(until: Instant, runtime: &Handle) {
    let sleep = {
        let _entered = runtime.enter();
        tokio::time::sleep(clock::left_until(until))
    };
    sleep.await;
    // After a stall a reply may be in the socket that is as old as the timer: its reader goes first.
    tokio::task::yield_now().await;
}

impl ServerWay {
    pub(crate) fn new(connections: &Arc<Connections>, deadline: Instant, timeout: Ttl) -> Self {
        Self {
            connections: Arc::clone(connections),
            deadline,
            timeout,
            is_one_of_several: false,
            unanswered: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
            lines: Mutex::default(),
        }
    }

    /// The same, of a server whose answers are waited for only until others have decided.
    pub(crate) fn one_of_several(mut self) -> Self {
        self.is_one_of_several = true;
        self
    }

    pub(crate) async fn send(&self, call: Call) -> Outcome {
        let turn = self.turn.lock().await;
        let connection = self.connection(call.lane).await?;
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed);
        if unanswered > 0 && !self.is_one_of_several {
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
