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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock::{Error, Offered, Update};
use tokio::task::AbortHandle;

use crate::bell::Bell;
use crate::client::Here;
use crate::error::{CallError, about, closed};
use crate::fork::Resident;
use crate::lease::Lease;
use crate::{registry, runtime, update};

/// Takes all results that are there, as packed records.
///
/// Fails with `closed` if the client is closed and the last result was taken.
#[uniffi::export]
pub fn completions_take(client: u64) -> Result<Vec<u8>, CallError> {
    taken(client, Completions::take)
}

/// Waits for results on the calling thread, at most `millis` milliseconds, and takes all as packed records; none if there are none.
///
/// Fails with `closed` if the client is closed, before or meanwhile, and the last result was taken.
#[uniffi::export]
pub fn completions_wait(client: u64, millis: u64) -> Result<Vec<u8>, CallError> {
    taken(client, |completions| {
        completions.wait(Duration::from_millis(millis))
    })
}

/// Waits for one ticket's result on the calling thread, at most `millis` milliseconds, and takes its record; empty if it isn't there.
///
/// Fails with `closed` if the client is closed, before or meanwhile, and the last result was taken.
#[uniffi::export]
pub fn ticket_wait(client: u64, ticket: u64, millis: u64) -> Result<Vec<u8>, CallError> {
    taken(client, |completions| {
        completions.wait_for(ticket, Duration::from_millis(millis))
    })
}

/// Makes a socket that becomes readable, by one byte, whenever the queue gets its first result, and ends when the client is
/// closed and the last result was taken. Gives the descriptor of its reading end, which the caller owns and closes; an
/// earlier one falls silent.
///
/// Fails with `closed`, and with `unavailable` if the system gives no socket.
#[uniffi::export]
pub fn completions_socket(client: u64) -> Result<i32, CallError> {
    let here = registry::client(client)?;
    let (bell, descriptor) = Bell::new()?;
    here.completions.hang(bell);
    Ok(descriptor)
}

/// Gives a ticket up: no record of it comes any more. What it has under way is stopped and undone, and a lease that it was
/// granted meanwhile is released. A ticket whose record was taken is not touched: its lease is the caller's. Nothing happens
/// if the client has no such ticket any more.
#[uniffi::export]
pub fn cancel(client: u64, ticket: u64) {
    if let Ok(here) = registry::client_until_forgotten(client) {
        here.completions.give_up(ticket);
        here.close_if_idle();
        here.completions.forget_if_taken(client);
    }
}

/// What a call in the background ends with.
pub(crate) enum Outcome {
    Nothing,
    Integer(i64),
    Bytes(Vec<u8>),
    Truth(bool),
    /// A lease, and the id that it is to have if its owner chose one.
    Lease(Arc<Lease>, Option<u64>),
    /// What was read to be changed, and the id that it is to have if its owner chose one; it is kept when somebody takes it.
    Update(Option<Update>, Option<u64>),
    /// The id of an update, and what has become of its offer; what goes on is kept when somebody takes it.
    Offered(u64, Offered),
}

impl From<Option<i64>> for Outcome {
    fn from(amount: Option<i64>) -> Self {
        amount.map_or(Self::Nothing, Self::Integer)
    }
}

/// What becomes of a call that is under way when its client is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtClose {
    /// It was sent, perhaps: only its end says whether it was applied.
    RunsOn,
    /// It is undone and answered with `closed`.
    Ends,
}

/// Runs a verb in the background; its result comes under `ticket`, an error about `key`.
pub(crate) fn submit<F>(
    client: u64,
    ticket: u64,
    key: Arc<[u8]>,
    at_close: AtClose,
    verb: impl FnOnce(Arc<Resident<Here>>) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let here = registry::client(client).map_err(about(&key))?;
    let mut state = here.completions.state();
    here.completions.check_open().map_err(about(&key))?;
    let (worker, its_key) = (Arc::clone(&here), Arc::clone(&key));
    let task = runtime::spawn(async move {
        let outcome = verb(Arc::clone(&worker)).await.map_err(about(&its_key));
        worker.completions.finish(ticket, outcome);
        worker.close_if_idle();
    });
    // The task can't finish before this: it needs the lock that is held here.
    let task = task.abort_handle();
    state.under_way.insert(
        ticket,
        UnderWay {
            task,
            key,
            at_close,
        },
    );
    Ok(())
}

