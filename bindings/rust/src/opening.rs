//! A connection that is being opened, or was, and the calls that wait for it in the order in which they were asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tallylock_core::step::{Call, Undelivered};
use tallylock_core::time::Instant;
use tokio::sync::watch;

use crate::clock;
use crate::connection::{Connection, Sending};

/// How opening a connection went.
pub(crate) type Opened = Result<Arc<Connection>, Undelivered>;

/// What those see who want the connection.
pub(crate) struct Opening {
    /// Nothing yet, or how it went.
    opened: watch::Receiver<Option<Opened>>,
    queue: Mutex<Vec<Arc<Mutex<Place>>>>,
}

/// What opens it, and says once how that went.
pub(crate) struct Opener {
    tell: watch::Sender<Option<Opened>>,
    opening: Arc<Opening>,
}

/// What becomes of a call.
pub(crate) enum Asked {
    /// The connection is there, and the call is to be sent over it at once.
    Ready(Arc<Connection>, Call),
    /// The call is sent as soon as the connection is there.
    Queued(Queued),
}

/// A call that waits, and is never sent if it is given up before the connection is there.
pub(crate) struct Queued {
    pub(crate) opening: Arc<Opening>,
    /// Until when it may be sent.
    pub(crate) until: Instant,
    place: Arc<Mutex<Place>>,
}

/// What has become of a call that waits.
enum Place {
    Waiting(Call, Instant),
    Sent(Arc<Connection>, Sending),
    Left,
}

impl Opening {
    pub(crate) fn begin() -> (Opener, Arc<Self>) {
        let (tell, opened) = watch::channel(None);
        let queue = Mutex::default();
        let this = Arc::new(Self { opened, queue });
        let opening = Arc::clone(&this);
        (Opener { tell, opening }, this)
    }

    /// How it went, if that is known yet.
    pub(crate) fn opened(&self) -> Option<Opened> {
        self.opened.borrow().clone()
    }

    /// Comes when it is known how it went; nothing comes of a runtime that ended.
    pub(crate) async fn wait(&self) -> Option<Opened> {
        let mut opened = self.opened.clone();
        let opened = opened.wait_for(Option::is_some).await.ok()?;
        opened.clone()
    }

    /// Whether a new operation may begin on it.
    pub(crate) fn is_good(&self) -> bool {
        match &*self.opened.borrow() {
            Some(Ok(connection)) => connection.is_good(),
            // Those who waited were told; who comes now tries again.
            Some(Err(_)) => false,
            None => self.is_under_way(),
        }
    }

    /// Whether it is good for nothing more, also for those who began with it.
    pub(crate) fn has_failed(&self) -> bool {
        match &*self.opened.borrow() {
            Some(opened) => opened.is_err(),
            None => !self.is_under_way(),
        }
    }

    /// Whether this is how the connection was opened.
    pub(crate) fn is_of(&self, connection: &Arc<Connection>) -> bool {
        match &*self.opened.borrow() {
            Some(Ok(opened)) => Arc::ptr_eq(opened, connection),
            _ => false,
        }
    }

    /// Gives a call its place behind all that were asked before; where it has to wait, it is not sent after this moment.
    pub(crate) fn ask(
        self: &Arc<Self>,
        call: Call,
        until: impl FnOnce() -> Instant,
    ) -> Result<Asked, Undelivered> {
        if let Some(opened) = self.opened() {
            return Ok(Asked::Ready(opened?, call));
        }
        let mut queue = lock(&self.queue);
        // Once more: those who waited may have been sent meanwhile, and nobody looks at the queue again.
        if let Some(opened) = self.opened() {
            return Ok(Asked::Ready(opened?, call));
        }
        let until = until();
        let place = Arc::new(Mutex::new(Place::Waiting(call, until)));
        queue.push(Arc::clone(&place));
        let opening = Arc::clone(self);
        Ok(Asked::Queued(Queued {
            opening,
            until,
            place,
        }))
    }

