//! The connections of a client that nobody uses at the moment.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tallylock_core::step::Undelivered;
use tallylock_core::time::Ttl;

use super::connection::Connection;
use super::deadline::Deadline;
use crate::endpoint::Endpoint;
use crate::socket::TRUSTED_FOR;

/// How many unused connections are kept.
const MOST_IDLE: usize = 16;

/// Opens connections and keeps those that are not in use.
pub(super) struct Pool {
    endpoint: Endpoint,
    timeout: Ttl,
    idle: Idle,
}

/// The unused connections of a process, and those of the child that it may have become: a child shares no connection
/// with its parent, and not even the lock, which another thread may have held at the fork.
struct Idle {
    process: u32,
    #[allow(
        clippy::vec_box,
        reason = "each call takes one out and puts it back, and it is large"
    )]
    connections: Mutex<Vec<Box<Connection>>>,
    child: OnceLock<Box<Idle>>,
}

impl Pool {
    pub(super) fn new(endpoint: Endpoint, timeout: Ttl) -> Self {
        Self {
            endpoint,
            timeout,
            idle: Idle::new(std::process::id()),
        }
    }

    /// Where the server is.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// An unused connection that is still good, or a new one before the deadline.
    pub(super) fn take(&self, deadline: &mut Deadline) -> Result<Box<Connection>, Undelivered> {
        let process = std::process::id();
        let idle = self.idle.of(process);
        loop {
            // Not in the condition of a `while let`: the lock would be held while a stale connection is closed.
            let taken = idle.connections().pop();
            let Some(connection) = taken else {
                let timeout = self.timeout.as_millis();
                let slice = Duration::from_millis((timeout / 4).max(1));
                return Connection::open(
                    &self.endpoint,
                    process,
                    slice,
                    &mut deadline.at_most(timeout),
                )
                .inspect(|_| deadline.refresh())
                .map(Box::new);
            };
            if deadline.now().since(connection.used_at()) < TRUSTED_FOR || connection.is_quiet() {
                return Ok(connection);
            }
        }
    }

    /// Keeps a connection for the next call, unless replies are still owed on it: they would be given to the next caller.
    pub(super) fn put(&self, connection: Box<Connection>) {
        if !connection.is_settled() {
            return;
        }
        let mut connections = self.idle.of(connection.process()).connections();
        if connections.len() < MOST_IDLE {
            connections.push(connection);
        }
    }

    /// Closes the unused connections.
    pub(super) fn clear(&self) {
        let closed = std::mem::take(&mut *self.idle.of(std::process::id()).connections());
        drop(closed);
    }
}

impl Idle {
    fn new(process: u32) -> Self {
        Self {
            process,
            connections: Mutex::default(),
            child: OnceLock::new(),
        }
    }

    /// Those of this process: ours, or those of a child that we have become.
    fn of(&self, process: u32) -> &Self {
        let mut idle = self;
        while idle.process != process {
            idle = idle.child.get_or_init(|| Box::new(Self::new(process)));
        }
        idle
    }

    #[allow(clippy::vec_box, reason = "see the field")]
    fn connections(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_shares_nothing_with_its_parent() {
        let parent = Idle::new(1);
        let lock_held_at_the_fork = parent.of(1).connections();
        let child = parent.of(2);
        assert!(child.connections().is_empty());
        assert!(!std::ptr::eq(child, parent.of(1)));
        assert!(std::ptr::eq(child, parent.of(2)), "it is made once");
        assert!(
            !std::ptr::eq(child, parent.of(3)),
            "nor a grandchild with its"
        );
        drop(lock_held_at_the_fork);
    }
}
