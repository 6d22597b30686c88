//! What both meters are built on: what is held, and the journal in which it is written down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tallylock_core::counter::Added;
use tallylock_core::error::{Code, Error};
use tallylock_core::meter::{Batch, Counted, Flushed, Pass, Refused, Settled, Tally};
use tallylock_core::time::{Instant, Ttl};

use super::MeterOptions;
use super::journal::Journal;
use crate::{clock, random};

/// What a meter holds, for all who add to it and for the one who flushes.
pub(crate) struct Book {
    /// The process that made it: a child of `fork` has a copy, and what both sent would be counted twice.
    process: u32,
    is_closed: AtomicBool,
    clock: WallClock,
    interval: Duration,
    pages: Mutex<Pages>,
}

struct Pages {
    tally: Tally,
    journal: Option<Journal>,
    /// Why the last flush did not bring everything to the server.
    trouble: Option<Error>,
}

/// A flush under way.
pub(crate) struct Flush {
    pass: Pass,
    /// Why something could not be written down in the journal.
    unwritten: Option<Error>,
}

impl Book {
    /// A book for a client whose calls take at most `timeout`, with what is in the journal.
    pub(crate) fn open(options: MeterOptions, timeout: Ttl) -> Result<Self, Error> {
        let interval = Duration::from_millis(options.settings.interval.as_millis());
        let mut tally = Tally::new(options.settings, timeout)?;
        let mut journal = None;
        if let Some(directory) = options.journal {
            let (opened, segments) = Journal::open(&directory)?;
            for segment in segments {
                tally.restore(segment);
            }
            journal = Some(opened);
        }
        Ok(Self {
            process: std::process::id(),
            is_closed: AtomicBool::new(false),
            clock: WallClock::new(),
            interval,
            pages: Mutex::new(Pages {
                tally,
                journal,
                trouble: None,
            }),
        })
    }

    /// How often it is flushed.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Counts an add.
    pub(crate) fn add(&self, key: &[u8], amount: i64) -> Result<Counted, Error> {
        self.check_process().map_err(|error| error.about(key))?;
        let mut pages = self.pages();
        // Whoever closes it holds the same lock: nothing is added behind the last flush.
        if self.is_closed() {
            return Err(closed().about(key));
        }
        let Pages { tally, journal, .. } = &mut *pages;
        let admitted = tally.admit(key, amount, random::secret)?;
        if let Some(journal) = journal {
            journal.append(admitted.segment(), key, amount, self.clock.now())?;
        }
        Ok(admitted.count())
    }

    /// Begins a flush, of which there is one at a time.
    pub(crate) fn begin(&self) -> Flush {
        Flush {
            pass: self.pages().tally.begin(),
            unwritten: None,
        }
    }

    /// What is to be sent next, written down as sent; nothing at the end.
    pub(crate) fn next_batch(&self, flush: &mut Flush) -> Option<Batch> {
        let mut pages = self.pages();
        let Pages { tally, journal, .. } = &mut *pages;
        let now = self.clock.now();
        let batch = tally.next_batch(&mut flush.pass, now)?;
        let Some(journal) = journal else {
            return Some(batch);
        };
        let mut marks = batch
            .newly_doubtful()
            .iter()
            .map(|id| journal.mark(id, now));
        match marks.find_map(Result::err) {
            None => Some(batch),
            Some(error) => {
                drop(tally.settle(&mut flush.pass, batch, Err(error)));
                None
            }
        }
    }

    /// Takes in what has become of a batch.
    pub(crate) fn settle(
        &self,
        flush: &mut Flush,
        batch: Batch,
        results: Result<Vec<Result<Added, Error>>, Error>,
    ) {
        let mut pages = self.pages();
        let settled = pages.tally.settle(&mut flush.pass, batch, results);
        flush.unwritten = pages.note(settled).err().or(flush.unwritten.take());
    }

    /// What a flush has come to, and why not to more.
    pub(crate) fn end(&self, flush: Flush) -> (Flushed, Option<Error>) {
        let mut pages = self.pages();
        let (flushed, trouble) = pages.tally.end(flush.pass);
        let trouble = trouble.or(flush.unwritten);
        pages.trouble.clone_from(&trouble);
        (flushed, trouble)
    }

