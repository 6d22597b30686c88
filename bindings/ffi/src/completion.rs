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
//! | 6 adopted lease | `u64` id |

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallylock::{Error, Meter, Offered, Sweep, Update};
use tokio::task::AbortHandle;

use crate::bell::Bell;
use crate::client::Here;
use crate::error::{CallError, about, closed};
use crate::fork::Resident;
use crate::lease::Lease;
use crate::runtime::Begun;
use crate::{registry, runtime, update};

/// Takes all results that are there, as packed records.
///
/// Fails with `closed` if the client is closed and the last result was taken.
#[uniffi::export]
pub fn completions_take(client: u64) -> Result<Vec<u8>, CallError> {
    taken(client, Completions::take)
}

/// Waits for results on the calling thread, at most `millis` milliseconds. If there is one then, and it is an integer, gives its
/// ticket, for `completion_integer`; otherwise 0, also if there are none: they are to be taken together.
///
/// Fails with `closed` if the client is closed, before or meanwhile, and the last result was taken.
#[uniffi::export]
pub fn completions_wait_integer(client: u64, millis: u64) -> Result<u64, CallError> {
    let here = registry::client_until_forgotten(client)?;
    Ok(here
        .completions
        .wait_for_integer(Duration::from_millis(millis))?)
}

/// Takes the integer that is this ticket's result; 0 if the ticket was given up meanwhile, and nobody wants to know.
///
/// Fails with `closed` if the client is closed and the last result was taken.
#[uniffi::export]
pub fn completion_integer(client: u64, ticket: u64) -> Result<i64, CallError> {
    let here = registry::client_until_forgotten(client)?;
    let integer = here.completions.integer(ticket);
    here.completions.forget_if_taken(client);
    Ok(integer)
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

/// Gives a ticket up: no record of it comes any more. What it has under way is stopped and undone, but for a meter's flush,
/// which runs on and keeps the connections of a client that is closed meanwhile; and a lease that it was
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
    /// A lease, and the id that it is to have if its owner chose one; it is given back if nobody takes it.
    Lease(Arc<Lease>, Option<u64>),
    /// A lease that was another's, and the id that it is to have; if nobody takes it, who has its token may try again.
    Adopted(Arc<Lease>, Option<u64>),
    /// A meter, and the id that it is to have if its owner chose one; it is kept when somebody takes it.
    Meter(Meter, Option<u64>),
    /// What was read to be changed, and the id that it is to have if its owner chose one; it is kept when somebody takes it.
    Update(Option<Update>, Option<u64>),
    /// A pass of a sweeper, and its id; one that nobody takes releases its lock when it is dropped.
    Sweep(Box<Sweep>, u64),
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
    /// So it does when its ticket is given up, too: what others added would be lost with it.
    RunsOnUnheard,
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
    let call = Submitted::new(client, ticket, key, at_close)?;
    let running = verb(Arc::clone(&call.here));
    call.run(running);
    Ok(())
}

/// The same, begun on the calling thread: of two calls, what that does is done in the order in which they were submitted.
pub(crate) fn submit_begun<F>(
    client: u64,
    ticket: u64,
    key: Arc<[u8]>,
    at_close: AtClose,
    verb: impl FnOnce(Arc<Resident<Here>>) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let call = Submitted::new(client, ticket, key, at_close)?;
    match runtime::begin(verb(Arc::clone(&call.here))) {
        // Not left to a task, which may be ended before it has begun: a lease would be lost with it.
        Begun::Over(outcome) => call.end(outcome),
        Begun::UnderWay(running) => call.run(running),
    }
    Ok(())
}

/// A call that was let in.
struct Submitted {
    here: Arc<Resident<Here>>,
    client: u64,
    ticket: u64,
    key: Arc<[u8]>,
}

impl Submitted {
    fn new(client: u64, ticket: u64, key: Arc<[u8]>, at_close: AtClose) -> Result<Self, CallError> {
        let here = registry::client(client).map_err(about(&key))?;
        here.completions
            .begin(ticket, &key, at_close)
            .map_err(about(&key))?;
        Ok(Self {
            here,
            client,
            ticket,
            key,
        })
    }

    fn run(self, running: impl Future<Output = Result<Outcome, Error>> + Send + 'static) {
        let (here, ticket) = (Arc::clone(&self.here), self.ticket);
        let task = runtime::spawn(async move { self.end(running.await) });
        if !here.completions.know(ticket, task.abort_handle()) {
            task.abort();
            here.close_if_idle();
        }
    }

