//! Ending a lease.

use super::Lock;
use crate::error::{Error, Reason};
use crate::round::{Effect, Progress, Round};
use crate::settings::Settings;
use crate::step::{CallId, Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};
use crate::twin::{self, Answer, View};

/// Deletes the lock if it is still ours.
///
/// Fails with `lost` if it is not. Repeated by itself after a lost reply; a repeat that finds nothing ends as released,
/// unless our own deadline had passed before the first request was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    lock: Lock,
    valid_until: Instant,
    round: Round,
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
        let deadline = now.plus(settings.timeout.as_millis());
        let (round, call) = Round::start(
            lock.releasing(token),
            Effect::Idempotent,
            settings.scripts,
            seed,
            deadline,
            CallId(0),
            now,
        );
        (
            Self {
                lock,
                valid_until,
                round,
            },
            Step::send(call, deadline),
        )
    }

    fn understand(&self, reply: &Reply) -> Result<(), Error> {
        match reply {
            Reply::Text(word) if word == b"released" => Ok(()),
            Reply::Text(word) if word == b"absent" => {
                if self.round.was_repeated() && self.round.first_sent_at() < self.valid_until {
                    return Ok(());
                }
                Err(self
                    .lock
                    .lost(Reason::Expired, "the lock was gone before it was released"))
            }
            Reply::Text(word) if word == b"taken" => Err(self.lock.lost(
                Reason::TakenOver,
                "another token was in its place at the release",
            )),
            other => Err(Error::unexpected(other).about(self.lock.key().as_bytes())),
        }
    }
}

impl Operation for Release {
    type Output = Result<(), Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        match self.round.handle(now, event) {
            Progress::Wait(until) => Step::wait(until),
            Progress::Send(call, until) => Step::send(call, until),
            Progress::Answered(reply) => Step::done(self.understand(&reply)),
            Progress::Failed(error) => Step::done(Err(error.about(self.lock.key().as_bytes()))),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.round.met_refusal_of_scripts()
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
