//! Giving a lease a new TTL.

use super::Lock;
use crate::error::{Error, Reason};
use crate::round::{Effect, Progress, Round};
use crate::settings::Settings;
use crate::step::{CallId, Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};
use crate::twin::{self, Answer, View};

/// Sets the remaining time of a lease; gives until when it is then valid.
///
/// Fails with `lost` if the lease is no longer ours, at once if our own deadline has passed: an expired lock is never
/// resurrected. Repeated by itself after a lost reply, at the longest until the lease's deadline.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Extend {
    lock: Lock,
    valid_until: Instant,
    round: Round,
}

impl Extend {
    /// Extends the lease of `token`, valid until `valid_until`, to the lock's TTL from now.
    pub fn start(
        lock: Lock,
        token: &Token,
        valid_until: Instant,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<Instant, Error>>) {
        let deadline = now.plus(settings.timeout.as_millis()).min(valid_until);
        let invocation = lock.granting(crate::script::Script::LockExtend, token);
        let (round, call) = Round::start(
            invocation,
            Effect::Idempotent,
            settings.scripts,
            seed,
            deadline,
            CallId(0),
            now,
        );
        let step = if now >= valid_until {
            Step::done(Err(
                lock.lost(Reason::Expired, "its time was over before it was extended")
            ))
        } else {
            Step::send(call, deadline)
        };
        (
            Self {
                lock,
                valid_until,
                round,
            },
            step,
        )
    }

    fn understand(&self, now: Instant, reply: &Reply) -> Result<Instant, Error> {
        match reply {
            Reply::Text(word) if word == b"extended" => {
                let valid_until = self.lock.ttl().valid_until(self.round.sent_at());
                if now < valid_until {
                    Ok(valid_until)
                } else {
                    Err(self
                        .lock
                        .lost(Reason::Expired, "the reply took longer than the new TTL"))
                }
            }
            Reply::Text(word) if word == b"absent" => Err(self
                .lock
                .lost(Reason::Expired, "the lock is no longer there")),
            Reply::Text(word) if word == b"taken" => Err(self
                .lock
                .lost(Reason::TakenOver, "another token is in its place")),
            other => Err(Error::unexpected(other).about(self.lock.key().as_bytes())),
        }
    }
}

impl Operation for Extend {
    type Output = Result<Instant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        match self.round.handle(now, event) {
            Progress::Wait(until) => Step::wait(until),
            Progress::Send(call, until) => Step::send(call, until),
            Progress::Answered(reply) => Step::done(self.understand(now, &reply)),
            Progress::Failed(error) if now >= self.valid_until => {
                let detail = format!(
                    "its time was over before it could be extended: {}",
                    error.detail()
                );
                Step::done(Err(self.lock.lost(Reason::Unreachable, detail)))
            }
            Progress::Failed(error) => Step::done(Err(error.about(self.lock.key().as_bytes()))),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.round.met_refusal_of_scripts()
    }
}

/// `lock_extend.lua` in Rust.
pub(crate) fn extend_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let (ttl, fence_ttl) = (twin::millis(&arguments[1])?, twin::millis(&arguments[2])?);
    match view.get(&keys[0])? {
        None => Ok(twin::text("absent")),
        Some(holder) if holder != arguments[0] => Ok(twin::text("taken")),
        Some(_) => {
            view.expire(&keys[0], ttl);
            view.expire(&keys[1], fence_ttl);
            Ok(twin::text("extended"))
        }
    }
}
