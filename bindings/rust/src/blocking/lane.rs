//! How an operation's calls travel on the calling thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tallylock_core::drive::{BlockingClock, BlockingTransport};
use tallylock_core::step::{Call, CallId, Event, Lane as Wanted, Outcome, Undelivered};
use tallylock_core::time::Instant;

use super::connection::{Connection, Received};
use super::deadline::Deadline;
use super::pool::Pool;
use crate::clock;
use crate::memory::Caller;
use crate::waiters::Waiter;

/// The way of one operation to the server: all of its calls go over one connection, in order, as long as that lasts.
///
/// Nothing is done when a call is handed over; connecting, writing and reading all happen while the operation waits, so
/// that they end when its wait does.
pub(super) struct Lane {
    pool: Arc<Pool>,
    connection: Option<Box<Connection>>,
    /// The lane of its own that the connection serves.
    own: Option<u32>,
    unsent: VecDeque<Call>,
    unanswered: VecDeque<(CallId, Outcome)>,
}

impl Lane {
    pub(super) fn new(pool: &Arc<Pool>) -> Self {
        Self {
            pool: Arc::clone(pool),
            connection: None,
            own: None,
            unsent: VecDeque::new(),
            unanswered: VecDeque::new(),
        }
    }

    /// Writes what was not sent yet.
    fn write(&mut self, deadline: &mut Deadline) -> Result<(), (CallId, Undelivered)> {
        while let Some(call) = self.unsent.pop_front() {
            self.write_one(&call, deadline)
                .map_err(|undelivered| (call.id, undelivered))?;
        }
        Ok(())
    }

    fn write_one(&mut self, call: &Call, deadline: &mut Deadline) -> Result<(), Undelivered> {
        if let Wanted::Own(number) = call.lane {
            if self.own == Some(number) && self.connection.is_none() {
                return Err(Undelivered::NotSent(
                    "the connection that watched the keys was lost".into(),
                ));
            }
            self.own = Some(number);
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.pool.take(deadline)?),
        };
        connection
            .send(call, deadline)
            .inspect_err(|_| self.give_up("the request could not be written"))
    }

    fn give_up(&mut self, why: &str) {
        if let Some(connection) = self.connection.take() {
            self.unanswered.extend(connection.into_unanswered(why));
        }
    }
}

impl BlockingTransport for Lane {
    fn send(&mut self, call: Call) -> Result<(), Undelivered> {
        self.unsent.push_back(call);
        Ok(())
    }

    fn receive(&mut self, until: Instant) -> Option<(CallId, Outcome)> {
        let mut deadline = Deadline::new(until);
        if let Err((call, undelivered)) = self.write(&mut deadline) {
            return Some((call, Err(undelivered)));
        }
        if let Some(connection) = &mut self.connection {
            match connection.receive(&mut deadline) {
                Received::Answer(call, replies) => return Some((call, Ok(replies))),
                Received::Silence => {}
                Received::Broken(why) => self.give_up(&why),
            }
        }
        self.unanswered.pop_front()
    }

    fn is_expecting(&self) -> bool {
        let owed = self
            .connection
            .as_ref()
            .is_some_and(|connection| !connection.is_settled());
        owed || !self.unsent.is_empty() || !self.unanswered.is_empty()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }
}

/// The machine's clock for a thread that may wait.
pub(super) struct Sleeper;

impl BlockingClock for Sleeper {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn wait_until(&self, until: Instant) -> Event {
        thread::sleep(clock::left_until(until));
        Event::Woke
    }
}

/// The same for one who waits in line.
pub(super) struct InLine<'a>(pub(super) &'a Waiter);

impl BlockingClock for InLine<'_> {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn wait_until(&self, until: Instant) -> Event {
        let waker = Unpark::this_thread();
        loop {
            if let Poll::Ready(notice) = self.0.poll_notice(&mut Context::from_waker(&waker)) {
                return notice;
            }
            let left = clock::left_until(until);
            if left.is_zero() {
                return Event::Woke;
            }
            thread::park_timeout(left);
        }
    }
}

/// The way of an operation to the server in memory.
pub(super) struct MemoryLane<'a> {
    caller: &'a Caller,
    answered: VecDeque<(CallId, Outcome)>,
}

impl<'a> MemoryLane<'a> {
    pub(super) fn new(caller: &'a Caller) -> Self {
        Self {
            caller,
            answered: VecDeque::new(),
        }
    }
}

impl BlockingTransport for MemoryLane<'_> {
    fn send(&mut self, call: Call) -> Result<(), Undelivered> {
        let outcome = self.caller.execute(&call);
        self.answered.push_back((call.id, outcome));
        Ok(())
    }

    fn receive(&mut self, _until: Instant) -> Option<(CallId, Outcome)> {
        self.answered.pop_front()
    }

    fn is_expecting(&self) -> bool {
        !self.answered.is_empty()
    }
}

/// The virtual clock for a thread that may wait, perhaps in line.
pub(super) struct MemorySleeper<'a>(pub(super) &'a Caller, pub(super) Option<&'a Waiter>);

impl BlockingClock for MemorySleeper<'_> {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wait_until(&self, until: Instant) -> Event {
        let mut sleep = std::pin::pin!(self.0.sleep_until(until));
        let waker = Unpark::this_thread();
        let mut context = Context::from_waker(&waker);
        loop {
            let notice = self.1.map(|waiter| waiter.poll_notice(&mut context));
            if let Some(Poll::Ready(notice)) = notice {
                return notice;
            }
            if sleep.as_mut().poll(&mut context).is_ready() {
                return Event::Woke;
            }
            thread::park();
        }
    }
}

struct Unpark(Thread);

impl Unpark {
    fn this_thread() -> Waker {
        Arc::new(Self(thread::current())).into()
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
