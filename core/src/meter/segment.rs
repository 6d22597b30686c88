//! The sums between two flushes.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Terms, margin};
use crate::error::{Applied, Code, Error};
use crate::id::Id;
use crate::key::Key;
use crate::time::Ttl;
use crate::token::{Seed, Token};

/// Sums of adds, by counter, that are sent under one id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    id: Id,
    terms: Terms,
    /// When the first send began of what is in doubt, if anything is: in milliseconds of wall-clock time.
    doubtful_since: u64,
    pub(super) entries: BTreeMap<Key, Entry>,
}

/// The sum for one counter, until it is settled or taken.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) amount: i64,
    pub(super) state: State,
}

/// What is known of an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum State {
    /// It is not on the server.
    Waiting,
    /// It may be on the server: an answer to it was lost, or is still to come.
    Doubtful,
    /// It is not sent any more, for this reason.
    Refused(Error),
}

/// A sum that is not sent any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    /// The counter.
    pub key: Vec<u8>,
    /// The sum of the adds.
    pub amount: i64,
    /// Why: `wrong_type`, `not_an_integer`, `overflow`, `conflict` or `invalid_argument` if it is certain that nothing of it
    /// was counted; `outcome_unknown` if all of it may have been counted, or nothing.
    pub error: Error,
}

impl Segment {
    /// An empty segment with an id of this seed, which is used for nothing else.
    ///
    /// # Panics
    /// Never: a seed's digits are an id.
    pub fn new(seed: Seed, terms: Terms) -> Self {
        Self {
            id: Id::new(Token::new(seed, None).as_bytes()).expect("32 digits are an id"),
            terms,
            doubtful_since: 0,
            entries: BTreeMap::new(),
        }
    }

    /// A segment that another process left, with its sums; `sent` is when it began to be sent, in milliseconds of wall-clock
    /// time, if it did: then all of it is in doubt.
    pub fn restored(
        id: Id,
        terms: Terms,
        sent: Option<u64>,
        sums: impl IntoIterator<Item = (Key, i64)>,
    ) -> Self {
        let entry = |amount| Entry {
            amount,
            state: sent.map_or(State::Waiting, |_| State::Doubtful),
        };
        let entries = sums.into_iter().map(|(key, amount)| (key, entry(amount)));
        Self {
            id,
            terms,
            doubtful_since: sent.unwrap_or_default(),
            entries: entries.collect(),
        }
    }

    /// The idempotency key of each of its entries.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// What its entries have in common.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Its sums, in the order of the keys.
    pub fn sums(&self) -> impl Iterator<Item = (&Key, i64)> {
        self.entries.iter().map(|(key, entry)| (key, entry.amount))
    }

    /// Whether it holds no sum.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether its id can be relied on: nothing of it is in doubt, or what is was sent so lately that the server still knows.
    pub(super) fn is_remembered(&self, now: u64, timeout: Ttl) -> bool {
        let latest = now.saturating_add(margin(self.terms.remember, timeout));
        let since = self.doubtful_since;
        let forgotten = since.saturating_add(self.terms.remember.as_millis());
        // A clock that went back tells nothing about how long ago it was.
        !self.has_doubtful() || (since..forgotten).contains(&latest)
    }

    /// Turns down what could be counted twice if it were sent again.
    pub(super) fn refuse_doubtful(&mut self) {
        let why = "it was sent, no answer came, and the server may have forgotten its id since";
        for (key, entry) in &mut self.entries {
            if entry.state == State::Doubtful {
                let error = Error::new(Code::OutcomeUnknown, why).about(key.as_bytes());
                entry.state = State::Refused(error);
            }
        }
    }

    /// What the sum of a counter would be with this added; `overflow` if that leaves 64 bits.
    pub(super) fn sum(&self, key: &[u8], amount: i64) -> Result<i64, Error> {
        let present = self.entries.get(key).map_or(0, |entry| entry.amount);
        present.checked_add(amount).ok_or_else(|| {
            let detail = format!("{present} and {amount} together do not fit into 64 bits");
            Error::new(Code::Overflow, detail).about(key)
        })
    }

    /// Puts the sums of these counters in doubt, since they are about to be sent. Gives whether this is the moment from which on
    /// its id has to be remembered: nothing of it was, or is for ever, in doubt.
    pub(super) fn begin_doubt<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a Key>,
        now: u64,
    ) -> bool {
        let is_first = !self.entries.values().any(Entry::was_doubtful);
        if is_first {
            self.doubtful_since = now;
        }
        for key in keys {
            if let Some(entry) = self.entries.get_mut(key)
                && entry.state == State::Waiting
            {
                entry.state = State::Doubtful;
            }
        }
        is_first
    }

    /// What is not refused, and whether it is in doubt.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.waiting_after(None)
    }

    /// The same, of the counters behind this one.
    pub(super) fn waiting_after(&self, key: Option<&Key>) -> impl Iterator<Item = (&Key, &Entry)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries.range::<Key, _>((from, Bound::Unbounded));
        entries.filter(|(_, entry)| !entry.is_refused())
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        let entries = self.entries.iter();
        entries.filter(|(_, entry)| entry.is_refused())
    }

    pub(super) fn first_refusal(&self) -> Option<&Error> {
        self.entries.values().find_map(|entry| match &entry.state {
            State::Refused(error) => Some(error),
            State::Waiting | State::Doubtful => None,
        })
    }

    /// Removes what is refused, and gives it.
    pub(super) fn take_refused(&mut self) -> Vec<Refused> {
        let mut taken = Vec::new();
        self.entries.retain(|key, entry| {
            let State::Refused(error) = &entry.state else {
                return true;
            };
            taken.push(Refused {
                key: key.as_bytes().to_vec(),
                amount: entry.amount,
                error: error.clone(),
            });
            false
        });
        taken
    }

    fn has_doubtful(&self) -> bool {
        self.entries.values().any(Entry::is_doubtful)
    }
}

impl Entry {
    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused(_))
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.state == State::Doubtful
    }

    fn was_doubtful(&self) -> bool {
        match &self.state {
            State::Waiting => false,
            State::Doubtful => true,
            State::Refused(error) => error.applied() == Applied::Maybe,
        }
    }
}
