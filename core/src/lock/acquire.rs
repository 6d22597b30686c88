//! Taking a lock, waiting for it if another holds it.

use super::Lock;
use crate::error::{Code, Error};
use crate::round::{Effect, Progress, Round, pause};
use crate::script::Script;
use crate::settings::{Scripts, Settings};
use crate::step::{Call, CallId, Event, Operation, Reply, Step};
use crate::time::{Instant, Wait};
use crate::token::{Seed, Token};
use crate::twin::{self, Answer, View};

/// Takes the lock, waiting for it at the longest as long as was asked.
///
/// Fails with `busy` if another holds it until the deadline, with `timeout` if the server is silent, with
/// `unavailable` if it cannot be reached, and with `cancelled` after [`Event::Stop`]. Whatever it may have left on the
/// server it undoes: the caller can have its answer ([`Acquire::refusal`]) while that is still under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    lock: Lock,
    settings: Settings,
    seed: Seed,
    token: Token,
    /// Until when a lock that another holds is waited for.
    waits_until: Instant,
    /// Until when answers are waited for; the same, unless the caller does not want to wait.
    deadline: Instant,
    /// A server has refused scripts.
    refused: bool,
    /// A request may have arrived without an answer, and may arrive yet.
    unsettled: bool,
    /// What to say at the end of the wait, if another held the lock when it was last asked for.
    busy: Option<Error>,
    attempts: u32,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Voting(Round),
    Undoing { round: Round, then: Then },
    BackingOff { until: Instant, call: CallId },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Then {
    Retry,
    Fail(Error),
}

/// A lock that is ours.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// The owner value: the right to extend and release.
    pub token: Token,
    /// The fencing token: larger than that of every earlier grant of this lock, under the conditions in the guarantees.
    pub fence: u64,
    /// Until when it is ours, on the caller's clock.
    pub valid_until: Instant,
}

impl Acquire {
    /// Takes `lock`; the token and the jitter come from `seed`.
    pub fn start(
        lock: Lock,
        wait: Wait,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<Grant, Error>>) {
        let token = Token::new(seed, settings.label.as_ref());
        let deadline = now.plus(settings.patience(wait));
        let (round, call) = voting(
            &lock,
            &token,
            settings.scripts,
            seed,
            deadline,
            CallId(0),
            now,
        );
        let acquire = Self {
            lock,
            settings: settings.clone(),
            seed,
            token,
            waits_until: now.plus(wait.as_millis()),
            deadline,
            refused: false,
            unsettled: false,
            busy: None,
            attempts: 0,
            state: State::Voting(round),
        };
        (acquire, Step::send(call, deadline))
    }

    /// The error that the caller can be told already, while the operation still undoes what it did.
    pub fn refusal(&self) -> Option<&Error> {
        match &self.state {
            State::Undoing {
                then: Then::Fail(error),
                ..
            } => Some(error),
            _ => None,
        }
    }

    fn voted(&mut self, now: Instant, event: Event) -> Step<Result<Grant, Error>> {
        let State::Voting(round) = &mut self.state else {
            unreachable!("only a voting acquire counts votes")
        };
        let progress = round.handle(now, event);
        self.settings.scripts = round.scripts();
        self.refused |= round.met_refusal_of_scripts();
        self.unsettled |= round.was_repeated();
        match progress {
            Progress::Wait(until) => Step::wait(until),
            Progress::Send(call, until) => Step::send(call, until),
            Progress::Answered(reply) => {
                let (sent_at, call) = (round.sent_at(), round.next_call());
                self.answered(now, &reply, sent_at, call)
            }
            Progress::Failed(error) => {
                let (unsettled, call) = (self.unsettled || round.is_unsettled(), round.next_call());
                let error = match (error.code(), &self.busy) {
                    // The wait is over; that the last answer is still on its way is not the reason.
                    (Code::Timeout, Some(busy)) => busy.clone(),
                    _ => error,
                };
                self.fail(now, error, unsettled, call)
            }
        }
    }

    fn answered(
        &mut self,
        now: Instant,
        reply: &Reply,
        sent_at: Instant,
        call: CallId,
    ) -> Step<Result<Grant, Error>> {
        match vote(reply) {
            Some(Vote::Granted(fence)) => {
                let valid_until = self.lock.ttl().valid_until(sent_at);
                if now < valid_until {
                    return Step::done(Ok(Grant {
                        token: self.token.clone(),
                        fence,
                        valid_until,
                    }));
                }
                let then = if now < self.deadline {
                    Then::Retry
                } else {
                    Then::Fail(self.about(Error::new(
                        Code::Timeout,
                        "the grant took longer than its TTL",
                    )))
                };
                self.undo(now, then, call)
            }
            Some(Vote::Held(left)) => self.back_off(now, left, call),
            None => {
                let error = Error::unexpected(reply);
                self.fail(now, error, true, call)
            }
        }
    }

    fn back_off(
        &mut self,
        now: Instant,
        left: Option<u64>,
        call: CallId,
    ) -> Step<Result<Grant, Error>> {
        let longest = pause(self.attempts);
        let jittered = self.seed.jitter(self.attempts, longest / 2, longest);
        self.attempts += 1;
        self.busy = Some(busy(left));
        // The holder's own time is looked at, so that nobody waits longer than the lock is held.
        let pause = left.map_or(jittered, |left| jittered.min(left + 1));
        let until = now.plus(pause).min(self.waits_until);
        self.state = State::BackingOff { until, call };
        self.backed_off(now, &Event::Woke)
    }

