//! Taking a lock on the calling thread.

use std::ops::ControlFlow;
use std::sync::Arc;

use tallylock_core::drive::drive_blocking;
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Grant, Lock as LockSpec};
use tallylock_core::time::{Instant, Wait};

use super::client::Place;
use super::lane::{InLine, Lane, MemoryLane, MemorySleeper};
use super::nodes::Nodes;
use super::pool::Pool;
use super::{Client, undo};
use crate::acquiring::Acquiring;
use crate::memory::{Caller, Server};
use crate::{clock, random};

/// A grant, and when it came.
type Granted = Result<(Grant, Instant), Error>;

/// Takes a lock. What a failed acquire may have left is undone, if need be after the caller has its answer.
pub(super) fn acquire(client: &Client, lock: &LockSpec, wait: Wait) -> Granted {
    match client.place() {
        Place::Server(pool) => on_a_server(client, pool, lock, wait),
        Place::Memory(server) => in_memory(client, server, lock, wait),
        Place::Nodes(nodes) => on_several(client, nodes, lock, wait),
    }
}

fn on_a_server(client: &Client, pool: &Arc<Pool>, lock: &LockSpec, wait: Wait) -> Granted {
    let (backend, seed) = (client.backend(), random::secret()?);
    let settings = backend.settings();
    let mut lane = Lane::new(pool);
    let waiter = client.listener().join(lock, wait)?;
    let now = clock::now();
    let acquiring = Acquiring::begin(backend, lock, wait, now);
    let (operation, step) = waiter.start(lock.clone(), wait, settings, seed, now);
    let observe = |acquire: &Acquire| {
        backend.observe(acquire);
        acquiring.observe(acquire);
        if waiter.observe(acquire) {
            client.listener().start(pool, settings);
        }
        if acquire.refusal().is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let result = match drive_blocking(operation, step, &mut lane, &InLine(&waiter), observe) {
        Ok(result) => {
            client.clear_if_closed(lane);
            result
        }
        Err((acquire, until)) => {
            let refusal = acquire.refusal().cloned();
            undo::go_on(acquire, until, lane);
            let refusal =
                refusal.unwrap_or_else(|| unreachable!("the observer breaks off at a refusal"));
            Err(refusal)
        }
    };
    acquiring.answer(clock::now(), waiter.leave_with(result))
}

/// Its time is virtual: the undo takes none of the caller's.
fn in_memory(client: &Client, server: &Arc<Server>, lock: &LockSpec, wait: Wait) -> Granted {
    let (backend, seed) = (client.backend(), random::secret()?);
    let caller = Caller::new(server);
    let mut lane = MemoryLane::new(&caller);
    // Made after the caller, and hence gone before it: whoever is the next is woken before the clock may jump.
    let waiter = client.listener().join(lock, wait)?;
    let now = caller.now();
    let acquiring = Acquiring::begin(backend, lock, wait, now);
    let (operation, step) = waiter.start(lock.clone(), wait, backend.settings(), seed, now);
    let clock = MemorySleeper(&caller, Some(&waiter));
    let driven = drive_blocking(operation, step, &mut lane, &clock, |acquire: &Acquire| {
        acquiring.observe(acquire);
        let opens = waiter.observe(acquire);
        debug_assert!(!opens, "a server in memory tells by itself");
        ControlFlow::Continue(())
    });
    let result = driven.unwrap_or_else(|_| unreachable!("the observer never breaks off"));
    acquiring.answer(caller.now(), waiter.leave_with(result))
}

fn on_several(client: &Client, nodes: &Nodes, lock: &LockSpec, wait: Wait) -> Granted {
    let (backend, seed) = (client.backend(), random::secret()?);
    let settings = backend.settings();
    let (way, now) = nodes.begin(settings.patience(wait))?;
    let acquiring = Arc::new(Acquiring::begin(backend, lock, wait, now));
    let (acquire, step) = Acquire::start(lock.clone(), wait, settings, seed, now);
    let result = nodes.acquire(acquire, step, way, &acquiring);
    acquiring.answer(backend.now(), result)
}
