//! Giving a lock again to nodes that have lost it.

use super::Lock;
use crate::ballot::{Ballot, Moves};
use crate::round::{Effect, Work};
use crate::script::Script;
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::Event;
use crate::time::Instant;
use crate::token::{Seed, Token};

/// Has the nodes that know nothing of a lock take it again, once a quorum has extended it, and write its fence down.
///
/// They add nothing to that quorum, and nobody depends on how it goes: a node that is taken by another, or is silent, stays
/// without.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rejoin {
    token: Token,
    fence: u64,
    seed: Seed,
    /// Until when it is waited for nodes that have not said yet what they know.
    pub(super) waits_until: Instant,
    until: Instant,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    NotBegun,
    Taking(Ballot),
    WritingFence(Ballot),
}

impl Rejoin {
    /// For an extend that begins now and must be over while something is left of what the lease had, or is given.
    pub(super) fn new(
        lock: &Lock,
        token: &Token,
        fence: u64,
        valid_until: Instant,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Self {
        let ends = valid_until.min(lock.ttl().valid_until(now));
        let node_deadline = settings.node_deadline(lock.ttl().as_millis(), now);
        let patience = node_deadline.since(now).min(ends.since(now) / 2);
        Self {
            token: token.clone(),
            fence,
            seed,
            waits_until: now.plus(patience / 2),
            until: now.plus(patience),
            stage: Stage::NotBegun,
        }
    }

    /// Whether nodes are being asked.
    pub(super) fn has_begun(&self) -> bool {
        self.stage != Stage::NotBegun
    }

    /// Begins at these nodes; nothing if there are none, or no time.
    pub(super) fn begin(&mut self, lock: &Lock, seats: &[Seat], now: Instant) -> Option<Moves> {
        if seats.is_empty() || now >= self.until {
            return None;
        }
        let (ballot, moves) = self.ask(lock.granting(Script::LockAcquire, &self.token), seats, now);
        self.stage = Stage::Taking(ballot);
        Some(moves)
    }

    /// Goes on; nothing once it is over.
    pub(super) fn handle(&mut self, lock: &Lock, now: Instant, event: Event) -> Option<Moves> {
        let (Stage::Taking(ballot) | Stage::WritingFence(ballot)) = &mut self.stage else {
            unreachable!()
        };
        let moves = ballot.handle(now, event);
        if !ballot.is_over() {
            return Some(moves);
        }
        let seats = ballot.seats();
        if matches!(self.stage, Stage::WritingFence(_)) || now >= self.until {
            return None;
        }
        let (ballot, moves) = self.ask(lock.raising(&self.token, self.fence), &seats, now);
        self.stage = Stage::WritingFence(ballot);
        Some(moves)
    }

    fn ask(&self, work: Work, seats: &[Seat], now: Instant) -> (Ballot, Moves) {
        Ballot::start(work, Effect::Idempotent, seats, self.seed, self.until, now)
    }
}
