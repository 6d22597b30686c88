//! What a meter holds, and the rules by which it changes.

use std::collections::BTreeMap;

use super::admitted::Open;
use super::amount::{Amount, because};
use super::batch::Sent;
use super::segment::State;
use super::{
    Admitted, Batch, Flushed, MeterSettings, Pass, Refused, Segment, Settled, is_final,
    is_out_of_reach,
};
use crate::counter::{self, AddOnce, Added, MOST};
use crate::error::{Applied, Code, Error};
use crate::id::Id;
use crate::key::Key;
use crate::time::Ttl;
use crate::token::Seed;

/// All that a meter holds.
///
/// An add goes through [`admit`](Self::admit) and [`Admitted::count`]; a flush through [`begin`](Self::begin), then
/// [`next_batch`](Self::next_batch) and [`settle`](Self::settle) until nothing is left to send, and [`end`](Self::end).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tally {
    settings: MeterSettings,
    /// How long the call that sends a batch may take.
    timeout: Ttl,
    /// The segment that is added to, if anything was added since the last one was closed.
    open: Option<Open>,
    /// The segments to which nothing is added any more, by their numbers. None is empty.
    closed: BTreeMap<u64, Segment>,
    /// The number of the next segment: older segments have smaller ones.
    next_number: u64,
    /// How many sums all segments hold.
    held: usize,
    /// How many sums are sent at once: fewer after a batch of which no answer came in time, more again after one that was
    /// answered. What takes longer than a call may would else be sent again and again.
    batch: usize,
}

/// What was refused of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusals {
    number: u64,
    /// The segment.
    pub id: Id,
    /// The counters.
    pub keys: Vec<Key>,
}

/// What was taken of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// What was refused of it.
    pub refused: Vec<Refused>,
    /// The segment, if nothing is left of it.
    pub emptied: Option<Id>,
}

impl Tally {
    /// A tally that holds nothing, for a client whose calls take at most `timeout`; `invalid_argument` if ids are not
    /// remembered for long enough for that.
    pub fn new(settings: MeterSettings, timeout: Ttl) -> Result<Self, Error> {
        settings.check(timeout)?;
        Ok(Self {
            timeout,
            settings,
            open: None,
            closed: BTreeMap::new(),
            next_number: 0,
            held: 0,
            batch: MOST,
        })
    }

    /// Takes in a segment that another process left, as younger than those before.
    pub fn restore(&mut self, segment: Segment) {
        let number = self.number();
        self.held += segment.entries.len();
        self.put_away(number, segment);
    }

    /// Forgets all that is held, since it is kept elsewhere.
    pub fn forget(&mut self) {
        self.open = None;
        self.closed.clear();
        self.held = 0;
    }