    fn is_under_way(&self) -> bool {
        // A sender that is gone without a word was on a runtime that ended.
        self.opened.has_changed().is_ok()
    }
}

impl Opener {
    /// Sends the calls that wait, in their order, before anybody else can have the connection. All are measured by one time: of
    /// two that are waited for equally long, the later is sent if the earlier is, whoever has noticed that he waits no longer.
    pub(crate) fn end(self, opened: Opened) {
        let mut queue = lock(&self.opening.queue);
        let now = clock::now();
        for place in queue.drain(..) {
            let Ok(connection) = &opened else { continue };
            let mut place = lock(&place);
            *place = match std::mem::replace(&mut *place, Place::Left) {
                Place::Waiting(call, until) if now < until => {
                    Place::Sent(Arc::clone(connection), connection.begin(call))
                }
                left => left,
            };
        }
        // Whoever comes now finds it open, and goes behind these.
        self.tell.send_replace(Some(opened));
    }
}

impl Queued {
    /// Leaves the queue; gives the connection over which the call was sent, and its answer, unless it was not sent and never
    /// will be.
    pub(crate) fn leave(self) -> Option<(Arc<Connection>, Sending)> {
        match self.take() {
            Place::Sent(connection, sending) => Some((connection, sending)),
            Place::Waiting(..) | Place::Left => None,
        }
    }

    fn take(&self) -> Place {
        std::mem::replace(&mut *lock(&self.place), Place::Left)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Nothing panics while it holds one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::listener::{Listener, call};

    /// More than redis-rs's queue has room for unless it is told otherwise.
    const CALLS: u32 = 200;

    fn queued(opening: &Arc<Opening>, number: u32, until: Instant) -> Queued {
        match opening.ask(call(number), || until) {
            Ok(Asked::Queued(queued)) => queued,
            _ => panic!("it is not open yet"),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn calls_go_out_in_the_order_in_which_they_were_asked() {
        let listener = Listener::bind();
        let opening = listener.connections(&Handle::current()).opening();
        let past = clock::now();
        let later = past.plus(60_000);
        let mut waiting: Vec<_> = (0..CALLS)
            .map(|number| {
                let until = if number % 5 == 4 { past } else { later };
                queued(&opening, number, until)
            })
            .collect();
        let mut number = 0;
        waiting.retain(|_| {
            number += 1;
            number % 3 != 0
        });
        // Given up, they are no calls any more: once begun, one may be on its way before it is let go of.
        let waits = |place: &&Arc<Mutex<Place>>| matches!(*lock(place), Place::Waiting(..));
        let left = lock(&opening.queue).iter().filter(waits).count();
        assert_eq!(left, waiting.len());
        let accepted = listener.accept();
        let served = tokio::task::spawn_blocking(move || accepted.serve(CALLS));
        let Some(Ok(connection)) = opening.wait().await else {
            panic!("it answered")
        };
        // Whoever comes now is behind those who waited, none of whom has looked yet.
        let last = connection.begin(call(CALLS));
        let expected = (0..=CALLS).filter(|number| {
            let was_left = number % 3 == 2;
            let was_late = number % 5 == 4;
            *number == CALLS || !was_left && !was_late
        });
        assert_eq!(served.await.unwrap(), expected.collect::<Vec<_>>());
        let sent = waiting.into_iter().filter_map(Queued::leave);
        assert!(sent.count() > 100);
        drop(last);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_waits_is_told_that_there_is_no_connection() {
        let listener = Listener::bind();
        let connections = listener.connections(&Handle::current());
        let opening = connections.opening();
        let queued = queued(&opening, 1, clock::now().plus(60_000));
        // A connection that ends without a word.
        drop(listener.accept());
        let sent = connections.sent(queued).await;
        assert!(matches!(sent, Err(Undelivered::NotSent(_))));
        assert!(opening.has_failed() && !opening.is_good());
        assert!(opening.ask(call(2), clock::now).is_err());
        assert!(!Arc::ptr_eq(&opening, &connections.opening()));
    }
}
