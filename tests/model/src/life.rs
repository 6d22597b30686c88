//! The life of a lease, in the states that people know it by, and how it was seen to go from one to the next.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use tallylock_core::error::Reason;
use tallylock_core::step::Event;

use crate::client::Occasion;

/// What becomes of an attempt to take a lock, and of the lease that it gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Stage {
    Idle,
    Asking,
    WritingBack,
    BackingOff,
    Undoing,
    Refused,
    Held,
    Renewing,
    /// It was let go of, and a renewal is under way.
    Leaving,
    Releasing,
    Released,
    /// Nobody has answered the release.
    Unknown,
    Expired,
    TakenOver,
    Unreachable,
}

/// What a client was told when it went on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Cause {
    /// Its caller wants something, or no more of it.
    Caller,
    /// A node has answered.
    Answer,
    /// A connection was lost.
    Cut,
    /// It was told that the lock may be free.
    Notice,
    /// It is time.
    Time,
}

impl Cause {
    /// What a client is told on this occasion.
    pub(crate) fn of(occasion: &Occasion) -> Self {
        match occasion {
            Occasion::Start(_) | Occasion::Leave | Occasion::Told(Event::Stop) => Self::Caller,
            Occasion::Heard(reply) if reply.outcome.is_ok() => Self::Answer,
            Occasion::Heard(_) | Occasion::Told(Event::Replied { .. }) => Self::Cut,
            Occasion::Told(Event::Notified(_)) => Self::Notice,
            Occasion::Told(Event::Woke) => Self::Time,
        }
    }
}

/// What leads from one stage to another.
pub(crate) type Transitions = BTreeMap<(Stage, Stage), Vec<Cause>>;

/// The transitions that were seen so far, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Seen([[AtomicU8; STAGES.len()]; STAGES.len()]);

const STAGES: [Stage; 15] = [
    Stage::Idle,
    Stage::Asking,
    Stage::WritingBack,
    Stage::BackingOff,
    Stage::Undoing,
    Stage::Refused,
    Stage::Held,
    Stage::Renewing,
    Stage::Leaving,
    Stage::Releasing,
    Stage::Released,
    Stage::Unknown,
    Stage::Expired,
    Stage::TakenOver,
    Stage::Unreachable,
];

const CAUSES: [Cause; 5] = [
    Cause::Caller,
    Cause::Answer,
    Cause::Cut,
    Cause::Notice,
    Cause::Time,
];

impl Stage {
    /// Whether it is a lease that was lost. What its holder still does with it is no part of its life.
    pub(crate) fn is_lost(self) -> bool {
        matches!(self, Self::Expired | Self::TakenOver | Self::Unreachable)
    }

    /// What a lease is that was lost for this reason.
    pub(crate) fn lost(reason: Reason) -> Self {
        match reason {
            Reason::TakenOver => Self::TakenOver,
            Reason::Unreachable => Self::Unreachable,
            // No client of a world forks.
            _ => Self::Expired,
        }
    }
}

impl Seen {
    pub(crate) fn add(&self, from: Stage, to: Stage, cause: Cause) {
        let (seen, cause) = (&self.0[from as usize][to as usize], 1 << cause as u8);
        // Nearly always it is known, and then no other thread has to hear of it.
        if seen.load(Ordering::Relaxed) & cause == 0 {
            seen.fetch_or(cause, Ordering::Relaxed);
        }
    }

    /// Takes in what was seen elsewhere.
    pub(crate) fn add_all(&self, other: &Self) {
        for ((from, to), causes) in other.transitions() {
            for cause in causes {
                self.add(from, to, cause);
            }
        }
    }

    pub(crate) fn transitions(&self) -> Transitions {
        let pairs = STAGES
            .into_iter()
            .flat_map(|from| STAGES.map(|to| (from, to)));
        let seen = pairs.map(|(from, to)| {
            let seen = self.0[from as usize][to as usize].load(Ordering::Relaxed);
            let causes = CAUSES.into_iter();
            let causes = causes.filter(|cause| seen & (1 << *cause as u8) != 0);
            ((from, to), causes.collect::<Vec<_>>())
        });
        seen.filter(|(_, causes)| !causes.is_empty()).collect()
    }
}
