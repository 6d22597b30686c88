//! One script run on one node: EVALSHA, EVAL if the server does not know it, and again after a lost reply if that
//! is harmless, until it is answered or the deadline passes.

use crate::error::{Code, Error};
use crate::script::Invocation;
use crate::settings::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::step::{Call, CallId, Event, Node, Operation, Outcome, Reply, Step, Undelivered};
use crate::time::Instant;
use crate::token::Seed;

/// What a request may do to the data, and hence what its repetition may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// It changes nothing: repeated after a lost reply.
    None,
    /// A second time changes nothing more: repeated after a lost reply.
    Idempotent,
    /// A second time changes nothing more, and whoever asked undoes it unless it succeeds: repeated after a lost reply.
    Undone,
    /// A second time would count twice: never repeated once it may have arrived.
    Once,
}

/// A request that is one script: what to run, and what its reply means.
pub trait Request: Clone + Eq + core::hash::Hash + core::fmt::Debug {
    /// What the caller gets.
    type Output;
    /// What it does to the data.
    const EFFECT: Effect;

    /// The key that errors name.
    fn key(&self) -> &[u8];

    /// The script with its keys and arguments.
    fn invocation(&self) -> Invocation;

    /// What a reply that is no error means.
    fn understand(&self, reply: Reply) -> Result<Self::Output, Error>;
}

/// The operation that a request is by itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Single<R> {
    request: R,
    round: Round,
}

impl<R: Request> Single<R> {
    /// Sends the request; it ends within `timeout` milliseconds.
    pub fn start(
        request: R,
        seed: Seed,
        timeout: u64,
        now: Instant,
    ) -> (Self, Step<Result<R::Output, Error>>) {
        let deadline = now.plus(timeout);
        let (round, call) = Round::start(
            request.invocation(),
            R::EFFECT,
            seed,
            deadline,
            CallId(0),
            now,
        );
        (Self { request, round }, Step::send(call, deadline))
    }
}

impl<R: Request> Operation for Single<R> {
    type Output = Result<R::Output, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let error = match self.round.handle(now, event) {
            Progress::Wait(until) => return Step::wait(until),
            Progress::Send(call, until) => return Step::send(call, until),
            Progress::Answered(reply) => match self.request.understand(reply) {
                Ok(output) => return Step::done(Ok(output)),
                Err(error) => error,
            },
            Progress::Failed(error) => error,
        };
        Step::done(Err(error.about(self.request.key())))
    }
}

/// A script under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Round {
    invocation: Invocation,
    effect: Effect,
    seed: Seed,
    deadline: Instant,
    state: State,
    /// The call that is, or was last, under way.
    call: CallId,
    /// When the call that is under way was sent.
    sent_at: Instant,
    /// When the first call that may have arrived was sent.
    first_sent_at: Instant,
    /// A call may have arrived, and its reply is lost.
    unsettled: bool,
    pauses: u32,
    /// Why the last call that cannot have arrived did not.
    trouble: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Asking,
    Loading,
    Pausing(Instant),
    Answered,
}

/// What a round wants next.
pub(crate) enum Progress {
    Wait(Instant),
    Send(Call, Instant),
    Answered(Reply),
    Failed(Error),
}

impl Round {
    pub(crate) fn start(
        invocation: Invocation,
        effect: Effect,
        seed: Seed,
        deadline: Instant,
        call: CallId,
        now: Instant,
    ) -> (Self, Call) {
        let first = Call {
            id: call,
            node: Node::ONLY,
            commands: vec![invocation.by_sha()],
        };
        let round = Self {
            invocation,
            effect,
            seed,
            deadline,
            state: State::Asking,
            call,
            sent_at: now,
            first_sent_at: now,
            unsettled: false,
            pauses: 0,
            trouble: None,
        };
        (round, first)
    }

    /// When the call that was answered last had been sent.
    pub(crate) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// When the first call that may have arrived was sent.
    pub(crate) fn first_sent_at(&self) -> Instant {
        self.first_sent_at
    }

