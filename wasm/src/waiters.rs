//! Those who wait for locks through one client: a line for each lock, and what wakes its first.

#![cfg_attr(
    not(feature = "waiting"),
    allow(
        dead_code,
        unused_imports,
        reason = "nothing of this is in a file that hears of nothing"
    )
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Acquire, Lock};
use tallylock_core::settings::Nodes;
use tallylock_core::step::Event;
use tallylock_core::time::Wait;
use tallylock_core::waiting::{Line, Ticket};

use crate::client::Shared;
use crate::hearing;
use crate::task::StartedTask;

/// Where those who wait stand, in the order of the channels on which releases are told.
#[derive(Default)]
pub(crate) struct Waiters {
    places: RefCell<Vec<Rc<Place>>>,
}

/// Where the waiters for one lock stand.
struct Place {
    channel: Vec<u8>,
    line: RefCell<Line>,
    wakers: RefCell<Vec<(Ticket, Waker)>>,
    /// Whether the first waits for a release.
    is_wanted: Cell<bool>,
}

impl Waiters {
    /// Takes in that a lock was released.
    pub(crate) fn released(&self, channel: &[u8]) {
        self.change(channel, &mut Line::released);
    }

    /// Takes in whether the releases of a lock are told from now on.
    pub(crate) fn listen(&self, channel: &[u8], listening: bool) {
        self.change(channel, &mut |line| line.listen(listening));
    }

    /// The same for a line that may be newer than what it is told by.
    pub(crate) fn is_told_already(&self, channel: &[u8]) {
        self.change(channel, &mut |line| {
            if !line.is_listening() {
                line.listen(true);
            }
        });
    }

    /// The channels on which somebody waits for something to be told.
    pub(crate) fn wanted(&self) -> BTreeSet<Vec<u8>> {
        let places = self.places.borrow();
        let wanted = places.iter().filter(|place| place.is_wanted.get());
        wanted.map(|place| place.channel.clone()).collect()
    }

    /// Changes a line, and wakes whom that concerns.
    fn change(&self, channel: &[u8], change: &mut dyn FnMut(&mut Line)) {
        let places = self.places.borrow();
        let place = find(&places, channel).ok().map(|at| Rc::clone(&places[at]));
        // Nothing is borrowed any more: who is woken may act at once.
        drop(places);
        if let Some(place) = place {
            change(&mut place.line.borrow_mut());
            place.wake_due();
        }
    }
}

/// Whether this build hears of releases. Where it does not, none of this is in the file.
const fn is_told_at_all() -> bool {
    cfg!(feature = "waiting")
}

fn find(places: &[Rc<Place>], channel: &[u8]) -> Result<usize, usize> {
    places.binary_search_by(|place| place.channel.as_slice().cmp(channel))
}

impl Place {
    fn wake_due(&self) {
        let due = self.line.borrow().due();
        if let Some(waker) = due.and_then(|due| self.take_waker(due)) {
            waker.wake();
        }
    }

    fn take_waker(&self, ticket: Ticket) -> Option<Waker> {
        let mut wakers = self.wakers.borrow_mut();
        let at = wakers.iter().position(|(of, _)| *of == ticket)?;
        Some(wakers.swap_remove(at).1)
    }
}

/// A place in line, until [`Waiter::leave`].
pub(crate) struct Waiter<'a> {
    shared: &'a Rc<Shared>,
    /// Nowhere, for an acquire that does not wait, or asks several servers.
    place: Option<(Rc<Place>, Ticket)>,
    has_left: Cell<bool>,
    has_asked: Cell<bool>,
    /// How often it was denied the lock.
    denials: Cell<u32>,
}

impl<'a> Waiter<'a> {
    /// Stands in line for a lock, unless the caller does not want to wait. Several servers are asked by each for itself.
    pub(crate) fn join(shared: &'a Rc<Shared>, lock: &Lock, wait: Wait) -> Self {
        let mut waiter = Self {
            shared,
            place: None,
            has_left: Cell::new(false),
            has_asked: Cell::new(true),
            denials: Cell::new(0),
        };
        if is_told_at_all() && wait != Wait::NONE && shared.settings.nodes == Nodes::ONE {
            let channel = lock.channel();
            let mut places = shared.waiters.places.borrow_mut();
            let at = find(&places, &channel).unwrap_or_else(|at| {
                let place = Place {
                    channel,
                    line: RefCell::default(),
                    wakers: RefCell::default(),
                    is_wanted: Cell::new(false),
                };
                places.insert(at, Rc::new(place));
                at
            });
            let place = Rc::clone(&places[at]);
            let mut line = place.line.borrow_mut();
            let ticket = line.join();
            waiter.has_asked.set(line.is_first(ticket));
            drop(line);
            waiter.place = Some((place, ticket));
        }
        waiter
    }

    /// Starts the acquire for which this one stands in line, which was just joined: the first asks at once.
    pub(crate) fn start(&self, lock: Lock, wait: Wait) -> StartedTask {
        let (settings, _, now) = self.shared.at_start();
        let secret = self.shared.link.secret();
        let start = if self.has_asked.get() {
            Acquire::start
        } else {
            Acquire::start_behind
        };
        start(lock, wait, settings, secret, now).into()
    }

    /// What there is to tell the acquire; wakes the caller's task when there is something.
    pub(crate) fn poll_notice(&self, context: &mut Context<'_>) -> Poll<Event> {
        // All that wait are stopped one after the other by the end of their client: nobody comes forward meanwhile.
        let Some((place, ticket)) = self.place().filter(|_| !self.shared.is_closed()) else {
            return Poll::Pending;
        };
        if let Some(notice) = place.line.borrow_mut().notice_for(*ticket) {
            return Poll::Ready(notice);
        }
        place.take_waker(*ticket);
        let waker = (*ticket, context.waker().clone());
        place.wakers.borrow_mut().push(waker);
        Poll::Pending
    }

    /// Remembers what the acquire was told, and has its release listened for once it waits for one.
    pub(crate) fn observe(&self, acquire: &Acquire) {
        if !acquire.is_behind() {
            self.has_asked.set(true);
        }
        let (Some(denial), Some((place, _))) = (acquire.denial(), self.place()) else {
            return;
        };
        if self.denials.replace(acquire.denials()) != acquire.denials() {
            place.line.borrow_mut().deny(denial);
        }
        if !place.is_wanted.replace(true) {
            hearing::tend(self.shared);
        }
    }

    /// Leaves the line, with the lock or for a reason: one that never asked is told what the others were told.
    pub(crate) fn leave(&self, reason: Option<Error>) -> Option<Error> {
        let Some((place, ticket)) = self.place() else {
            return reason;
        };
        self.has_left.set(true);
        let mut line = place.line.borrow_mut();
        let reason = reason.map(|error| {
            if self.has_asked.get() {
                line.deny(&error);
            } else if error.code() == Code::Timeout {
                return line.error_of_unasked(error);
            }
            error
        });
        line.leave(*ticket, reason.is_none());
        let is_over = line.is_empty();
        drop(line);
        place.take_waker(*ticket);
        if is_over {
            let mut places = self.shared.waiters.places.borrow_mut();
            places.retain(|known| !Rc::ptr_eq(known, place));
            drop(places);
            if place.is_wanted.get() {
                hearing::tend(self.shared);
            }
        }
        place.wake_due();
        reason
    }

    /// Where it stands, until it leaves: the same ticket may be another's later.
    fn place(&self) -> Option<&(Rc<Place>, Ticket)> {
        let place = self.place.as_ref().filter(|_| is_told_at_all());
        place.filter(|_| !self.has_left.get())
    }
}
