//! What is sent in one go, and what a flush has come to.

use crate::counter;
use crate::error::Error;
use crate::id::Id;
use crate::key::Key;

/// Entries on their way to the server, from one or several segments.
///
/// If it is dropped, all of them are in doubt, and the next pass sends them again.
#[derive(Debug)]
pub struct Batch {
    pub(super) sent: Vec<Sent>,
    pub(super) adds: Vec<counter::Entry>,
    pub(super) newly_doubtful: Vec<Id>,
}

/// An entry on its way.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) segment: u64,
    pub(super) key: Key,
    pub(super) was_doubtful: bool,
}

impl Batch {
    /// The segments of which nothing was in doubt until now. Where they are kept for a later process, the present moment must
    /// be noted with each of them before anything is sent.
    pub fn newly_doubtful(&self) -> &[Id] {
        &self.newly_doubtful
    }

    /// Takes the adds to be sent; their results are wanted in the same order.
    pub fn take_adds(&mut self) -> Vec<counter::Entry> {
        core::mem::take(&mut self.adds)
    }
}

/// One way through all that waits, from the oldest segment on.
#[derive(Debug)]
pub struct Pass {
    /// The first segment of which not all was tried yet.
    pub(super) next: u64,
    /// The last of its counters that was, if any was.
    pub(super) after: Option<Key>,
    /// The first segment that there was not when the pass began.
    pub(super) end: u64,
    pub(super) settled: u64,
    pub(super) units: u64,
    pub(super) is_over: bool,
    pub(super) trouble: Option<Error>,
}

/// What has become of a batch, for the place where segments are kept for a later process.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct Settled {
    /// What was settled in segments that hold more: it must not be sent again once their ids are forgotten.
    pub entries: Vec<(Id, Vec<Key>)>,
    /// Segments that hold nothing any more.
    pub emptied: Vec<Id>,
}

/// What a flush has come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Flushed {
    /// How many sums are on the server now that were not, as far as was known, before.
    pub settled: u64,
    /// How many units these are, by their absolute values.
    pub units: u64,
    /// How many sums that were there when the flush began still wait for the server.
    pub waiting: u64,
    /// How many sums were refused by the server for good and wait to be taken.
    pub refused: u64,
}
