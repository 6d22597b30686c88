//! Calls in the background, and the queue through which their results come.
//!
//! A result is a record, little-endian: `[ticket u64][kind u8][payload]`, with the kinds
//!
//! | kind | payload |
//! | --- | --- |
//! | 0 nothing | none |
//! | 1 integer | `i64` |
//! | 2 bytes | `u32` length, the bytes |
//! | 3 truth | `u8`, 0 or 1 |
//! | 4 lease | `u64` id |
//! | 5 error | code, reason, key, detail, applied: each a `u32` length and that much UTF-8, empty where there is none |

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::bell::Bell;
use crate::client::Here;
use crate::error::{CallError, closed};
use crate::fork::Resident;
use crate::lease::Lease;
use crate::{registry, runtime};

/// Takes all results that are there, as packed records.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn completions_take(client: u64) -> Result<Vec<u8>, CallError> {
    registry::client(client)?.here().completions.take()
}

/// Waits for results on the calling thread, at most `millis` milliseconds, and takes all as packed records; none if there are none.
///
/// Fails with `closed`, at once when the client is closed meanwhile.
#[uniffi::export]
pub fn completions_wait(client: u64, millis: u64) -> Result<Vec<u8>, CallError> {
    registry::client(client)?
        .here()
        .completions
        .wait(Duration::from_millis(millis))
}

/// Waits for one ticket's result on the calling thread, at most `millis` milliseconds, and takes its record; empty if it isn't there.
///
/// Fails with `closed`, at once when the client is closed meanwhile.
#[uniffi::export]
pub fn ticket_wait(client: u64, ticket: u64, millis: u64) -> Result<Vec<u8>, CallError> {
    registry::client(client)?
        .here()
        .completions
        .wait_for(ticket, Duration::from_millis(millis))
}

/// Makes a socket that becomes readable, by one byte, whenever the queue gets its first result. Gives the descriptor of its
/// reading end, which the caller owns and closes; an earlier one falls silent.
///
/// Fails with `closed`, and with `unavailable` if the system gives no socket.
#[uniffi::export]
pub fn completions_socket(client: u64) -> Result<i32, CallError> {
    let here = registry::client(client)?.here();
    let (bell, descriptor) = Bell::new()?;
    here.completions.hang(bell);
    Ok(descriptor)
}

/// Gives a ticket up: no record of it comes any more. What it has under way is stopped and undone, and a lease that it was
/// granted meanwhile is released. A ticket whose record was taken is not touched: its lease is the caller's.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn cancel(client: u64, ticket: u64) -> Result<(), CallError> {
    registry::client(client)?.here().completions.give_up(ticket);
    Ok(())
}

/// What a call in the background ends with.
pub(crate) enum Outcome {
    Nothing,
    Integer(i64),
    Bytes(Vec<u8>),
    Truth(bool),
    /// A lease, and the id that it is to have if its owner chose one.
    Lease(Arc<Lease>, Option<u64>),
}

impl From<Option<i64>> for Outcome {
    fn from(amount: Option<i64>) -> Self {
        amount.map_or(Self::Nothing, Self::Integer)
    }
}

