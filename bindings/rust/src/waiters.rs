//! Those who wait for locks through one client: a line for each lock, and what wakes its first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Acquire, Lock};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Event, Step};
use tallylock_core::time::{Instant, Wait};
use tallylock_core::token::Seed;
use tallylock_core::waiting::{Line, Ticket};
use tokio::sync::Notify;

use crate::memory::{Caller, Server};

/// The lines of a client, by the channels on which releases are told.
pub(crate) struct Waiters {
    known: Mutex<Known>,
    /// Rung when other channels are wanted than before.
    bell: Notify,
    /// A server in memory tells by itself.
    memory: Option<Arc<Server>>,
}

#[derive(Default)]
struct Known {
    places: BTreeMap<Vec<u8>, Place>,
    /// Somebody has the connection, or is about to open it.
    is_served: bool,
    /// The client is closed: the connection goes with the last waiter.
    is_closed: bool,
}

/// Where the waiters for one lock stand.
#[derive(Default)]
struct Place {
    line: Line,
    wakers: BTreeMap<Ticket, Waker>,
    /// Whether the first waits for a release.
    is_wanted: bool,
    /// Holds the virtual clock until the first has taken its notice in.
    hold: Option<Caller>,
}

impl Waiters {
    /// Those of a client whose server is this one in memory, or reached over a socket.
    pub(crate) fn new(memory: Option<Arc<Server>>) -> Arc<Self> {
        let waiters = Arc::new(Self {
            known: Mutex::default(),
            bell: Notify::new(),
            memory,
        });
        if let Some(server) = &waiters.memory {
            server.tell(&waiters);
        }
        waiters
    }

    /// Stands in line for a lock, unless the caller does not want to wait.
    pub(crate) fn join(self: &Arc<Self>, lock: &Lock, wait: Wait) -> Waiter {
        let (channel, ticket, is_first) = if wait == Wait::NONE {
            (Vec::new(), None, true)
        } else {
            let channel = lock.channel();
            let mut known = self.known();
            let line = &mut known.places.entry(channel.clone()).or_default().line;
            let ticket = line.join();
            let is_first = line.is_first(ticket);
            (channel, Some(ticket), is_first)
        };
        Waiter {
            waiters: Arc::clone(self),
            channel,
            ticket,
            is_first,
            has_asked: AtomicBool::new(is_first),
            denials: AtomicU32::new(0),
            has_left: AtomicBool::new(false),
        }
    }

    /// Takes in that a lock was released.
    pub(crate) fn released(&self, channel: &[u8]) {
        self.change(channel, |place| place.line.released());
    }

    /// Takes in whether the releases of a lock are told from now on.
    pub(crate) fn listen(&self, channel: &[u8], listening: bool) {
        self.change(channel, |place| place.line.listen(listening));
    }

    /// The same for a line that may be newer than what it is told by.
    pub(crate) fn is_told_already(&self, channel: &[u8]) {
        self.change(channel, |place| {
            if !place.line.is_listening() {
                place.line.listen(true);
            }
        });
    }

    /// Takes in that no releases are told any more.
    pub(crate) fn listen_to_none(&self) {
        for channel in self.wanted() {
            self.listen(&channel, false);
        }
    }

    /// The channels on which somebody waits for something to be told.
    pub(crate) fn wanted(&self) -> BTreeSet<Vec<u8>> {
        let known = self.known();
        let wanted = known.places.iter().filter(|(_, place)| place.is_wanted);
        wanted.map(|(channel, _)| channel.clone()).collect()
    }

    /// Comes when other channels are wanted than before, or may have come to be since the last time.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> {
        self.bell.notified()
    }

    /// Whether nobody will come any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.known().is_closed
    }

    /// Whether the connection is wanted; if not, the next who wants it has to see to it.
    pub(crate) fn want_connection(&self) -> bool {
        let mut known = self.known();
        known.is_served = known.places.values().any(|place| place.is_wanted);
        known.is_served
    }

    /// Says that there will be no connection.
    pub(crate) fn not_served(&self) {
        self.known().is_served = false;
    }

    /// Has the connection closed as soon as nobody waits.
    pub(crate) fn close(&self) {
        self.known().is_closed = true;
        self.bell.notify_one();
    }

    fn change(&self, channel: &[u8], change: impl FnOnce(&mut Place)) {
        let mut known = self.known();
        let Some(place) = known.places.get_mut(channel) else {
            return;
        };
        change(place);
        let due = place.take_due(self.memory.as_ref());
        drop(known);
        due.into_iter().for_each(Waker::wake);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whom to wake, once nothing is locked any more.
    fn take_due(&mut self, memory: Option<&Arc<Server>>) -> Option<Waker> {
        let due = self.line.due()?;
        if let Some(server) = memory {
            self.hold.get_or_insert_with(|| Caller::new(server));
        }
        self.wakers.remove(&due)
    }
}

