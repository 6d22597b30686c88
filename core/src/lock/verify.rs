//! Asking the servers whether a lease is ours.

use std::borrow::Cow;

use super::Lock;
use super::tally::{Tally, Word};
use crate::ballot::Ballot;
use crate::error::{Code, Error, Reason};
use crate::round::{Effect, Work};
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::{Seed, Token};
use crate::twin::Pttl;

/// Reads the lock; gives until when the server leaves it to us at least, by the holder's clock.
///
/// Fails with `lost` if it is not ours. Changes nothing, and is repeated by itself after a lost reply.
///
/// On several nodes a quorum decides, either way: it is ours for as long as the quorum that holds it the longest leaves it to
/// us. If those that answer first do so for less than we believe, the others are waited for as long as one of several nodes is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Verify {
    lock: Lock,
    token: Token,
    believed: Instant,
    patience: Instant,
    ballot: Ballot,
}

impl Verify {
    /// Asks whether the lock is held by `token`, until `believed` as the holder believes.
    pub fn start(
        lock: Lock,
        token: Token,
        believed: Instant,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<Instant, Error>>) {
        let command = |name: &'static [u8]| {
            let key = lock.key().as_bytes().to_vec();
            vec![Cow::Borrowed(name), Cow::Owned(key)]
        };
        // First its time and then whose it is: what is ours afterwards was ours before, for a token does not come back.
        let work = Work::Reads(vec![command(b"PTTL"), command(b"GET")]);
        let deadline = now.plus(settings.timeout.as_millis());
        let seats = Seat::all(settings.nodes, settings.scripts);
        let (ballot, moves) = Ballot::start(work, Effect::None, &seats, seed, deadline, now);
        let patience = settings.node_deadline(lock.ttl().as_millis(), now);
        let verify = Self {
            lock,
            token,
            believed,
            patience,
            ballot,
        };
        (verify, moves.no_later_than(patience).step())
    }

    /// What the nodes have decided; nothing as long as they have not.
    fn decision(&self, now: Instant) -> Option<Result<Instant, Error>> {
        let (mut ours, mut first) = (Vec::new(), None);
        let tally = Tally::of(&self.ballot, &mut |voter, reply| {
            let error = match self.understand(voter.round.sent_at(), reply) {
                Ok(until) => {
                    ours.push(until);
                    return Some(Word::Yes);
                }
                Err(error) => error,
            };
            first.get_or_insert_with(|| error.clone());
            Some(match error.code() {
                Code::Lost(Reason::TakenOver) => Word::Taken,
                Code::Lost(_) => Word::Absent,
                _ => Word::Refused(error),
            })
        });
        if tally.has_quorum() {
            ours.sort_unstable();
            let until = ours[ours.len() - tally.quorum()];
            let is_enough = until >= self.believed || self.ballot.is_over() || now >= self.patience;
            return is_enough.then_some(Ok(until));
        }
        match (tally.loss(), first) {
            (Some(_), Some(first)) if tally.is_of_one() => Some(Err(first)),
            (Some(reason), _) => Some(Err(self.lock.lost(reason, tally.counts(HELD)))),
            (None, _) => (!tally.is_open()).then(|| Err(tally.failure(HELD))),
        }
    }

    /// What a node says that was asked at `sent_at`.
    fn understand(&self, sent_at: Instant, reply: &Reply) -> Result<Instant, Error> {
        let Reply::Array(replies) = reply else {
            return Err(Error::unexpected(reply));
        };
        let [pttl, holder] = replies.as_slice() else {
            return Err(Error::unexpected(reply));
        };
        match holder {
            Reply::Text(holder) if holder == self.token.as_bytes() => {}
            Reply::Nil => {
                return Err(self
                    .lock
                    .lost(Reason::Expired, "the lock is no longer there"));
            }
            Reply::Text(_) => {
                return Err(self
                    .lock
                    .lost(Reason::TakenOver, "another token is in its place"));
            }
            Reply::Error(text) => return Err(self.refused(Error::from_reply(text))),
            other => return Err(Error::unexpected(other)),
        }
        Ok(match Pttl::understand(pttl)? {
            Pttl::Millis(left) => sent_at.plus(left),
            // Somebody has taken its TTL away: the server never ends it.
            Pttl::Forever => Instant::from_millis(u64::MAX),
            // It had ended, and a late copy of the acquire has made it anew: others may have had it in between.
            Pttl::Absent => {
                return Err(self.lock.lost(Reason::Expired, "the lock had ended before"));
            }
        })
    }

    fn refused(&self, error: Error) -> Error {
        match error.code() {
            Code::WrongType => self.lock.lost(
                Reason::TakenOver,
                "something that is no lock is in its place",
            ),
            _ => error,
        }
    }
}

const HELD: &str = "held on";

impl Operation for Verify {
    type Output = Result<Instant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let moves = self.ballot.handle(now, event);
        match self.decision(now) {
            Some(decision) => {
                Step::done(decision.map_err(|error| error.about(self.lock.key().as_bytes())))
            }
            // A quorum that leaves it to us for less than we believe is asked for no longer than this.
            None if now < self.patience => moves.no_later_than(self.patience).step(),
            None => moves.step(),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.ballot.met_refusal_of_scripts()
    }
}
