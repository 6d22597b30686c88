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
use crate::nodes::Nodes;
use crate::opening::{Asked, Opened, Opening};

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
    /// Whoever waits for a connection of its own is not overtaken by a later call that needs one.
    turn: tokio::sync::Mutex<()>,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    shared: Option<Arc<Opening>>,
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
            Way::Server(server) => server.sleep_until(until).await,
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
        match call.lane {
            Lane::Shared => self.send_shared(call).await,
            Lane::Own(number) => self.send_own(number, call).await,
        }
    }

    /// Waits on the machine's clock.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        self.connections.timers().sleep_until(until).await;
    }

    /// Has its place behind all that was asked of the server before once it was polled: nothing is awaited before that.
    async fn send_shared(&self, call: Call) -> Outcome {
        match self.shared().ask(call, || self.patience())? {
            Asked::Ready(connection, call) => {
                self.mark_if_silent(&connection);
                self.answer(&connection, connection.send(&call)).await
            }
            Asked::Queued(queued) => {
                let (connection, sending) = self.connections.sent(queued).await?;
                self.answer(&connection, sending).await
            }
        }
    }

    async fn send_own(&self, number: u32, call: Call) -> Outcome {
        let turn = self.turn.lock().await;
        let connection = self.own(number).await?;
        self.mark_if_silent(&connection);
        let sending = connection.begin(call);
        drop(turn);
        self.answer(&connection, sending).await
    }

    async fn answer(
        &self,
        connection: &Arc<Connection>,
        sending: impl Future<Output = Outcome>,
    ) -> Outcome {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let outcome = sending.await;
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.lose(connection);
        }
        outcome
    }

    /// Keeps others away from a connection if the operation goes on without an earlier answer: it has waited long enough for it.
    fn mark_if_silent(&self, connection: &Connection) {
        if self.unanswered.load(Ordering::Relaxed) > 0 && !self.is_one_of_several {
            connection.mark_silent();
        }
    }

    /// How the shared connection is opened, or was, with which this operation began.
    fn shared(&self) -> Arc<Opening> {
        let shared = &mut self.lines().shared;
        match shared {
            Some(opening) if !opening.has_failed() => Arc::clone(opening),
            _ => Arc::clone(shared.insert(self.connections.opening())),
        }
    }

    async fn own(&self, number: u32) -> Opened {
        let begun = self.lines().own.clone();
        let connection = match begun {
            Some((same, Some(connection))) if same == number || connection.is_good() => connection,
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

    /// Until when a connection is waited for: a little less than the operation waits, so that it learns that nothing was
    /// sent before it gives up. One of several servers is waited for equally long by all operations, also by those that have
    /// ended without it: a release is not given up before the acquire that it undoes.
    fn patience(&self) -> Instant {
        let now = clock::now();
        let longest = now.plus(self.timeout.as_millis());
        let until = if now < self.deadline && !self.is_one_of_several {
            longest.min(self.deadline)
        } else {
            longest
        };
        Instant::from_millis(until.as_millis().saturating_sub(1))
    }

    fn lose(&self, lost: &Arc<Connection>) {
        let mut lines = self.lines();
        lines.shared.take_if(|opening| opening.is_of(lost));
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