    /// Whether a call may have arrived without our knowing the outcome.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled || self.is_asking()
    }

    fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking | State::Loading)
    }

    /// Whether an earlier call than the answered one may have arrived.
    pub(crate) fn was_repeated(&self) -> bool {
        self.unsettled
    }

    /// The name for the next call of the same operation.
    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.call.0 + 1)
    }

    pub(crate) fn handle(&mut self, now: Instant, event: Event) -> Progress {
        let progress = match event {
            Event::Replied { call, outcome } if call == self.call && self.is_asking() => {
                self.replied(now, outcome)
            }
            Event::Stop => return Progress::Failed(self.stopped()),
            Event::Replied { .. } | Event::Woke => None,
        };
        if let Some(progress) = progress {
            return progress;
        }
        if now >= self.deadline {
            return Progress::Failed(self.too_late());
        }
        match self.state {
            State::Pausing(until) if now >= until => self.send(now, State::Asking),
            State::Pausing(until) => Progress::Wait(until.min(self.deadline)),
            State::Asking | State::Loading | State::Answered => Progress::Wait(self.deadline),
        }
    }

    fn replied(&mut self, now: Instant, outcome: Outcome) -> Option<Progress> {
        match outcome {
            Ok(replies) => self.answered(now, replies),
            Err(Undelivered::NotSent(why)) => self.pause(now, why),
            Err(Undelivered::Refused(error)) => Some(Progress::Failed(error)),
            Err(Undelivered::MaybeSent(why)) if self.effect == Effect::Once => {
                Some(Progress::Failed(Error::new(
                    Code::OutcomeUnknown,
                    format!("the reply was lost: {why}"),
                )))
            }
            Err(Undelivered::MaybeSent(why)) => {
                self.unsettled = true;
                self.pause(now, why)
            }
        }
    }

    fn answered(&mut self, now: Instant, mut replies: Vec<Reply>) -> Option<Progress> {
        let asked = core::mem::replace(&mut self.state, State::Answered);
        Some(match replies.pop() {
            Some(Reply::Error(text)) if text.starts_with("NOSCRIPT") && asked == State::Asking => {
                if now >= self.deadline {
                    return None;
                }
                self.send(now, State::Loading)
            }
            Some(Reply::Error(text)) => match Error::from_reply(&text) {
                error if error.code() == Code::Unavailable => return self.pause(now, text),
                error => Progress::Failed(error),
            },
            Some(reply) => Progress::Answered(reply),
            None => Progress::Failed(Error::new(Code::Unsupported, "the transport gave no reply")),
        })
    }

    fn send(&mut self, now: Instant, state: State) -> Progress {
        self.state = state;
        self.call = self.next_call();
        self.sent_at = now;
        if !self.unsettled {
            self.first_sent_at = now;
        }
        let command = if state == State::Loading {
            self.invocation.by_source()
        } else {
            self.invocation.by_sha()
        };
        let call = Call {
            id: self.call,
            node: Node::ONLY,
            commands: vec![command],
        };
        Progress::Send(call, self.deadline)
    }

    fn pause(&mut self, now: Instant, why: String) -> Option<Progress> {
        self.trouble = Some(why);
        let longest = pause(self.pauses);
        self.state = State::Pausing(now.plus(self.seed.jitter(self.pauses, longest / 2, longest)));
        self.pauses += 1;
        None
    }

    /// The error of a round whose deadline has passed.
    fn too_late(&self) -> Error {
        match (&self.trouble, self.is_unsettled(), self.effect) {
            (trouble, true, Effect::Idempotent | Effect::Once) => {
                let why = trouble.as_deref().unwrap_or("the server is silent");
                Error::new(
                    Code::OutcomeUnknown,
                    format!("no reply by the deadline: {why}"),
                )
            }
            (Some(trouble), ..) => Error::new(Code::Unavailable, trouble.clone()),
            (None, ..) => Error::new(
                Code::Timeout,
                "no reply by the deadline: the server is silent",
            ),
        }
    }

    fn stopped(&self) -> Error {
        if self.is_unsettled() && matches!(self.effect, Effect::Idempotent | Effect::Once) {
            Error::new(
                Code::OutcomeUnknown,
                "the call was cancelled before its reply came",
            )
        } else {
            Error::new(Code::Cancelled, "the call was cancelled")
        }
    }
}

/// The longest that the `n`-th pause may be, in milliseconds.
pub(crate) fn pause(n: u32) -> u64 {
    (FIRST_PAUSE << n.min(16)).min(LONGEST_PAUSE)
}
