//! Giving a lease a new TTL.

use super::Lock;
use super::rejoin::Rejoin;
use super::tally::{Tally, Word};
use crate::ballot::{Ballot, Moves};
use crate::error::{Error, Reason};
use crate::round::Effect;
use crate::script::Script;
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};
use crate::twin::{self, Answer, View};

/// Sets the remaining time of a lease; gives until when it is then valid.
///
/// Fails with `lost` if the lease is no longer ours, at once if our own deadline has passed: an expired lock is never
/// resurrected. Repeated by itself after a lost reply, at the longest until the lease's deadline.
///
/// On several nodes a quorum decides, either way. A minority that has lost the lock or is silent ends no lease. Where that was
/// [asked for](Settings::rejoin), those that have lost it are given it again, after which it ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Extend {
    lock: Lock,
    valid_until: Instant,
    ballot: Ballot,
    rejoin: Option<Box<Rejoin>>,
    /// Until when it is valid, while nodes are given it again.
    extended: Option<Instant>,
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
        let work = lock.granting(Script::LockExtend, token);
        let seats = Seat::all(settings.nodes, settings.scripts);
        let (ballot, moves) = Ballot::start(work, Effect::Idempotent, &seats, seed, deadline, now);
        let step = if now >= valid_until {
            Step::done(Err(
                lock.lost(Reason::Expired, "its time was over before it was extended")
            ))
        } else {
            moves.step()
        };
        (
            Self {
                lock,
                valid_until,
                ballot,
                rejoin: None,
                extended: None,
            },
            step,
        )
    }

    /// The same, which gives the lock with this fence to nodes that have lost it, if that was asked for.
    pub(super) fn rejoining(
        self,
        token: &Token,
        fence: u64,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Self {
        if settings.nodes.is_one() || !settings.rejoin {
            return self;
        }
        let ends = self.valid_until;
        let rejoin = Rejoin::new(&self.lock, token, fence, ends, settings, seed, now);
        Self {
            rejoin: Some(Box::new(rejoin)),
            ..self
        }
    }

    /// What is to be done for nodes that have lost what a quorum has just extended; nothing if that is over.
    fn rejoin(&mut self, now: Instant, moves: Moves) -> Option<Moves> {
        let rejoin = self.rejoin.as_mut().filter(|_| cfg!(feature = "nodes"))?;
        if !self.ballot.is_over() && now < rejoin.waits_until {
            return Some(moves.no_later_than(rejoin.waits_until));
        }
        let lost = self.ballot.voters().iter().filter(|voter| {
            let answer = voter
                .answer
                .as_ref()
                .and_then(|answer| answer.as_ref().ok());
            matches!(answer.and_then(word), Some(Word::Absent))
        });
        let seats: Vec<_> = lost.map(|voter| voter.round.seat()).collect();
        rejoin.begin(&self.lock, &seats, now)
    }

    /// Goes on with the nodes that are given the lock again.
    fn rejoined(
        &mut self,
        now: Instant,
        event: Event,
        extended: Instant,
    ) -> Step<Result<Instant, Error>> {
        let rejoin = self.rejoin.as_mut().filter(|_| event != Event::Stop);
        match rejoin.and_then(|rejoin| rejoin.handle(&self.lock, now, event)) {
            Some(moves) => moves.step(),
            None => Step::done(Ok(extended)),
        }
    }

    /// What the nodes have decided; nothing as long as they have not.
    fn decision(&self, now: Instant) -> Option<Result<Instant, Error>> {
        let mut sent_at = None::<Instant>;
        let tally = Tally::of(&self.ballot, &mut |voter, reply| {
            let word = word(reply)?;
            if matches!(word, Word::Yes) {
                let earlier = voter.round.sent_at();
                sent_at = Some(sent_at.map_or(earlier, |first| first.min(earlier)));
            }
            Some(word)
        });
        if let (true, Some(sent_at)) = (tally.has_quorum(), sent_at) {
            let valid_until = self.lock.ttl().valid_until(sent_at);
            let late = "the reply took longer than the new TTL";
            return Some(if now < valid_until {
                Ok(valid_until)
            } else {
                Err(self.lock.lost(Reason::Expired, late))
            });
        }
        if let Some(reason) = tally.loss() {
            return Some(Err(self.lost(&tally, reason)));
        }
        (!tally.is_open()).then(|| Err(self.failure(now, &tally)))
    }

    fn lost(&self, tally: &Tally, reason: Reason) -> Error {
        let detail = match reason {
            _ if !tally.is_of_one() => tally.counts("extended on"),
            Reason::TakenOver => "another token is in its place".to_owned(),
            _ => "the lock is no longer there".to_owned(),
        };
        self.lock.lost(reason, detail)
    }

    fn failure(&self, now: Instant, tally: &Tally) -> Error {
        let error = tally.failure("extended on");
        if now >= self.valid_until {
            let detail = format!(
                "its time was over before it could be extended: {}",
                error.detail()
            );
            return self.lock.lost(Reason::Unreachable, detail);
        }
        tally.or_unknown(error).about(self.lock.key().as_bytes())
    }
}

impl Operation for Extend {
    type Output = Result<Instant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        if let Some(extended) = self.extended.filter(|_| cfg!(feature = "nodes")) {
            return self.rejoined(now, event, extended);
        }
        let is_stopped = event == Event::Stop;
        let moves = self.ballot.handle(now, event);
        let extended = match self.decision(now) {
            Some(Ok(extended)) => extended,
            Some(Err(error)) => return Step::done(Err(error)),
            None => return moves.step(),
        };
        match self.rejoin(now, moves) {
            Some(moves) if !is_stopped => {
                let has_begun = self
                    .rejoin
                    .as_ref()
                    .is_some_and(|rejoin| rejoin.has_begun());
                self.extended = has_begun.then_some(extended);
                moves.step()
            }
            _ => Step::done(Ok(extended)),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.ballot.met_refusal_of_scripts()
    }
}

fn word(reply: &Reply) -> Option<Word> {
    match reply {
        Reply::Text(word) if word == b"extended" => Some(Word::Yes),
        Reply::Text(word) if word == b"absent" => Some(Word::Absent),
        Reply::Text(word) if word == b"taken" => Some(Word::Taken),
        _ => None,
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