/// Runs a verb in the background; its result comes under `ticket`.
pub(crate) fn submit<F>(
    client: u64,
    ticket: u64,
    verb: impl FnOnce(Arc<Resident<Here>>) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, CallError>> + Send + 'static,
{
    let here = registry::client(client)?.here();
    let mut state = here.completions.state();
    if state.is_closed {
        return Err(closed("client"));
    }
    let worker = Arc::clone(&here);
    let task = runtime::spawn(async move {
        let outcome = verb(Arc::clone(&worker)).await;
        worker.completions.finish(ticket, outcome);
    });
    // The task can't finish before this: it needs the lock that is held here.
    state.under_way.insert(ticket, task.abort_handle());
    Ok(())
}

/// The results of a client's calls in the background.
#[derive(Default)]
pub(crate) struct Completions {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    under_way: HashMap<u64, AbortHandle>,
    done: VecDeque<(u64, Result<Outcome, CallError>)>,
    bell: Option<Bell>,
    is_closed: bool,
}

impl Completions {
    fn finish(&self, ticket: u64, outcome: Result<Outcome, CallError>) {
        let mut state = self.state();
        if state.under_way.remove(&ticket).is_none() {
            discard(outcome);
            return;
        }
        if let (Some(bell), true) = (&state.bell, state.done.is_empty()) {
            bell.ring();
        }
        state.done.push_back((ticket, outcome));
        // Whoever is woken finds the lock free.
        drop(state);
        self.arrived.notify_all();
    }

    fn give_up(&self, ticket: u64) {
        let mut state = self.state();
        if let Some(task) = state.under_way.remove(&ticket) {
            // Dropping the verb's future stops it; what it has to undo outlives it.
            task.abort();
            return;
        }
        let place = state.done.iter().position(|(done, _)| *done == ticket);
        if let Some((_, outcome)) = place.and_then(|place| state.done.remove(place)) {
            discard(outcome);
        }
    }

    /// Gives all tickets up and wakes who waits for them.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.bell = None;
        state.under_way.drain().for_each(|(_, task)| task.abort());
        state
            .done
            .drain(..)
            .for_each(|(_, outcome)| discard(outcome));
        self.arrived.notify_all();
    }

    fn hang(&self, bell: Bell) {
        let mut state = self.state();
        if !state.done.is_empty() {
            bell.ring();
        }
        state.bell = Some(bell);
    }

    fn take(&self) -> Result<Vec<u8>, CallError> {
        let mut state = self.state();
        if state.is_closed {
            return Err(closed("client"));
        }
        Ok(pack_all(&mut state))
    }

    fn wait(&self, longest: Duration) -> Result<Vec<u8>, CallError> {
        let mut state = self.wait_until(longest, |state| !state.done.is_empty())?;
        Ok(pack_all(&mut state))
    }

    fn wait_for(&self, ticket: u64, longest: Duration) -> Result<Vec<u8>, CallError> {
        let place = |state: &State| state.done.iter().position(|(done, _)| *done == ticket);
        let mut state = self.wait_until(longest, |state| place(state).is_some())?;
        let mut packed = Vec::new();
        if let Some((ticket, outcome)) = place(&state).and_then(|place| state.done.remove(place)) {
            pack(&mut packed, ticket, outcome);
        }
        Ok(packed)
    }

    fn wait_until(
        &self,
        longest: Duration,
        is_there: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>, CallError> {
        let patient = |state: &mut State| !state.is_closed && !is_there(state);
        let (state, _) = self
            .arrived
            .wait_timeout_while(self.state(), longest, patient)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            Err(closed("client"))
        } else {
            Ok(state)
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody will hear of this result any more: a lease in it is given back.
fn discard(outcome: Result<Outcome, CallError>) {
    if let Ok(Outcome::Lease(lease, _)) = outcome {
        lease.abandon();
    }
}

fn pack_all(state: &mut State) -> Vec<u8> {
    let mut packed = Vec::with_capacity(state.done.len() * 17);
    for (ticket, outcome) in state.done.drain(..) {
        pack(&mut packed, ticket, outcome);
    }
    packed
}

fn pack(packed: &mut Vec<u8>, ticket: u64, outcome: Result<Outcome, CallError>) {
    packed.extend(ticket.to_le_bytes());
    match outcome {
        Ok(Outcome::Nothing) => packed.push(0),
        Ok(Outcome::Integer(number)) => {
            packed.push(1);
            packed.extend(number.to_le_bytes());
        }
        Ok(Outcome::Bytes(bytes)) => {
            packed.push(2);
            pack_bytes(packed, &bytes);
        }
        Ok(Outcome::Truth(truth)) => packed.extend([3, u8::from(truth)]),
        Ok(Outcome::Lease(lease, id)) => {
            packed.push(4);
            packed.extend(registry::add_lease(lease, id).to_le_bytes());
        }
        Err(CallError::Failed {
            code,
            reason,
            key,
            detail,
            applied,
        }) => {
            packed.push(5);
            for text in [
                code,
                reason.unwrap_or_default(),
                key.unwrap_or_default(),
                detail,
                applied,
            ] {
                pack_bytes(packed, text.as_bytes());
            }
        }
    }
}

fn pack_bytes(packed: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a server's text has at most 512 MB");
    packed.extend(length.to_le_bytes());
    packed.extend_from_slice(bytes);
}