    /// How many sums are held: those that wait for the server, and those that it refused and nobody took yet.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether `amount` may be added to the counter `key`; where that needs a new segment, `seed` gives 16 random bytes for it.
    ///
    /// Fails with `invalid_argument` if the key is no good, `overflow` if the sum leaves 64 bits, `busy` if too many sums are
    /// held, and like `seed`.
    pub fn admit<'a>(
        &'a mut self,
        key: &'a [u8],
        amount: i64,
        seed: impl FnOnce() -> Result<Seed, Error>,
    ) -> Result<Admitted<'a>, Error> {
        let is_known = |open: &Open| open.segment.entries.contains_key(key);
        let new_key = if self.open.as_ref().is_some_and(is_known) {
            None
        } else {
            Some(self.room_for(key)?)
        };
        let has_room = |open: &Open| open.segment.entries.len() < MOST;
        if new_key.is_some() && !self.open.as_ref().is_some_and(has_room) {
            let segment = Segment::new(seed()?, self.settings.terms.clone());
            self.close();
            self.open = Some(Open {
                number: self.number(),
                segment,
                units: 0,
            });
        }
        let Some(open) = &mut self.open else {
            unreachable!("it knows the counter, or was just made");
        };
        Ok(Admitted {
            sum: open.segment.sum(key, amount)?,
            open,
            held: &mut self.held,
            settings: &self.settings,
            key,
            amount,
            new_key,
        })
    }

    /// Begins a pass over all that is held now.
    pub fn begin(&self) -> Pass {
        Pass {
            next: 0,
            after: None,
            end: self.next_number,
            settled: 0,
            units: 0,
            is_over: false,
            trouble: None,
        }
    }

    /// What is to be sent next, the oldest first; nothing at the end of the pass. `now` is wall-clock time in milliseconds.
    ///
    /// What was sent so long ago that the server may have forgotten it is refused instead.
    pub fn next_batch(&mut self, pass: &mut Pass, now: u64) -> Option<Batch> {
        while !pass.is_over {
            let batch = self.oldest(pass, now);
            if !batch.sent.is_empty() {
                return Some(batch);
            }
            // One that is empty, since what was to go in could not be written down, stays for the next add.
            let is_due = self
                .open
                .as_ref()
                .is_some_and(|open| open.number < pass.end && !open.segment.is_empty());
            if is_due {
                self.close();
            } else {
                pass.is_over = true;
            }
        }
        None
    }

    /// Takes in what has become of a batch: the results of its adds, in their order, or why none of them was sent.
    pub fn settle(
        &mut self,
        pass: &mut Pass,
        batch: Batch,
        results: Result<Vec<Result<Added, Error>>, Error>,
    ) -> Settled {
        let mut settled: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
        self.batch = self.next_size(batch.sent.len(), &results);
        match results {
            Ok(results) => {
                for (sent, result) in batch.sent.into_iter().zip(results) {
                    match result {
                        Ok(_) => {
                            self.remove(pass, &sent);
                            settled.entry(sent.segment).or_default().push(sent.key);
                        }
                        Err(error) if is_final(error.code()) => self.refuse(&sent, error),
                        Err(error) => self.keep(pass, &sent, error),
                    }
                }
            }
            Err(error) => {
                for sent in batch.sent {
                    self.keep(pass, &sent, error.clone());
                }
                pass.is_over = true;
            }
        }
        let mut outcome = Settled::default();
        for (number, keys) in settled {
            if let Some(id) = self.drop_if_empty(number) {
                outcome.emptied.push(id);
            } else if let Some(segment) = self.closed.get(&number) {
                // Else all was forgotten meanwhile: it is kept elsewhere.
                outcome.entries.push((segment.id().clone(), keys));
            }
        }
        outcome
    }

    /// What a pass has come to, and, where something waits that was there when it began, why.
    pub fn end(&self, pass: Pass) -> (Flushed, Option<Error>) {
        let waiting = self.waiting(pass.end);
        let flushed = Flushed {
            settled: pass.settled,
            units: pass.units,
            waiting: waiting.counters,
            refused: self.refused().counters,
        };
        let trouble = pass.trouble.filter(|_| waiting.counters > 0);
        let error = trouble.map(|error| {
            let what = format!("{waiting} wait for the next flush");
            because(&what, &error)
        });
        (flushed, error)
    }

    /// What is lost if nothing is done any more: an error that says how much, and, if known, why.
    pub fn left(&self, trouble: Option<&Error>) -> Option<Error> {
        let (waiting, refused) = (self.waiting(u64::MAX), self.refused());
        let what = match (waiting.counters, refused.counters) {
            (0, 0) => return None,
            (_, 0) => format!("{waiting} are not on the server"),
            (0, _) => format!("{refused} were refused by the server and not taken"),
            _ => format!(
                "{waiting} are not on the server, and {refused} were refused by it and not taken"
            ),
        };
        let unknown = Error::new(Code::Unavailable, "they were not flushed");
        let refusal = || self.closed.values().find_map(Segment::first_refusal);
        Some(because(&what, trouble.or_else(refusal).unwrap_or(&unknown)))
    }

    /// The oldest segment of which something was refused; nothing if nothing was.
    pub fn refusals(&self) -> Option<Refusals> {
        let refusals = |(number, segment): (&u64, &Segment)| Refusals {
            number: *number,
            id: segment.id().clone(),
            keys: segment.refused().map(|(key, _)| key.clone()).collect(),
        };
        let mut all = self.closed.iter().map(refusals);
        all.find(|refusals| !refusals.keys.is_empty())
    }

    /// Gives what was refused of a segment, and forgets it.
    pub fn take(&mut self, refusals: &Refusals) -> Taken {
        let segment = self.closed.get_mut(&refusals.number);
        let refused = segment.map(Segment::take_refused).unwrap_or_default();
        self.held -= refused.len();
        Taken {
            refused,
            emptied: self.drop_if_empty(refusals.number),
        }
    }

    /// A new sum's key, if there is room for it.
    fn room_for(&self, key: &[u8]) -> Result<Key, Error> {
        let key = Key::new(key)?;
        if self.held < self.settings.max_counters.get() {
            return Ok(key);
        }
        let detail = format!(
            "the meter holds as many sums as it may, {}: {} wait for the server and {} were refused by it; flush, take what was \
             refused, or allow more",
            self.held,
            self.waiting(u64::MAX).counters,
            self.refused().counters,
        );
        Err(Error::new(Code::Busy, detail).about(key.as_bytes()))
    }

    /// What waits in the closed segments that were not tried in this pass, as much as goes into one batch.
    fn oldest(&mut self, pass: &mut Pass, now: u64) -> Batch {
        let mut batch = Batch {
            sent: Vec::new(),
            adds: Vec::new(),
            newly_doubtful: Vec::new(),
        };
        // Another meter may have left a segment that calls of this client could outlast.
        let remember = self.settings.terms.remember;
        for (number, segment) in self.closed.range_mut(pass.next..pass.end) {
            if !segment.is_remembered(now, self.timeout) {
                segment.refuse_doubtful();
            }
            // The segment of which it is one may be gone meanwhile.
            let after = pass.after.take().filter(|_| *number == pass.next);
            let waiting = segment.waiting_after(after.as_ref()).count();
            let room = self.batch - batch.sent.len();
            if waiting > room && !batch.sent.is_empty() {
                break;
            }
            let first = batch.sent.len();
            for (key, entry) in segment.waiting_after(after.as_ref()).take(room) {
                batch.sent.push(Sent {
                    segment: *number,
                    key: key.clone(),
                    was_doubtful: entry.is_doubtful(),
                });
                batch
                    .adds
                    .push(add(segment, key.clone(), entry.amount, remember));
            }
            let sent = batch.sent[first..].iter().map(|sent| &sent.key);
            if waiting > 0 && segment.begin_doubt(sent, now) {
                batch.newly_doubtful.push(segment.id().clone());
            }
            pass.next = *number;
            if waiting > room {
                pass.after = batch.sent.last().map(|sent| sent.key.clone());
                break;
            }
            pass.next += 1;
        }
        batch
    }

    /// How many sums to send at once after a batch of this size has come to this.
    fn next_size(&self, sent: usize, results: &Result<Vec<Result<Added, Error>>, Error>) -> usize {
        let is_late = |result: &Result<Added, Error>| {
            let code = result.as_ref().err().map(Error::code);
            matches!(code, Some(Code::Timeout | Code::OutcomeUnknown))
        };
        match results {
            Ok(results) if results.iter().all(is_late) => (sent / 2).max(1),
            Ok(results) if !results.iter().any(is_late) => (self.batch * 2).min(MOST),
            _ => self.batch,
        }
    }

    fn remove(&mut self, pass: &mut Pass, sent: &Sent) {
        let segment = self.closed.get_mut(&sent.segment);
        if let Some(entry) = segment.and_then(|segment| segment.entries.remove(&sent.key)) {
            pass.settled += 1;
            pass.units = pass.units.saturating_add(entry.amount.unsigned_abs());
            self.held -= 1;
        }
    }

    fn refuse(&mut self, sent: &Sent, error: Error) {
        let error = if sent.was_doubtful {
            let detail = format!(
                "its first answer was lost, and sent again it was refused: {}",
                error.detail()
            );
            Error::new(Code::OutcomeUnknown, detail).about(sent.key.as_bytes())
        } else {
            error
        };
        self.set(sent, State::Refused(error));
    }

    fn keep(&mut self, pass: &mut Pass, sent: &Sent, error: Error) {
        let is_doubtful = sent.was_doubtful || error.applied() == Applied::Maybe;
        let state = if is_doubtful {
            State::Doubtful
        } else {
            State::Waiting
        };
        self.set(sent, state);
        pass.is_over |= is_out_of_reach(error.code());
        pass.trouble = Some(error);
    }

    fn set(&mut self, sent: &Sent, state: State) {
        let segment = self.closed.get_mut(&sent.segment);
        if let Some(entry) = segment.and_then(|segment| segment.entries.get_mut(&sent.key)) {
            entry.state = state;
        }
    }

    /// Lets nothing more into the open segment.
    fn close(&mut self) {
        if let Some(Open {
            number, segment, ..
        }) = self.open.take()
        {
            self.put_away(number, segment);
        }
    }

    fn put_away(&mut self, number: u64, segment: Segment) {
        if !segment.entries.is_empty() {
            self.closed.insert(number, segment);
        }
    }

    fn drop_if_empty(&mut self, number: u64) -> Option<Id> {
        let is_empty = |segment: &Segment| segment.entries.is_empty();
        if !self.closed.get(&number).is_some_and(is_empty) {
            return None;
        }
        let segment = self.closed.remove(&number)?;
        Some(segment.id().clone())
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// What waits in the segments before this one.
    fn waiting(&self, end: u64) -> Amount {
        let closed = self.closed.range(..end).map(|(_, segment)| segment);
        let open = self.open.iter().filter(|open| open.number < end);
        let segments = closed.chain(open.map(|open| &open.segment));
        segments
            .flat_map(Segment::waiting)
            .map(|(_, entry)| entry)
            .collect()
    }

    fn refused(&self) -> Amount {
        let refused = self.closed.values().flat_map(Segment::refused);
        refused.map(|(_, entry)| entry).collect()
    }
}

/// What is sent for an entry; remembered for `least` at least.
fn add(segment: &Segment, key: Key, amount: i64, least: Ttl) -> counter::Entry {
    let terms = segment.terms();
    counter::Entry::Keyed(AddOnce {
        key,
        id: segment.id().clone(),
        amount,
        ttl: terms.ttl,
        expiry: terms.expiry,
        remembered: Some(terms.remember.max(least)),
    })
}
