//! A server that remembers ids for ever, a network that may lose each answer, and a journal: what a meter lives among.

use std::collections::{BTreeMap, BTreeSet};

use tallylock_core::counter::{Added, Entry};
use tallylock_core::error::{Code, Error};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::meter::{
    Batch, Flushed, MeterSettings, Refused, Segment, Settled, Tally, Terms,
};
use tallylock_core::time::Ttl;
use tallylock_core::token::Seed;

pub(crate) const TIMEOUT: i64 = 2_000;

pub(crate) fn ttl(millis: i64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

/// Ids are remembered for a day.
pub(crate) fn settings() -> MeterSettings {
    let mut settings = MeterSettings::new(ttl(900_000));
    settings.terms.remember = ttl(24 * 3_600_000);
    settings
}

pub(crate) fn tally(settings: MeterSettings) -> Tally {
    Tally::new(settings, ttl(TIMEOUT)).unwrap()
}

/// What one request of a batch meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Answered,
    AppliedAndLost,
    LostOnTheWay,
    NeverSent,
    OutOfMemory,
    Forbidden,
}

/// A server that remembers ids for ever, and the segments that a meter has written down.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) totals: BTreeMap<Key, i64>,
    pub(crate) remembered: BTreeSet<(Key, Id)>,
    pub(crate) wrong: BTreeSet<Key>,
    pub(crate) seeds: u8,
    /// What the journal would hold.
    pub(crate) journal: Vec<Written>,
}

pub(crate) struct Written {
    pub(crate) id: Id,
    pub(crate) terms: Terms,
    pub(crate) sums: BTreeMap<Key, i64>,
    /// When it was marked as sent.
    pub(crate) sent: Option<u64>,
}

impl World {
    pub(crate) fn add(&mut self, tally: &mut Tally, key: &str, amount: i64) -> Result<bool, Error> {
        let Self { seeds, journal, .. } = self;
        let admitted = tally.admit(key.as_bytes(), amount, || {
            *seeds += 1;
            Ok(Seed::new([*seeds; 16]))
        })?;
        let segment = admitted.segment();
        if journal.last().is_none_or(|last| last.id != *segment.id()) {
            journal.push(Written {
                id: segment.id().clone(),
                terms: segment.terms().clone(),
                sums: BTreeMap::new(),
                sent: None,
            });
        }
        let written = journal.last_mut().unwrap();
        *written.sums.entry(Key::new(key).unwrap()).or_default() += amount;
        Ok(admitted.count().is_due)
    }

    pub(crate) fn send(&mut self, entry: Entry, fate: Fate) -> Result<Added, Error> {
        let Entry::Keyed(add) = entry else {
            panic!("a meter sends keyed adds only");
        };
        let lost = Error::new(Code::OutcomeUnknown, "lost");
        match fate {
            Fate::LostOnTheWay => return Err(lost),
            Fate::NeverSent => return Err(Error::new(Code::Unavailable, "not sent")),
            Fate::OutOfMemory => return Err(Error::new(Code::OutOfMemory, "full")),
            Fate::Forbidden => return Err(Error::new(Code::Forbidden, "this key")),
            Fate::Answered | Fate::AppliedAndLost => {}
        }
        let applied = self.remembered.insert((add.key.clone(), add.id.clone()));
        if applied {
            if self.wrong.contains(&add.key) {
                self.remembered.remove(&(add.key.clone(), add.id));
                let error = Error::new(Code::WrongType, "a list").about(add.key.as_bytes());
                return if fate == Fate::Answered {
                    Err(error)
                } else {
                    Err(lost)
                };
            }
            *self.totals.entry(add.key.clone()).or_default() += add.amount;
        }
        let total = self.totals[&add.key];
        if fate == Fate::Answered {
            Ok(Added { total, applied })
        } else {
            Err(lost)
        }
    }

    pub(crate) fn note(&mut self, settled: Settled) {
        for (id, keys) in settled.entries {
            self.written(&id).sums.retain(|key, _| !keys.contains(key));
        }
        self.journal
            .retain(|written| !settled.emptied.contains(&written.id));
    }

    pub(crate) fn written(&mut self, id: &Id) -> &mut Written {
        let mut all = self.journal.iter_mut();
        all.find(|written| written.id == *id).unwrap()
    }

    /// One pass, in which the n-th request meets the n-th fate; the last fate is met by all others.
    pub(crate) fn flush(
        &mut self,
        tally: &mut Tally,
        now: u64,
        fates: &[Fate],
    ) -> (Flushed, Option<Error>) {
        let mut fates = fates.iter().copied();
        let mut last = Fate::Answered;
        let mut pass = tally.begin();
        while let Some(mut batch) = tally.next_batch(&mut pass, now) {
            self.mark(&batch, now);
            let adds = batch.take_adds();
            let results = adds.into_iter().map(|add| {
                last = fates.next().unwrap_or(last);
                self.send(add, last)
            });
            let results = results.collect();
            let settled = tally.settle(&mut pass, batch, Ok(results));
            self.note(settled);
        }
        tally.end(pass)
    }

    pub(crate) fn mark(&mut self, batch: &Batch, now: u64) {
        for id in batch.newly_doubtful() {
            self.written(id).sent = Some(now);
        }
    }

    /// The meter dies, and another takes up what it wrote down.
    pub(crate) fn restart(&self) -> Tally {
        let mut tally = tally(settings());
        for written in &self.journal {
            let (id, terms) = (written.id.clone(), written.terms.clone());
            tally.restore(Segment::restored(
                id,
                terms,
                written.sent,
                written.sums.clone(),
            ));
        }
        tally
    }

    pub(crate) fn take(&mut self, tally: &mut Tally) -> Vec<Refused> {
        let mut all = Vec::new();
        while let Some(refusals) = tally.refusals() {
            let taken = tally.take(&refusals);
            assert_eq!(taken.refused.len(), refusals.keys.len());
            let entries = vec![(refusals.id, refusals.keys)];
            let emptied = taken.emptied.into_iter().collect();
            self.note(Settled { entries, emptied });
            all.extend(taken.refused);
        }
        all
    }

    pub(crate) fn total(&self, key: &str) -> i64 {
        let key = Key::new(key).unwrap();
        self.totals.get(&key).copied().unwrap_or_default()
    }
}