    fn backed_off(&mut self, now: Instant, event: &Event) -> Step<Result<Grant, Error>> {
        let State::BackingOff { until, call } = self.state else {
            unreachable!("only after a vote of no")
        };
        if *event == Event::Stop {
            let error = Error::new(Code::Cancelled, "the acquire was cancelled");
            return self.fail(now, error, self.unsettled, call);
        }
        if let (true, Some(busy)) = (now >= self.waits_until, &self.busy) {
            return self.fail(now, busy.clone(), self.unsettled, call);
        }
        if now < until {
            return Step::wait(until);
        }
        // Nothing was released, so the token is still fresh: a late copy of the last request finds its own lock.
        self.ask(now, call)
    }

    fn undone(&mut self, now: Instant, event: Event) -> Step<Result<Grant, Error>> {
        let State::Undoing { round, then } = &mut self.state else {
            unreachable!("only what was begun is undone")
        };
        // Being told to stop while undoing changes what comes after, not the undoing.
        let event = if event == Event::Stop {
            if *then == Then::Retry {
                let error = Error::new(Code::Cancelled, "the acquire was cancelled");
                *then = Then::Fail(error.about(self.lock.key().as_bytes()));
            }
            Event::Woke
        } else {
            event
        };
        let call = match round.handle(now, event) {
            Progress::Wait(until) => return Step::wait(until),
            Progress::Send(call, until) => return Step::send(call, until),
            Progress::Answered(_) | Progress::Failed(_) => round.next_call(),
        };
        match core::mem::replace(then, Then::Retry) {
            Then::Fail(error) => Step::done(Err(error)),
            Then::Retry if now >= self.deadline => Step::done(Err(self.about(Error::new(
                Code::Timeout,
                "the grants took longer than their TTL",
            )))),
            Then::Retry => {
                self.unsettled = false;
                self.seed = self.seed.next();
                self.token = Token::new(self.seed, self.settings.label.as_ref());
                self.ask(now, call)
            }
        }
    }

    fn ask(&mut self, now: Instant, call: CallId) -> Step<Result<Grant, Error>> {
        let (round, call) = voting(
            &self.lock,
            &self.token,
            self.settings.scripts,
            self.seed,
            self.deadline,
            call,
            now,
        );
        self.state = State::Voting(round);
        Step::send(call, self.deadline)
    }

    fn fail(
        &mut self,
        now: Instant,
        error: Error,
        unsettled: bool,
        call: CallId,
    ) -> Step<Result<Grant, Error>> {
        let error = self.about(error);
        if unsettled {
            self.undo(now, Then::Fail(error), call)
        } else {
            Step::done(Err(error))
        }
    }

    fn undo(&mut self, now: Instant, then: Then, call: CallId) -> Step<Result<Grant, Error>> {
        let deadline = now.plus(self.settings.timeout.as_millis());
        let invocation = self.lock.releasing(&self.token);
        let (round, call) = Round::start(
            invocation,
            Effect::Idempotent,
            self.settings.scripts,
            self.seed,
            deadline,
            call,
            now,
        );
        self.state = State::Undoing { round, then };
        Step::send(call, deadline)
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.lock.key().as_bytes())
    }
}

impl Operation for Acquire {
    type Output = Result<Grant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        match self.state {
            State::Voting(_) => self.voted(now, event),
            State::Undoing { .. } => self.undone(now, event),
            State::BackingOff { .. } => self.backed_off(now, &event),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.refused
    }
}

fn busy(held_for: Option<u64>) -> Error {
    let left = held_for.map_or("without an end".into(), |left| {
        format!("for another {left} ms")
    });
    Error::new(Code::Busy, format!("another holds the lock {left}"))
}

/// What a node says to an acquire.
enum Vote {
    Granted(u64),
    Held(Option<u64>),
}

fn vote(reply: &Reply) -> Option<Vote> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let [Reply::Text(word), Reply::Text(number)] = parts.as_slice() else {
        return None;
    };
    let number = crate::counter::parse(core::str::from_utf8(number).ok()?)?;
    match word.as_slice() {
        b"granted" => Some(Vote::Granted(u64::try_from(number).ok()?)),
        b"held" => Some(Vote::Held(u64::try_from(number).ok())),
        _ => None,
    }
}

fn voting(
    lock: &Lock,
    token: &Token,
    scripts: Scripts,
    seed: Seed,
    deadline: Instant,
    call: CallId,
    now: Instant,
) -> (Round, Call) {
    Round::start(
        lock.granting(Script::LockAcquire, token),
        Effect::Undone,
        scripts,
        seed,
        deadline,
        call,
        now,
    )
}

/// `lock_acquire.lua` in Rust.
pub(crate) fn acquire_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let (ttl, fence_ttl) = (twin::millis(&arguments[1])?, twin::millis(&arguments[2])?);
    if view
        .get(&keys[0])?
        .is_some_and(|holder| holder != arguments[0])
    {
        let left = match view.pttl(&keys[0]) {
            twin::Pttl::Millis(left) => left.to_string(),
            twin::Pttl::Forever | twin::Pttl::Absent => "-1".into(),
        };
        return Ok(Reply::Array(vec![twin::text("held"), twin::text(left)]));
    }
    let now = view.time().to_string().into_bytes();
    let last = view.get(&keys[1])?;
    let is_behind = last.is_none_or(|last| {
        twin::is_number(&last) && (last[0] == b'-' || (last.len(), &last) < (now.len(), &now))
    });
    let fence = if is_behind {
        now
    } else {
        view.increment(&keys[1], 1)?.to_string().into_bytes()
    };
    view.set(&keys[1], &fence, Some(fence_ttl))?;
    view.set(&keys[0], &arguments[0], Some(ttl))?;
    Ok(Reply::Array(vec![
        twin::text("granted"),
        Reply::Text(fence),
    ]))
}