/// Takes results, and forgets a closed client with its last.
fn taken(
    client: u64,
    take: impl FnOnce(&Completions) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, CallError> {
    let here = registry::client_until_forgotten(client)?;
    let records = take(&here.completions)?;
    here.completions.forget_if_taken(client);
    Ok(records)
}

/// The results of a client's calls in the background.
#[derive(Default)]
pub(crate) struct Completions {
    /// Changes only while the state is locked; read without that lock by calls in the foreground, and in children of `fork`.
    is_closed: AtomicBool,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    under_way: HashMap<u64, UnderWay>,
    done: VecDeque<(u64, Result<Outcome, Error>)>,
    bell: Option<Bell>,
}

struct UnderWay {
    task: AbortHandle,
    key: Arc<[u8]>,
    at_close: AtClose,
}

impl Completions {
    /// Those of a client in a child made by `fork`, which is closed there too if it was in the parent.
    pub(crate) fn of_a_child(parents: Option<&Self>) -> Self {
        Self {
            is_closed: AtomicBool::new(parents.is_some_and(Self::is_closed)),
            ..Self::default()
        }
    }

    /// `closed` if the client is.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed() {
            return Err(closed("client"));
        }
        Ok(())
    }

    /// Ends what ends at the closing, and lets nothing more in.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        self.is_closed.store(true, Ordering::Release);
        let ending = state
            .under_way
            .extract_if(|_, call| call.at_close == AtClose::Ends);
        let ending: Vec<_> = ending.collect();
        for (ticket, call) in ending {
            call.task.abort();
            state.push(ticket, Err(about(&call.key)(closed("client"))));
        }
        // A lease that nobody has seen could not be released any more by who gets it.
        for (_, outcome) in &mut state.done {
            if let Ok(Outcome::Lease(lease, _)) = outcome {
                let closed = about(&lease.key)(closed("client"));
                discard(std::mem::replace(outcome, Err(closed)));
            }
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Whether the client is closed and has no call under way any more.
    pub(crate) fn are_over(&self) -> bool {
        let state = self.state();
        self.is_closed() && state.under_way.is_empty()
    }

    /// Forgets the client if it is closed and its last result was taken.
    pub(crate) fn forget_if_taken(&self, client: u64) {
        if !self.is_closed() {
            return;
        }
        let mut state = self.state();
        if state.is_empty() {
            state.bell = None;
            registry::forget_client(client);
            drop(state);
            self.arrived.notify_all();
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn finish(&self, ticket: u64, outcome: Result<Outcome, Error>) {
        let mut state = self.state();
        if state.under_way.remove(&ticket).is_none() {
            discard(outcome);
            return;
        }
        state.push(ticket, outcome);
        // Whoever is woken finds the lock free.
        drop(state);
        self.arrived.notify_all();
    }

    fn give_up(&self, ticket: u64) {
        let mut state = self.state();
        if let Some(call) = state.under_way.remove(&ticket) {
            // Dropping the verb's future stops it; what it has to undo outlives it.
            call.task.abort();
            return;
        }
        let place = state.done.iter().position(|(done, _)| *done == ticket);
        if let Some((_, outcome)) = place.and_then(|place| state.done.remove(place)) {
            discard(outcome);
        }
    }

    fn hang(&self, bell: Bell) {
        let mut state = self.state();
        if !state.done.is_empty() {
            bell.ring();
        }
        state.bell = Some(bell);
    }

    fn take(&self) -> Result<Vec<u8>, Error> {
        self.wait(Duration::ZERO)
    }

    fn wait(&self, longest: Duration) -> Result<Vec<u8>, Error> {
        let mut state = self.wait_until(longest, |state| !state.done.is_empty())?;
        Ok(pack_all(&mut state))
    }

    fn wait_for(&self, ticket: u64, longest: Duration) -> Result<Vec<u8>, Error> {
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
    ) -> Result<MutexGuard<'_, State>, Error> {
        let is_over = |state: &State| self.is_closed() && state.is_empty();
        let patient = |state: &mut State| !is_over(state) && !is_there(state);
        let (state, _) = self
            .arrived
            .wait_timeout_while(self.state(), longest, patient)
            .unwrap_or_else(PoisonError::into_inner);
        if is_over(&state) {
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

impl State {
    /// Whether no result is there or to come.
    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.done.is_empty()
    }

    fn push(&mut self, ticket: u64, outcome: Result<Outcome, Error>) {
        if let (Some(bell), true) = (&self.bell, self.done.is_empty()) {
            bell.ring();
        }
        self.done.push_back((ticket, outcome));
    }
}

/// Nobody will hear of this result any more: a lease in it is given back.
fn discard(outcome: Result<Outcome, Error>) {
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

fn pack(packed: &mut Vec<u8>, ticket: u64, outcome: Result<Outcome, Error>) {
    packed.extend(ticket.to_le_bytes());
    match outcome.map_err(CallError::from) {
        Ok(Outcome::Nothing) => packed.push(0),
        Ok(Outcome::Integer(number)) => {
            packed.push(1);
            packed.extend(number.to_le_bytes());
        }
        Ok(Outcome::Bytes(bytes)) => {
            packed.push(2);
            pack_bytes(packed, &bytes);
        }
        Ok(Outcome::Update(read, chosen)) => {
            let id = read.map_or(0, |read| registry::add_update(read, chosen));
            packed.push(1);
            packed.extend(id.to_le_bytes());
        }
        Ok(Outcome::Offered(id, offered)) => {
            packed.push(1);
            packed.extend(i64::from(update::keep(id, offered)).to_le_bytes());
        }
        Ok(Outcome::Truth(truth)) => packed.extend([3, u8::from(truth)]),
        Ok(Outcome::Lease(lease, id)) => {
            packed.push(4);
            packed.extend(registry::add_lease(lease, id).to_le_bytes());
        }
        Err(error) => {
            packed.push(5);
            pack_error(packed, error);
        }
    }
}

pub(crate) fn pack_error(packed: &mut Vec<u8>, error: CallError) {
    let CallError::Failed {
        code,
        reason,
        key,
        detail,
        applied,
    } = error;
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

pub(crate) fn pack_bytes(packed: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a server's text has at most 512 MB");
    packed.extend(length.to_le_bytes());
    packed.extend_from_slice(bytes);
}
