//! Ending a lease.

use super::Lock;
use super::tally::{Tally, Word};
use crate::ballot::{Ballot, Voter};
use crate::error::{Error, Reason};
use crate::round::Effect;
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};
use crate::twin::{self, Answer, View};

/// Deletes the lock if it is still ours.
///
/// Fails with `lost` if it is not. Repeated by itself after a lost reply; a repeat that finds nothing ends as released,
/// unless our own deadline had passed before the first request was sent.
///
/// On several nodes it is asked for on all of them, and those that are silent are waited for no longer than one of several
/// nodes is. It is released once a quorum holds nothing of it; what a silent node still holds ends with its TTL.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    lock: Lock,
    valid_until: Instant,
    started_at: Instant,
    ballot: Ballot,
}

impl Release {
    /// Releases the lease of `token`, valid until `valid_until`.
    pub fn start(
        lock: Lock,
        token: &Token,
        valid_until: Instant,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<(), Error>>) {
        let deadline = now
            .plus(settings.timeout.as_millis())
            .min(settings.node_deadline(lock.ttl().as_millis(), now));
        let seats = Seat::all(settings.nodes, settings.scripts);
        let (ballot, moves) = Ballot::start(
            lock.releasing(token),
            Effect::Idempotent,
            &seats,
            seed,
            deadline,
            now,
        );
        (
            Self {
                lock,
                valid_until,
                started_at: now,
                ballot,
            },
            moves.step(),
        )
    }

    /// What the answers of all nodes come to.
    fn decision(&self) -> Result<(), Error> {
        let tally = Tally::of(&self.ballot, &mut |voter, reply| self.word(voter, reply));
        if tally.has_quorum() {
            return Ok(());
        }
        if let Some(reason) = tally.loss() {
            return Err(self.lost(&tally, reason));
        }
        if tally.is_gone() {
            // No quorum has lost it, so it was ours if our clock says so.
            return if self.started_at < self.valid_until {
                Ok(())
            } else {
                Err(self.lost(&tally, Reason::Expired))
            };
        }
        let error = tally.failure("released on");
        Err(tally.or_unknown(error).about(self.lock.key().as_bytes()))
    }

    fn word(&self, voter: &Voter, reply: &Reply) -> Option<Word> {
        let round = &voter.round;
        match reply {
            Reply::Text(word) if word == b"released" => Some(Word::Yes),
            Reply::Text(word) if word == b"absent" => {
                let was_ours = round.was_repeated() && round.first_sent_at() < self.valid_until;
                Some(if was_ours { Word::Yes } else { Word::Absent })
            }
            Reply::Text(word) if word == b"taken" => Some(Word::Taken),
            _ => None,
        }
    }

    fn lost(&self, tally: &Tally, reason: Reason) -> Error {
        let detail = match reason {
            _ if !tally.is_of_one() => tally.counts("released on"),
            Reason::TakenOver => "another token was in its place at the release".to_owned(),
            _ => "the lock was gone before it was released".to_owned(),
        };
        self.lock.lost(reason, detail)
    }
}

impl Operation for Release {
    type Output = Result<(), Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let moves = self.ballot.handle(now, event);
        if self.ballot.is_over() {
            Step::done(self.decision())
        } else {
            moves.step()
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.ballot.met_refusal_of_scripts()
    }
}

/// `lock_release.lua` in Rust.
pub(crate) fn release_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    match view.get(&keys[0])? {
        None => Ok(twin::text("absent")),
        Some(holder) if holder != arguments[0] => Ok(twin::text("taken")),
        Some(_) => {
            view.delete(&keys[0]);
            view.publish(&arguments[1], b"released");
            Ok(twin::text("released"))
        }
    }
}
