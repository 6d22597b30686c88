//! The meter of the blocking client.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::meter::{Flushed, Refused};

use super::Client;
use crate::meter::{Book, MeterOptions};

/// Sums adds in memory and brings the sums to the server now and then, each once. Cheap to clone; clones share what is held.
///
/// An add costs no round trip. What has gathered is flushed by a thread of its own every [interval](MeterOptions::interval), and
/// what cannot be flushed waits, and is sent again under the same idempotency keys. Whoever drops it without
/// [`close`](Self::close), or dies, loses what was not flushed yet, unless there is a [journal](MeterOptions::journal).
///
/// It belongs to the process that made it: in a child that was forked off, each verb fails with `closed`.
#[derive(Clone)]
pub struct Meter {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    book: Book,
    /// Held by the flush under way.
    turn: Mutex<()>,
    /// Wakes the thread.
    bell: Arc<Bell>,
}

impl Meter {
    pub(super) fn new(client: Client, options: MeterOptions) -> Result<Self, Error> {
        client.backend().check_open()?;
        let book = Book::open(options, client.backend().settings().timeout)?;
        let (bell, interval) = (Arc::new(Bell::default()), book.interval());
        let inner = Arc::new(Inner {
            client,
            book,
            turn: Mutex::default(),
            bell: Arc::clone(&bell),
        });
        let meter = Arc::downgrade(&inner);
        thread::Builder::new()
            .name("tallylock-meter".into())
            .spawn(move || flush_now_and_then(&meter, &bell, interval))
            .map_err(|error| {
                let detail = format!("the system starts no thread for the meter: {error}");
                Error::new(Code::Unavailable, detail)
            })?;
        Ok(Self { inner })
    }

    /// Adds `amount`, which may be negative or 0, to what is held for the counter `key`. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`Client::counter`], `overflow` if the sum does not fit into 64 bits,
    /// `busy` if the meter holds as many sums as it may, `unavailable` if the journal cannot be written to, and `closed`. Nothing
    /// is counted then.
    pub fn add(&self, key: impl AsRef<[u8]>, amount: i64) -> Result<(), Error> {
        let Inner {
            client, book, bell, ..
        } = &*self.inner;
        client.backend().check_open()?;
        if book.add(key.as_ref(), amount)?.is_due {
            bell.ring();
        }
        Ok(())
    }

    /// Brings all that was added until now to the server, and says how much that was.
    ///
    /// # Errors
    /// If something still waits: how much, and with the code of the reason. It is held as before, and the next flush sends it
    /// again; nothing is counted twice. `closed` after [`close`](Self::close).
    pub fn flush(&self) -> Result<Flushed, Error> {
        self.inner.book.check_open()?;
        let _turn = self.inner.turn();
        // While it waited for its turn, the meter may have been closed.
        self.inner.book.check_open()?;
        let (flushed, trouble) = self.inner.flush();
        trouble.map_or(Ok(flushed), Err)
    }

    /// Takes what the server refuses however often it is sent: sums for keys that hold something else, and, with
    /// `outcome_unknown`, what may or may not have been counted so long ago that the server has forgotten. They are the caller's
    /// now; until they are taken they count to [`max_counters`](MeterOptions::max_counters).
    ///
    /// # Errors
    /// `unavailable` if it cannot be written down in the journal that they were taken; they are held as before then.
    pub fn take_refused(&self) -> Result<Vec<Refused>, Error> {
        self.inner.book.take_refused()
    }

    /// Why the last flush, in the background or not, left something waiting; nothing if it did not.
    pub fn trouble(&self) -> Option<Error> {
        self.inner.book.trouble()
    }

    /// Lets nothing more in, and flushes once. With a journal, what is left stays in it for the next meter, and the answer
    /// says how much. Can be called again: without a journal that flushes what was left.
    ///
    /// # Errors
    /// Without a journal, if something is not on the server: how much that is, and with the code of the reason.
    pub fn close(&self) -> Result<Flushed, Error> {
        let Inner { book, bell, .. } = &*self.inner;
        book.check_process()?;
        book.close();
        bell.ring();
        // Kept to the end: what another flush had under way would be taken from it.
        let _turn = self.inner.turn();
        let (flushed, trouble) = self.inner.flush();
        book.finish(flushed, trouble.as_ref())
    }
}

impl Inner {
    /// The right to flush, when the flush under way is over.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One pass, for whoever has the turn.
    fn flush(&self) -> (Flushed, Option<Error>) {
        let mut flush = self.book.begin();
        while let Some(mut batch) = self.book.next_batch(&mut flush) {
            let results = self.client.add_many(batch.take_adds());
            self.book.settle(&mut flush, batch, results);
        }
        self.book.end(flush)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A child of `fork` has no such thread, and perhaps a lock that nobody opens any more.
        if self.book.check_process().is_ok() {
            self.bell.ring();
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

fn flush_now_and_then(meter: &Weak<Inner>, bell: &Bell, interval: Duration) {
    loop {
        bell.wait(interval);
        let Some(inner) = meter.upgrade() else {
            return;
        };
        if inner.book.is_closed() {
            return;
        }
        let _turn = inner.turn();
        // What it leaves waiting can be asked for as the trouble of the last flush.
        inner.flush();
    }
}

/// What a thread waits for that has something to do now and then.
#[derive(Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.is_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }

    /// Waits for a ring, at the longest for so long.
    fn wait(&self, longest: Duration) {
        let is_rung = self.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut is_rung, _) = self
            .rung
            .wait_timeout_while(is_rung, longest, |is_rung| !*is_rung)
            .unwrap_or_else(PoisonError::into_inner);
        *is_rung = false;
    }
}