    /// Why the last flush did not bring everything to the server; nothing if it did.
    pub(crate) fn trouble(&self) -> Option<Error> {
        match self.check_process() {
            Ok(()) => self.pages().trouble.clone(),
            Err(error) => Some(error),
        }
    }

    /// Takes what was refused.
    pub(crate) fn take_refused(&self) -> Result<Vec<Refused>, Error> {
        self.check_process()?;
        let mut pages = self.pages();
        let mut all = Vec::new();
        while let Some(refusals) = pages.tally.refusals() {
            if let Some(journal) = &mut pages.journal {
                match journal.done(&refusals.id, &refusals.keys) {
                    Err(error) if all.is_empty() => return Err(error),
                    // What could be written down is the caller's; the rest is taken the next time.
                    Err(_) => break,
                    Ok(()) => {}
                }
            }
            let taken = pages.tally.take(&refusals);
            all.extend(taken.refused);
            let noted = pages.note(Settled {
                entries: Vec::new(),
                emptied: taken.emptied.into_iter().collect(),
            });
            if let Err(error) = noted {
                // It is tried again with the next flush.
                pages.trouble = Some(error);
            }
        }
        Ok(all)
    }

    /// Lets nothing more in.
    pub(crate) fn close(&self) {
        let _pages = self.pages();
        self.is_closed.store(true, Ordering::Release);
    }

    /// What the last flush means to one who goes away: what is in the journal stays there for the next, and what is nowhere
    /// else is an error.
    pub(crate) fn finish(
        &self,
        flushed: Flushed,
        trouble: Option<&Error>,
    ) -> Result<Flushed, Error> {
        let mut pages = self.pages();
        if pages.journal.take().is_some() {
            pages.tally.forget();
            return Ok(flushed);
        }
        pages.tally.left(trouble).map_or(Ok(flushed), Err)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// `closed` if it is, or if this is not the process that made it.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.check_process()?;
        if self.is_closed() {
            return Err(closed());
        }
        Ok(())
    }

    /// `closed` if this is not the process that made it.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if std::process::id() == self.process {
            return Ok(());
        }
        Err(Error::new(
            Code::Closed,
            "the meter belongs to the process that forked this one, which counts what it holds; make one in each process",
        ))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Nothing panics while it holds the mutex.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn note(&mut self, settled: Settled) -> Result<(), Error> {
        match &mut self.journal {
            Some(journal) => journal.settle(settled),
            None => Ok(()),
        }
    }
}

fn closed() -> Error {
    Error::new(Code::Closed, "the meter was closed")
}

/// Wall-clock time that never goes back in this process: whether an id is still remembered has to be known by a later one too.
struct WallClock {
    /// By both clocks, when it was made.
    beginning: (u64, Instant),
}

impl WallClock {
    fn new() -> Self {
        Self {
            beginning: (wall(), clock::now()),
        }
    }

    /// The time in milliseconds since 1970. If the clock is put back, it goes on from where it was.
    fn now(&self) -> u64 {
        let (wall_then, then) = self.beginning;
        wall().max(wall_then.saturating_add(clock::now().since(then)))
    }
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_process_counts_nothing_and_flushes_nothing() {
        let ttl = Duration::from_secs(60);
        let book = Book::open(
            MeterOptions::new(ttl).unwrap(),
            Ttl::from_duration(ttl).unwrap(),
        );
        let book = Book {
            process: std::process::id() + 1,
            ..book.unwrap()
        };
        let refused = [
            book.add(b"c", 1).unwrap_err(),
            book.check_open().unwrap_err(),
            book.take_refused().unwrap_err(),
        ];
        assert!(refused.iter().all(|error| error.code() == Code::Closed));
    }

    #[test]
    fn time_goes_on_where_the_clock_was_put_back() {
        let mut clock = WallClock::new();
        let (wall, then) = clock.beginning;
        clock.beginning = (wall + 3_600_000, then);
        let first = clock.now();
        assert!(first >= wall + 3_600_000);
        assert!(clock.now() >= first);
    }
}