/// A place in line, which is left with this value. An acquire that does not wait has none.
pub(crate) struct Waiter {
    waiters: Arc<Waiters>,
    channel: Vec<u8>,
    ticket: Option<Ticket>,
    /// When it came.
    is_first: bool,
    has_asked: AtomicBool,
    /// How often it was denied the lock.
    denials: AtomicU32,
    has_left: AtomicBool,
}

impl Waiter {
    /// Starts the acquire for which this one stands in line: the first asks at once.
    pub(crate) fn start(
        &self,
        lock: Lock,
        wait: Wait,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (
        Acquire,
        Step<<Acquire as tallylock_core::step::Operation>::Output>,
    ) {
        if self.is_first {
            Acquire::start(lock, wait, settings, seed, now)
        } else {
            Acquire::start_behind(lock, wait, settings, seed, now)
        }
    }

    /// What there is to tell the acquire; wakes the caller's task when there is something.
    pub(crate) fn poll_notice(&self, context: &mut Context<'_>) -> Poll<Event> {
        let Some(ticket) = self.ticket() else {
            return Poll::Pending;
        };
        let mut known = self.waiters.known();
        let Some(place) = known.places.get_mut(&self.channel) else {
            return Poll::Pending;
        };
        if let Some(notice) = place.line.notice_for(ticket) {
            return Poll::Ready(notice);
        }
        // It has taken in what it was told before, and waits again.
        let hold = place
            .hold
            .take_if(|_| place.line.is_first(ticket) && place.line.due().is_none());
        place.wakers.insert(ticket, context.waker().clone());
        drop(known);
        drop(hold);
        Poll::Pending
    }

    /// Remembers what the acquire was told; whether somebody has to open the connection, since it waits for a release.
    #[must_use]
    pub(crate) fn observe(&self, acquire: &Acquire) -> bool {
        if !acquire.is_behind() {
            self.has_asked.store(true, Ordering::Relaxed);
        }
        let (Some(denial), Some(_)) = (acquire.denial(), self.ticket()) else {
            return false;
        };
        let mut known = self.waiters.known();
        let Known {
            places, is_served, ..
        } = &mut *known;
        let Some(place) = places.get_mut(&self.channel) else {
            return false;
        };
        if self.denials.swap(acquire.denials(), Ordering::Relaxed) != acquire.denials() {
            place.line.deny(denial);
        }
        if std::mem::replace(&mut place.is_wanted, true) {
            return false;
        }
        if self.waiters.memory.is_some() {
            place.line.listen(true);
            let due = place.take_due(self.waiters.memory.as_ref());
            drop(known);
            due.into_iter().for_each(Waker::wake);
            return false;
        }
        self.waiters.bell.notify_one();
        !std::mem::replace(is_served, true)
    }

    /// Leaves the line with the acquire's result, and gives that: one that never asked is told what the others were told.
    pub(crate) fn leave_with<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        let result = result.map_err(|error| self.explain(error));
        self.leave(result.is_ok());
        result
    }

    fn explain(&self, error: Error) -> Error {
        let mut known = self.waiters.known();
        match known.places.get_mut(&self.channel) {
            Some(place) if self.ticket().is_some() => {
                if self.has_asked.load(Ordering::Relaxed) {
                    place.line.deny(&error);
                    error
                } else if error.code() == Code::Timeout {
                    place.line.error_of_unasked(error)
                } else {
                    error
                }
            }
            _ => error,
        }
    }

