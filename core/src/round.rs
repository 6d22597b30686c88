//! One script run on one node, or commands that only read, until they are answered or the deadline passes.
//!
//! EVALSHA first, and EVAL if the server does not know the script, or at once where it is one of several. Where scripts are
//! refused, WATCH and MULTI..EXEC with the script's twin. Again after a lost reply if that is harmless.

use crate::error::{Code, Error};
use crate::key::contains;
use crate::script::Invocation;
use crate::seat::Seat;
use crate::settings::{FIRST_PAUSE, LONGEST_PAUSE, Scripts};
use crate::step::{Call, Command, Event, Lane, Outcome, Reply, Undelivered};
use crate::time::Instant;
use crate::token::Seed;
use crate::transaction::{Decision, decide, look, was_executed};

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

/// What a round is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Work {
    /// A script; it is answered by its reply.
    Script(Invocation),
    /// Commands that only read; they are answered by the list of their replies. An error in the first is one of all, but for
    /// a missing permission where there are others: that may be one for a key.
    Reads(Vec<Command>),
}

/// Work under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Round {
    work: Work,
    effect: Effect,
    /// Where it goes, with the call that is, or was last, under way.
    seat: Seat,
    seed: Seed,
    deadline: Instant,
    state: State,
    /// When the call that is under way was sent.
    sent_at: Instant,
    /// When the first call that may have changed something was sent.
    first_sent_at: Instant,
    /// A call may have changed something, and its reply is lost.
    unsettled: bool,
    pauses: u32,
    /// Why the last call that cannot have changed anything did not.
    trouble: Option<(Code, String)>,
    refused: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// EVALSHA is under way.
    Asking,
    /// EVAL is under way.
    Loading,
    /// WATCH and the reads are under way.
    Looking,
    /// MULTI..EXEC is under way, after which this is the script's reply.
    Writing(Vec<Command>, Reply),
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
        work: Work,
        effect: Effect,
        seat: Seat,
        seed: Seed,
        deadline: Instant,
        now: Instant,
    ) -> (Self, Call) {
        let mut round = Self {
            work,
            effect,
            seat,
            seed,
            deadline,
            state: State::Answered,
            sent_at: now,
            first_sent_at: now,
            unsettled: false,
            pauses: 0,
            trouble: None,
            refused: false,
        };
        let call = round.call_at(now, round.beginning());
        (round, call)
    }

    /// When the call that was answered last had been sent.
    pub(crate) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// When the first call that may have changed something was sent.
    pub(crate) fn first_sent_at(&self) -> Instant {
        self.first_sent_at
    }

    /// Whether a call may have changed something without our knowing the outcome.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled
            || matches!(
                self.state,
                State::Asking | State::Loading | State::Writing(..)
            )
    }

    /// Whether an earlier call than the answered one may have changed something.
    pub(crate) fn was_repeated(&self) -> bool {
        self.unsettled
    }

    /// Where the next round of the same operation goes on.
    pub(crate) fn seat(&self) -> Seat {
        self.seat.next()
    }

    pub(crate) fn met_refusal_of_scripts(&self) -> bool {
        self.refused
    }

    pub(crate) fn handle(&mut self, now: Instant, event: Event) -> Progress {
        let progress = match event {
            Event::Replied { call, outcome } if call == self.seat.call() && self.is_asking() => {
                self.replied(now, outcome)
            }
            Event::Stop => return Progress::Failed(self.stopped()),
            Event::Replied { .. } | Event::Notified(_) | Event::Woke => None,
        };
        if let Some(progress) = progress {
            return progress;
        }
        if now >= self.deadline {
            return Progress::Failed(self.too_late());
        }
        match self.state {
            State::Pausing(until) if now >= until => self.send(now, self.beginning()),
            State::Pausing(until) => Progress::Wait(until.min(self.deadline)),
            _ => Progress::Wait(self.deadline),
        }
    }

    fn is_asking(&self) -> bool {
        !matches!(self.state, State::Pausing(_) | State::Answered)
    }

    fn beginning(&self) -> State {
        match (&self.work, self.seat.scripts) {
            (Work::Script(_), Scripts::Avoided) => State::Looking,
            // The others may decide before this one could say that it does not know the script.
            (Work::Script(_), Scripts::Tried) if self.seat.is_one_of_several() => State::Loading,
            _ => State::Asking,
        }
    }

    fn replied(&mut self, now: Instant, outcome: Outcome) -> Option<Progress> {
        let asked = core::mem::replace(&mut self.state, State::Answered);
        match outcome {
            Ok(replies) => self.answered(now, asked, replies),
            Err(Undelivered::Refused(error)) => Some(self.refused_as(error)),
            Err(Undelivered::NotSent(why)) => self.pause(now, Code::Unavailable, why),
            // Looking changes nothing.
            Err(Undelivered::MaybeSent(why)) if asked == State::Looking => {
                self.pause(now, Code::Unavailable, why)
            }
            Err(Undelivered::MaybeSent(why)) if self.effect == Effect::Once => {
                let why = format!("the reply was lost: {why}");
                Some(Progress::Failed(Error::new(Code::OutcomeUnknown, why)))
            }
            Err(Undelivered::MaybeSent(why)) => {
                self.unsettled = true;
                self.pause(now, Code::Unavailable, why)
            }
        }
    }

    fn answered(&mut self, now: Instant, asked: State, replies: Vec<Reply>) -> Option<Progress> {
        let result = match (asked, &self.work) {
            (State::Looking, Work::Script(invocation)) => match decide(invocation, &replies) {
                Ok(Decision::Write(commands, answer)) => {
                    return self.proceed(now, State::Writing(commands, answer));
                }
                Ok(Decision::Answer(answer)) => Ok(answer),
                Err(error) => Err(error),
            },
            (State::Writing(commands, answer), _) => match was_executed(&replies, &commands) {
                Ok(true) => Ok(answer),
                Ok(false) => {
                    return self.pause(now, Code::Conflict, "others keep changing the key".into());
                }
                Err(error) => Err(error),
            },
            (_, Work::Reads(_)) => match replies.first() {
                Some(Reply::Error(text)) if replies.len() == 1 || !text.starts_with("NOPERM") => {
                    Err(Error::from_reply(text))
                }
                _ => Ok(Reply::Array(replies)),
            },
            (asked, Work::Script(_)) => match replies.into_iter().next_back() {
                Some(Reply::Error(text))
                    if text.starts_with("NOSCRIPT") && asked == State::Asking =>
                {
                    return self.proceed(now, State::Loading);
                }
                Some(Reply::Error(text)) if refuses_scripts(&text) => {
                    self.seat.scripts = Scripts::Avoided;
                    self.refused = true;
                    return self.proceed(now, State::Looking);
                }
                Some(Reply::Error(text)) => Err(Error::from_reply(&text)),
                Some(reply) => Ok(reply),
                None => Err(Error::new(Code::Unsupported, "the transport gave no reply")),
            },
        };
        match result {
            Ok(reply) => Some(Progress::Answered(reply)),
            Err(error) if error.code() == Code::Unavailable => {
                self.pause(now, Code::Unavailable, error.detail().into())
            }
            Err(error) => Some(self.refused_as(error)),
        }
    }

    fn refused_as(&self, error: Error) -> Progress {
        Progress::Failed(refusal(error, self.effect, self.unsettled))
    }

    /// Goes on to the next call, unless the deadline has passed in the meantime.
    fn proceed(&mut self, now: Instant, state: State) -> Option<Progress> {
        (now < self.deadline).then(|| self.send(now, state))
    }

    fn send(&mut self, now: Instant, state: State) -> Progress {
        self.seat = self.seat.next();
        let call = self.call_at(now, state);
        Progress::Send(call, self.deadline)
    }

    fn call_at(&mut self, now: Instant, state: State) -> Call {
        let (lane, commands) = match (&self.work, &state) {
            (Work::Reads(commands), _) => (Lane::Shared, commands.clone()),
            (Work::Script(invocation), State::Loading) => {
                (Lane::Shared, vec![invocation.by_source()])
            }
            // A look begins a lane, what it decides goes over the same: they are told apart by the call of the look.
            (Work::Script(invocation), State::Looking) => {
                (Lane::Own(self.seat.call().0), look(invocation))
            }
            (Work::Script(_), State::Writing(commands, _)) => {
                (Lane::Own(self.seat.previous().0), commands.clone())
            }
            (Work::Script(invocation), _) => (Lane::Shared, vec![invocation.by_sha()]),
        };
        self.state = state;
        self.sent_at = now;
        if !self.unsettled {
            self.first_sent_at = now;
        }
        Call {
            id: self.seat.call(),
            node: self.seat.node(),
            lane,
            commands,
        }
    }

    fn pause(&mut self, now: Instant, code: Code, why: String) -> Option<Progress> {
        self.trouble = Some((code, why));
        let longest = pause(self.pauses);
        self.state = State::Pausing(now.plus(self.seed.jitter(self.pauses, longest / 2, longest)));
        self.pauses += 1;
        None
    }

    /// The error of a round whose deadline has passed.
    fn too_late(&self) -> Error {
        match (&self.trouble, self.is_unsettled(), self.effect) {
            (trouble, true, Effect::Idempotent | Effect::Once) => {
                let why = trouble
                    .as_ref()
                    .map_or("the server is silent", |(_, why)| why);
                Error::new(
                    Code::OutcomeUnknown,
                    format!("no reply by the deadline: {why}"),
                )
            }
            (Some((code, why)), ..) => Error::new(*code, why.clone()),
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

/// The error of a refused request. That nothing was applied is not said where an earlier request of ours may have been
/// (`unsettled`), or where the account may run a script but not all that is in it.
pub(crate) fn refusal(error: Error, effect: Effect, unsettled: bool) -> Error {
    let what = match effect {
        Effect::Idempotent if unsettled => "its reply was lost, and repeated it was refused",
        Effect::Idempotent | Effect::Once if error.is_from_inside_a_script() => {
            "the account may not do a part of it, see docs/acl.md"
        }
        _ => return error,
    };
    Error::new(Code::OutcomeUnknown, format!("{what}: {}", error.detail()))
}

/// Whether an error reply refuses scripts as such, and not something inside a script.
pub(crate) fn refuses_scripts(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let names: [&[u8]; 6] = [
        b"'evalsha'",
        b"'eval'",
        b"`evalsha`",
        b"`eval`",
        b"'evalsha|",
        b"'eval|",
    ];
    let refuses = text.starts_with("noperm") || text.starts_with("err unknown command");
    refuses && names.iter().any(|name| contains(text.as_bytes(), name))
}

/// The longest that the `n`-th pause may be, in milliseconds.
pub(crate) fn pause(n: u32) -> u64 {
    (FIRST_PAUSE << n.min(16)).min(LONGEST_PAUSE)
}
