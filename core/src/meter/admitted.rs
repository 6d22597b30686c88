//! An add to the segment that is open.

use core::num::NonZeroU64;

use super::segment::{Entry, State};
use super::{MeterSettings, Segment};
use crate::counter::MOST;
use crate::key::Key;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) segment: Segment,
    /// What was added to it, by absolute values.
    pub(super) units: u64,
}

/// An add that may be counted; nothing is changed until it is.
#[derive(Debug)]
pub struct Admitted<'a> {
    pub(super) open: &'a mut Open,
    pub(super) held: &'a mut usize,
    pub(super) settings: &'a MeterSettings,
    pub(super) key: &'a [u8],
    pub(super) amount: i64,
    pub(super) sum: i64,
    /// Nothing if the segment has a sum for the counter already.
    pub(super) new_key: Option<Key>,
}

/// What follows from an add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// So much has gathered with it that a flush should begin now.
    pub is_due: bool,
}

impl Admitted<'_> {
    /// The segment that it goes to.
    pub fn segment(&self) -> &Segment {
        &self.open.segment
    }

    /// Counts it.
    pub fn count(self) -> Counted {
        let Self {
            open,
            held,
            settings,
            ..
        } = self;
        let before = open.units;
        open.units = before.saturating_add(self.amount.unsigned_abs());
        let reaches = |bound: NonZeroU64| (before..open.units).contains(&(bound.get() - 1));
        let mut is_due = settings.max_units.is_some_and(reaches);
        let entries = &mut open.segment.entries;
        if let Some(key) = self.new_key {
            let (amount, state) = (self.sum, State::Waiting);
            entries.insert(key, Entry { amount, state });
            *held += 1;
            is_due |= entries.len() == MOST || *held == settings.max_counters.get();
        } else if let Some(entry) = entries.get_mut(self.key) {
            entry.amount = self.sum;
        }
        Counted { is_due }
    }
}