    fn leave(&self, granted: bool) {
        let Some(ticket) = self.ticket() else { return };
        self.has_left.store(true, Ordering::Relaxed);
        let mut known = self.waiters.known();
        let Some(place) = known.places.get_mut(&self.channel) else {
            return;
        };
        place.line.leave(ticket, granted);
        place.wakers.remove(&ticket);
        let due = place.take_due(self.waiters.memory.as_ref());
        let is_over = place.line.is_empty();
        let over = is_over.then(|| known.places.remove(&self.channel));
        drop(known);
        if over.flatten().is_some_and(|place| place.is_wanted) {
            self.waiters.bell.notify_one();
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// The ticket of one who is in line: the same number may be another's later.
    fn ticket(&self) -> Option<Ticket> {
        self.ticket
            .filter(|_| !self.has_left.load(Ordering::Relaxed))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.leave(false);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use tallylock_core::key::Key;
    use tallylock_core::lock::LeaseTtl;
    use tallylock_core::step::Notice;
    use tallylock_core::time::Ttl;

    use super::*;

    fn lock() -> Lock {
        let ttl = LeaseTtl::new(Ttl::from_millis(1_000).unwrap()).unwrap();
        Lock::new(Key::new("l").unwrap(), ttl)
    }

    fn join(waiters: &Arc<Waiters>) -> Waiter {
        waiters.join(&lock(), Wait::from_micros(1_000_000).unwrap())
    }

    fn notice(waiter: &Waiter) -> Poll<Event> {
        waiter.poll_notice(&mut Context::from_waker(Waker::noop()))
    }

    const NOTIFIED: Poll<Event> = Poll::Ready(Event::Notified(Notice::Deaf));

    #[test]
    fn the_first_alone_asks_at_once() {
        let waiters = Waiters::new(None);
        let asks_at_once = |waiter: &Waiter| {
            let (wait, seed) = (Wait::from_micros(1_000_000).unwrap(), Seed::new([1; 16]));
            let now = Instant::from_millis(0);
            let (_, step) = waiter.start(lock(), wait, &Settings::default(), seed, now);
            !step.calls.is_empty()
        };
        let (first, next) = (join(&waiters), join(&waiters));
        let does_not_wait = waiters.join(&lock(), Wait::NONE);
        let asking = [&first, &next, &does_not_wait].map(asks_at_once);
        assert_eq!(asking, [true, false, true]);
    }

    #[test]
    fn a_place_that_was_left_is_nobody_elses() {
        let waiters = Waiters::new(None);
        let first = join(&waiters);
        first.leave(false);
        let next = join(&waiters);
        drop(first);
        waiters.released(&lock().channel());
        assert_eq!(notice(&next), NOTIFIED);
        drop(next);
        assert!(waiters.known().places.is_empty());
    }

    #[test]
    fn the_virtual_clock_stands_still_until_a_notice_was_taken_in() {
        let server = Server::open(None);
        let waiters = Waiters::new(Some(Arc::clone(&server)));
        let (caller, busy) = (Caller::new(&server), Caller::new(&server));
        let waiter = join(&waiters);
        let mut context = Context::from_waker(Waker::noop());
        let until = Instant::from_millis(500);
        let mut sleep = caller.sleep_until(until);
        assert!(notice(&waiter).is_pending());
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
        waiters.released(&lock().channel());
        drop(busy);
        assert_eq!(server.now(), Instant::from_millis(0), "it is about to act");
        assert_eq!(notice(&waiter), NOTIFIED);
        drop(sleep);
        assert!(notice(&waiter).is_pending());
        let mut sleep = caller.sleep_until(until);
        assert!(Pin::new(&mut sleep).poll(&mut context).is_ready());
        assert_eq!(server.now(), until, "it waits again");
    }

    #[test]
    fn the_clock_stands_still_until_the_next_in_line_has_come_forward() {
        let server = Server::open(None);
        let waiters = Waiters::new(Some(Arc::clone(&server)));
        let (leaves, stays) = (Caller::new(&server), Caller::new(&server));
        let (first, next) = (join(&waiters), join(&waiters));
        let mut context = Context::from_waker(Waker::noop());
        let mut sleep = stays.sleep_until(Instant::from_millis(500));
        assert!(notice(&next).is_pending());
        assert!(Pin::new(&mut sleep).poll(&mut context).is_pending());
        drop(first);
        drop(leaves);
        assert_eq!(server.now(), Instant::from_millis(0));
        assert_eq!(notice(&next), NOTIFIED);
    }
}
