//! Taking a lock on the calling thread.

use std::ops::ControlFlow;
use std::sync::Arc;

use tallylock_core::drive::drive_blocking;
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Grant, Lock as LockSpec};
use tallylock_core::time::Wait;

use super::client::Place;
use super::lane::{InLine, Lane, MemoryLane, MemorySleeper};
use super::pool::Pool;
use super::{Client, undo};
use crate::memory::{Caller, Server};
use crate::{clock, random};

/// Takes a lock. What a failed acquire may have left is undone, if need be after the caller has its answer.
pub(super) fn acquire(client: &Client, lock: &LockSpec, wait: Wait) -> Result<Grant, Error> {
    match client.place() {
        Place::Server(pool) => on_a_server(client, pool, lock, wait),
        Place::Memory(server) => in_memory(client, server, lock, wait),
        Place::Nodes(nodes) => {
            let (backend, seed) = (client.backend(), random::secret()?);
            let (settings, now) = (backend.settings(), backend.now());
            let (acquire, step) = Acquire::start(lock.clone(), wait, settings, seed, now);
            nodes.acquire(acquire, step, wait)
        }
    }
}

fn on_a_server(
    client: &Client,
    pool: &Arc<Pool>,
    lock: &LockSpec,
    wait: Wait,
) -> Result<Grant, Error> {
    let (seed, settings) = (random::secret()?, client.backend().settings());
    let mut lane = Lane::new(pool);
    let waiter = client.listener().join(lock, wait)?;
    let (operation, step) = waiter.start(lock.clone(), wait, settings, seed, clock::now());
    let observe = |acquire: &Acquire| {
        client.backend().observe(acquire);
        if waiter.observe(acquire) {
            client.listener().start(pool, settings);
        }
        if acquire.refusal().is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    match drive_blocking(operation, step, &mut lane, &InLine(&waiter), observe) {
        Ok(result) => {
            client.clear_if_closed(lane);
            waiter.leave_with(result)
        }
        Err((acquire, until)) => {
            let refusal = acquire.refusal().cloned();
            undo::go_on(acquire, until, lane);
            let refusal =
                refusal.unwrap_or_else(|| unreachable!("the observer breaks off at a refusal"));
            waiter.leave_with(Err(refusal))
        }
    }
}

/// Its time is virtual: the undo takes none of the caller's.
fn in_memory(
    client: &Client,
    server: &Arc<Server>,
    lock: &LockSpec,
    wait: Wait,
) -> Result<Grant, Error> {
    let (seed, settings) = (random::secret()?, client.backend().settings());
    let caller = Caller::new(server);
    let mut lane = MemoryLane::new(&caller);
    // Made after the caller, and hence gone before it: whoever is the next is woken before the clock may jump.
    let waiter = client.listener().join(lock, wait)?;
    let (operation, step) = waiter.start(lock.clone(), wait, settings, seed, caller.now());
    let clock = MemorySleeper(&caller, Some(&waiter));
    let driven = drive_blocking(operation, step, &mut lane, &clock, |acquire: &Acquire| {
        let opens = waiter.observe(acquire);
        debug_assert!(!opens, "a server in memory tells by itself");
        ControlFlow::Continue(())
    });
    let result = driven.unwrap_or_else(|_| unreachable!("the observer never breaks off"));
    waiter.leave_with(result)
}
