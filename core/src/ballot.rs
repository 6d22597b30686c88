//! The same work on every node at once, under one deadline: a round on each.

use crate::error::Error;
use crate::round::{Effect, Progress, Round, Work};
use crate::seat::Seat;
use crate::settings::Scripts;
use crate::step::{Call, Event, Next, Reply, Step};
use crate::time::Instant;
use crate::token::Seed;

/// Work under way on one node or on several. With one, it is a round and nothing more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ballot {
    voters: Vec<Voter>,
}

/// What one node has said.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Voter {
    pub(crate) round: Round,
    pub(crate) answer: Option<Result<Reply, Error>>,
    until: Instant,
}

/// What a ballot wants next: these calls sent, and to be woken at this moment.
pub(crate) struct Moves {
    pub(crate) calls: Vec<Call>,
    pub(crate) until: Instant,
}

impl Ballot {
    pub(crate) fn start(
        work: Work,
        effect: Effect,
        seats: &[Seat],
        seed: Seed,
        deadline: Instant,
        now: Instant,
    ) -> (Self, Moves) {
        let mut calls = Vec::with_capacity(seats.len());
        let works = core::iter::repeat_n(work, seats.len());
        let voters = seats.iter().zip(works).map(|(seat, work)| {
            let (round, call) = Round::start(work, effect, *seat, seed, deadline, now);
            calls.push(call);
            Voter {
                round,
                answer: None,
                until: deadline,
            }
        });
        let voters = voters.collect();
        (
            Self { voters },
            Moves {
                calls,
                until: deadline,
            },
        )
    }

    /// Takes in what happened. An answer is told to its node alone, so that answers that came together all count, however
    /// late it is.
    pub(crate) fn handle(&mut self, now: Instant, event: Event) -> Moves {
        let mut calls = Vec::new();
        let mut waiting = self
            .voters
            .iter_mut()
            .filter(|voter| voter.answer.is_none());
        match event {
            Event::Replied { call, .. } => {
                let asked = waiting.find(|voter| voter.round.seat().is_asked_by(call));
                calls.extend(asked.and_then(|voter| voter.handle(now, event)));
            }
            Event::Notified(_) | Event::Woke => {
                calls.extend(waiting.filter_map(|voter| voter.handle(now, Event::Woke)));
            }
            Event::Stop => calls.extend(waiting.filter_map(|voter| voter.handle(now, Event::Stop))),
        }
        Moves {
            calls,
            until: self.until().unwrap_or(now),
        }
    }

    pub(crate) fn voters(&self) -> &[Voter] {
        &self.voters
    }

    /// Whether every node has answered, or will not.
    pub(crate) fn is_over(&self) -> bool {
        self.until().is_none()
    }

    /// The seats for the next ballot.
    pub(crate) fn seats(&self) -> Vec<Seat> {
        self.voters.iter().map(|voter| voter.round.seat()).collect()
    }

    /// Since when nothing was asked again that may still count.
    pub(crate) fn sent_at(&self) -> Instant {
        let sent_at = self.voters.iter().map(|voter| voter.round.sent_at());
        // There is a node; of none, nothing would be valid.
        sent_at.min().unwrap_or(Instant::from_millis(0))
    }

    /// Whether scripts are refused everywhere. Where only some nodes do, the others go on with scripts.
    pub(crate) fn met_refusal_of_scripts(&self) -> bool {
        are_without_scripts(self.voters.iter().map(|voter| voter.round.seat()))
    }

    fn until(&self) -> Option<Instant> {
        let waiting = self.voters.iter().filter(|voter| voter.answer.is_none());
        waiting.map(|voter| voter.until).min()
    }
}

impl Voter {
    fn handle(&mut self, now: Instant, event: Event) -> Option<Call> {
        match self.round.handle(now, event) {
            Progress::Wait(until) => self.until = until,
            Progress::Send(call, until) => {
                self.until = until;
                return Some(call);
            }
            Progress::Answered(reply) => self.answer = Some(Ok(reply)),
            Progress::Failed(error) => self.answer = Some(Err(error)),
        }
        None
    }
}

impl Moves {
    pub(crate) fn step<T>(self) -> Step<T> {
        Step {
            calls: self.calls,
            next: Next::WaitUntil(self.until),
        }
    }

    /// The same, woken no later than at this moment.
    pub(crate) fn no_later_than(self, until: Instant) -> Self {
        Self {
            until: self.until.min(until),
            ..self
        }
    }
}

/// Whether all of these nodes refuse scripts.
pub(crate) fn are_without_scripts(mut seats: impl Iterator<Item = Seat>) -> bool {
    seats.all(|seat| seat.scripts == Scripts::Avoided)
}