    fn end(self, outcome: Result<Outcome, Error>) {
        let completions = &self.here.completions;
        completions.finish(self.ticket, outcome.map_err(about(&self.key)));
        self.here.close_if_idle();
        // If it was given up, nobody takes its result.
        completions.forget_if_taken(self.client);
    }
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
    /// Nothing yet in the moment in which it is begun.
    task: Option<AbortHandle>,
    key: Arc<[u8]>,
    at_close: AtClose,
    /// Nobody wants to hear of its end.
    is_given_up: bool,
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
            call.abort();
            state.push(ticket, Err(about(&call.key)(closed("client"))));
        }
        // A lease that nobody has seen could not be released any more by who gets it.
        for (_, outcome) in &mut state.done {
            let closed = match outcome {
                Ok(Outcome::Lease(lease, _) | Outcome::Adopted(lease, _)) => {
                    about(&lease.key)(closed("client"))
                }
                Ok(Outcome::Sweep(..)) => closed("client"),
                _ => continue,
            };
            discard(std::mem::replace(outcome, Err(closed)));
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

    /// Takes note of a call that is about to run.
    fn begin(&self, ticket: u64, key: &Arc<[u8]>, at_close: AtClose) -> Result<(), Error> {
        let mut state = self.state();
        self.check_open()?;
        let call = UnderWay {
            task: None,
            key: Arc::clone(key),
            at_close,
            is_given_up: false,
        };
        state.under_way.insert(ticket, call);
        Ok(())
    }

    /// Takes note of the task in which it runs, unless it has ended meanwhile, by itself or because it was given up or closed.
    ///
    /// The lock is not held while the task is made: that wakes another thread, which may want the lock before this one goes on.
    fn know(&self, ticket: u64, task: AbortHandle) -> bool {
        match self.state().under_way.get_mut(&ticket) {
            Some(call) => {
                call.task = Some(task);
                true
            }
            None => false,
        }
    }

    fn finish(&self, ticket: u64, outcome: Result<Outcome, Error>) {
        let mut state = self.state();
        match state.under_way.remove(&ticket) {
            None => return discard(outcome),
            Some(call) if call.is_given_up => discard(outcome),
            Some(_) => state.push(ticket, outcome),
        }
        // Whoever is woken finds the lock free.
        drop(state);
        self.arrived.notify_all();
    }

    fn give_up(&self, ticket: u64) {
        let mut state = self.state();
        if let Some(call) = state.under_way.get_mut(&ticket)
            && call.at_close == AtClose::RunsOnUnheard
        {
            call.is_given_up = true;
            return;
        }
        if let Some(call) = state.under_way.remove(&ticket) {
            // Dropping the verb's future stops it; what it has to undo outlives it.
            call.abort();
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
        let mut state = self.wait_until(Duration::ZERO, |_| true)?;
        Ok(pack_all(&mut state))
    }

    fn wait_for_integer(&self, longest: Duration) -> Result<u64, Error> {
        let state = self.wait_until(longest, |state| !state.done.is_empty())?;
        match state.done.front() {
            Some((ticket, Ok(Outcome::Integer(_)))) if state.done.len() == 1 => Ok(*ticket),
            _ => Ok(0),
        }
    }

    fn integer(&self, ticket: u64) -> i64 {
        let mut state = self.state();
        let is_it = |(done, outcome): &(u64, _)| {
            *done == ticket && matches!(outcome, Ok(Outcome::Integer(_)))
        };
        let place = state.done.iter().position(is_it);
        match place.and_then(|place| state.done.remove(place)) {
            Some((_, Ok(Outcome::Integer(integer)))) => integer,
            _ => 0,
        }
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

impl UnderWay {
    /// Ends it where it is; one that is only about to run is ended by who begins it.
    fn abort(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
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
        Ok(Outcome::Meter(meter, chosen)) => {
            let id = registry::add_meter(meter, chosen);
            packed.push(1);
            packed.extend(id.to_le_bytes());
        }
        Ok(Outcome::Update(read, chosen)) => {
            let id = read.map_or(0, |read| registry::add_update(read, chosen));
            packed.push(1);
            packed.extend(id.to_le_bytes());
        }
        Ok(Outcome::Sweep(pass, id)) => {
            registry::add_sweep(id, *pass);
            packed.push(1);
            packed.extend(id.to_le_bytes());
        }
        Ok(Outcome::Offered(id, offered)) => {
            packed.push(1);
            packed.extend(i64::from(update::keep(id, offered)).to_le_bytes());
        }
        Ok(Outcome::Truth(truth)) => packed.extend([3, u8::from(truth)]),
        Ok(Outcome::Lease(lease, chosen)) => {
            packed.push(4);
            packed.extend(registry::add_lease(lease, chosen).to_le_bytes());
        }
        Ok(Outcome::Adopted(lease, chosen)) => {
            packed.push(6);
            packed.extend(registry::add_lease(lease, chosen).to_le_bytes());
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
