//! The leases of a client that are to be renewed, and whose loss is to be told: one task wakes for all of them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tallylock_core::drive::{drive, nothing_to_tell};
use tallylock_core::step::{Event, Next, Operation, Step};
use tallylock_core::time::Instant;
use tokio::sync::Notify;

use crate::client::{Client, WeakClient};
use crate::clock::{self, Clock};
use crate::held::Held;
use crate::way::first_of;

/// How long the task sleeps at the longest while there are leases, in milliseconds: a timer stands still while the machine
/// sleeps, and the leases do not.
const LONGEST_SLEEP: u64 = 1_000;

/// When which lease is to be looked at. To put one here is cheap, and wakes nobody unless it is the next.
pub(crate) struct Renewals {
    clock: Clock,
    queue: Mutex<Queue>,
    bell: Notify,
}

#[derive(Default)]
struct Queue {
    due: BTreeMap<(Instant, u64), Weak<Held>>,
    /// When the lease of a number is due.
    at: HashMap<u64, Instant>,
    /// Leases that were lost, and whose keys may be there yet.
    lost: Vec<Arc<Held>>,
    is_running: bool,
    /// The client was closed: leases end with their time.
    renews_no_more: bool,
    is_closed: bool,
    /// Until when the task sleeps.
    wakes_at: Option<Instant>,
}

impl Renewals {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            queue: Mutex::default(),
            bell: Notify::new(),
        })
    }

    /// What its leases run by.
    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Has a lease looked at in time, instead of when it was to be before; whether the task has to be started.
    #[must_use]
    pub(crate) fn put(&self, held: &Arc<Held>, at: Instant) -> bool {
        let mut queue = self.queue();
        let number = held.number();
        if let Some(before) = queue.at.insert(number, at) {
            queue.due.remove(&(before, number));
        }
        queue.due.insert((at, number), Arc::downgrade(held));
        if queue.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.bell.notify_one();
        }
        !std::mem::replace(&mut queue.is_running, true)
    }

    /// Says that the task could not be started.
    pub(crate) fn not_started(&self) {
        self.queue().is_running = false;
    }

    /// Forgets a lease.
    pub(crate) fn remove(&self, held: &Held) {
        let mut queue = self.queue();
        if let Some(at) = queue.at.remove(&held.number()) {
            queue.due.remove(&(at, held.number()));
        }
    }

    /// Has the key of a lost lease removed that may be there yet, if the task is running; nobody is told how that went.
    pub(crate) fn give_back(&self, held: &Arc<Held>) {
        let mut queue = self.queue();
        if queue.is_running && !queue.is_closed {
            queue.lost.push(Arc::clone(held));
            self.bell.notify_one();
        }
    }

    /// Renews no lease any more, and needs no connection; their ends are told all the same.
    pub(crate) fn renew_no_more(&self) {
        if !std::mem::replace(&mut self.queue().renews_no_more, true) {
            self.bell.notify_one();
        }
    }

    /// Ends the task.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.bell.notify_one();
    }

    /// Looks at the leases, each when it is due, until there is no client any more.
    pub(crate) async fn run(self: Arc<Self>, client: WeakClient) {
        loop {
            let now = self.clock.now();
            let (due, lost, wakes_at, renews_no_more) = {
                let mut queue = self.queue();
                if queue.is_closed {
                    return;
                }
                let due = queue.take_due(now);
                let next = queue.due.first_key_value().map(|((at, _), _)| *at);
                queue.wakes_at = next.map(|next| next.min(now.plus(LONGEST_SLEEP)));
                let lost = std::mem::take(&mut queue.lost);
                (due, lost, queue.wakes_at, queue.renews_no_more)
            };
            let Some(client) = client.upgrade() else {
                return;
            };
            if renews_no_more {
                // The client of threads does not know the one that renews for it.
                client.close();
            }
            for held in due {
                self.look_at(&client, held, now);
            }
            for held in lost {
                let releasing = client.clone();
                client.runtime().spawn(async move {
                    // It was lost, and its holder was told that.
                    drop(releasing.release_lost(&held).await);
                });
            }
            drop(client);
            let rung = self.bell.notified();
            match (wakes_at, &self.clock) {
                (None, _) => rung.await,
                (Some(until), Clock::Machine) => {
                    // Rung or not, it is time to look.
                    drop(tokio::time::timeout(clock::left_until(until), rung).await);
                }
                (Some(until), Clock::Virtual(server)) => {
                    first_of(rung, server.passing_of(until)).await;
                }
            }
        }
    }

    fn look_at(self: &Arc<Self>, client: &Client, held: Arc<Held>, now: Instant) {
        if self.queue().renews_no_more {
            held.keep_no_longer();
        }
        let Ok((step, is_renewing)) = held.step(now, Event::Woke) else {
            return;
        };
        let Next::WaitUntil(until) = step.next else {
            return;
        };
        if !is_renewing {
            // The task that would have to be started is this one.
            let _ = self.put(&held, until);
            return;
        }
        if step.calls.is_empty() {
            // Its turn is under way, and puts it back.
            return;
        }
        let (renewals, client) = (Arc::clone(self), client.clone());
        let runtime = client.runtime().clone();
        runtime.spawn(async move {
            let way = client.way(until);
            let first = Step {
                calls: step.calls,
                next: Next::WaitUntil(until),
            };
            let turn = TurnOf(Arc::clone(&held));
            let never = std::future::pending();
            let observe = |turn: &TurnOf| client.backend().observe(turn);
            let next = drive(turn, first, &way, &way, never, nothing_to_tell, observe).await;
            client.clear_if_closed();
            if let Some(next) = next {
                let _ = renewals.put(&held, next);
            }
        });
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take_due(&mut self, now: Instant) -> Vec<Arc<Held>> {
        let mut due = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((_, number), held) = entry.remove_entry();
            self.at.remove(&number);
            due.extend(held.upgrade());
        }
        due
    }
}

/// A renewal of a lease that others look at meanwhile, from its first call until nothing is under way; ends with when the
/// lease is to be looked at next, and with nothing if that is never.
#[derive(Clone)]
struct TurnOf(Arc<Held>);

impl Operation for TurnOf {
    type Output = Option<Instant>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let Ok((step, is_renewing)) = self.0.step(now, event) else {
            return Step::done(None);
        };
        match step.next {
            Next::WaitUntil(until) if is_renewing => Step {
                calls: step.calls,
                next: Next::WaitUntil(until),
            },
            Next::WaitUntil(until) => Step::done(Some(until)),
            Next::Done(_) => Step::done(None),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.0.met_refusal_of_scripts()
    }
}

impl PartialEq for TurnOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TurnOf {}

impl Hash for TurnOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number().hash(state);
    }
}

impl fmt::Debug for TurnOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TurnOf").field(&self.0.number()).finish()
    }
}
