//! The meter of the asynchronous client.

mod book;
mod journal;
mod options;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::meter::{Flushed, Refused};
use tokio::sync::{Mutex, Notify};

use crate::Client;

pub use options::MeterOptions;

pub(crate) use book::Book;

/// Sums adds in memory and brings the sums to the server now and then, each once. Cheap to clone; clones share what is held.
///
/// An add costs no round trip. What has gathered is flushed in the background every [interval](MeterOptions::interval), and
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
    /// Wakes the task in the background.
    bell: Arc<Notify>,
}

impl Meter {
    pub(crate) fn new(client: Client, options: MeterOptions) -> Result<Self, Error> {
        client.backend().check_open()?;
        let book = Book::open(options, client.backend().settings().timeout)?;
        let (bell, interval) = (Arc::new(Notify::new()), book.interval());
        let runtime = client.runtime().clone();
        let inner = Arc::new(Inner {
            client,
            book,
            turn: Mutex::default(),
            bell: Arc::clone(&bell),
        });
        runtime.spawn(flush_now_and_then(Arc::downgrade(&inner), bell, interval));
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
            bell.notify_one();
        }
        Ok(())
    }

    /// Brings all that was added until now to the server, and says how much that was. It goes on in the background if the
    /// future is dropped.
    ///
    /// # Errors
    /// If something still waits: how much, and with the code of the reason. It is held as before, and the next flush sends it
    /// again; nothing is counted twice. `closed` after [`close`](Self::close).
    pub async fn flush(&self) -> Result<Flushed, Error> {
        self.inner.book.check_open()?;
        let inner = Arc::clone(&self.inner);
        self.in_background(async move {
            let _turn = inner.turn.lock().await;
            // While it waited for its turn, the meter may have been closed.
            inner.book.check_open()?;
            let (flushed, trouble) = inner.flush().await;
            trouble.map_or(Ok(flushed), Err)
        })
        .await
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
    pub async fn close(&self) -> Result<Flushed, Error> {
        self.inner.book.check_process()?;
        self.inner.book.close();
        self.inner.bell.notify_one();
        let inner = Arc::clone(&self.inner);
        self.in_background(async move {
            let _turn = inner.turn.lock().await;
            let (flushed, trouble) = inner.flush().await;
            inner.book.finish(flushed, trouble.as_ref())
        })
        .await
    }

    async fn in_background<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let task = self.inner.client.runtime().spawn(work);
        task.await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::new(
                    Code::OutcomeUnknown,
                    "the client's runtime was shut down",
                )),
            })
    }
}

impl Inner {
    /// One pass, for whoever has the turn.
    async fn flush(&self) -> (Flushed, Option<Error>) {
        let mut flush = self.book.begin();
        while let Some(mut batch) = self.book.next_batch(&mut flush) {
            let results = self.client.add_many(batch.take_adds()).await;
            self.book.settle(&mut flush, batch, results);
        }
        self.book.end(flush)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A child of `fork` has no such task, and perhaps a lock that nobody opens any more.
        if self.book.check_process().is_ok() {
            self.bell.notify_one();
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

async fn flush_now_and_then(meter: Weak<Inner>, bell: Arc<Notify>, interval: Duration) {
    loop {
        // Rung or not, it is time.
        let _ = tokio::time::timeout(interval, bell.notified()).await;
        let Some(inner) = meter.upgrade() else {
            return;
        };
        if inner.book.is_closed() {
            return;
        }
        let _turn = inner.turn.lock().await;
        // What it leaves waiting can be asked for as the trouble of the last flush.
        inner.flush().await;
    }
}
