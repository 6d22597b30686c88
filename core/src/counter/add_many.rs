//! Many adds in one round trip.

#[cfg(feature = "transactions")]
mod one_by_one;

use super::{Add, AddOnce, Added};
use crate::error::{Code, Error};
use crate::request::Request;
use crate::round::{pause, refusal, refuses_scripts};
use crate::script::{Invocation, Script};
use crate::settings::{Scripts, Settings};
use crate::step::{Call, CallId, Event, Lane, Node, Operation, Outcome, Reply, Step, Undelivered};
use crate::time::Instant;
use crate::token::Seed;
#[cfg(not(feature = "transactions"))]
use crate::transaction;

#[cfg(feature = "transactions")]
use one_by_one::One;

/// The most adds of one batch.
pub const MOST: usize = 10_000;

/// One add of a batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Entry {
    /// Counted each time that it is sent; never repeated by itself.
    Plain(Add),
    /// Counted once for its idempotency key; repeated by itself after a lost reply.
    Keyed(AddOnce),
}

/// Up to 10,000 adds over any counters in one round trip: each is atomic and has a result of its own, so that a bad one
/// neither stops nor hides the others.
///
/// The results stand in the order of the entries, with the errors of [`Add`] and [`AddOnce`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AddMany {
    entries: Vec<Entry>,
    results: Vec<Option<Result<Added, Error>>>,
    settings: Settings,
    seed: Seed,
    deadline: Instant,
    call: CallId,
    state: State,
    pauses: u32,
    /// Keyed entries may have arrived, and their replies are lost.
    unsettled: bool,
    refused: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// These entries are under way.
    Asking(Vec<usize>),
    /// These are to be sent again.
    Pausing {
        until: Instant,
        again: Vec<usize>,
        why: String,
    },
    /// Without scripts there is nothing that all have in common: one after the other.
    #[cfg(feature = "transactions")]
    OneByOne(usize, Box<One>),
}

type Results = Vec<Result<Added, Error>>;

impl AddMany {
    /// Sends the adds; `invalid_argument` if there are more than 10,000.
    pub fn start(
        entries: Vec<Entry>,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Self, Step<Results>), Error> {
        if entries.len() > MOST {
            let detail = format!("a batch has at most {MOST} adds, not {}", entries.len());
            return Err(Error::new(Code::InvalidArgument, detail));
        }
        let mut batch = Self {
            results: vec![None; entries.len()],
            entries,
            settings: settings.clone(),
            seed,
            deadline: now.plus(settings.timeout.as_millis()),
            call: CallId(0),
            state: State::Asking(Vec::new()),
            pauses: 0,
            unsettled: false,
            refused: false,
        };
        let all = (0..batch.entries.len()).collect();
        let step = match settings.scripts {
            Scripts::Tried => batch.ask(all, Vec::new()),
            Scripts::Avoided => batch.next_one(now),
        };
        Ok((batch, step))
    }

    /// Sends these entries; the first use of a script that the server lacks carries its text.
    fn ask(&mut self, asked: Vec<usize>, mut unknown: Vec<Script>) -> Step<Results> {
        if asked.is_empty() {
            return self.done();
        }
        self.call = CallId(self.call.0 + 1);
        let commands = asked.iter().map(|place| {
            let invocation = self.entries[*place].invocation();
            let lacks = |script: &Script| *script == invocation.script;
            if let Some(place) = unknown.iter().position(lacks) {
                unknown.swap_remove(place);
                invocation.by_source()
            } else {
                invocation.by_sha()
            }
        });
        let call = Call {
            id: self.call,
            node: Node::ONLY,
            lane: Lane::Shared,
            commands: commands.collect(),
        };
        self.state = State::Asking(asked);
        Step::send(call, self.deadline)
    }

    fn replied(&mut self, now: Instant, asked: Vec<usize>, outcome: Outcome) -> Step<Results> {
        match outcome {
            Ok(replies) if replies.len() == asked.len() => self.answered(now, asked, replies),
            Ok(_) => self.fail(asked, |_| {
                Error::new(
                    Code::Unsupported,
                    "the transport gave fewer replies than commands",
                )
            }),
            Err(Undelivered::Refused(error)) => {
                let unsettled = self.unsettled;
                self.fail(asked, |entry| entry.refusal(error.clone(), unsettled))
            }
            Err(Undelivered::NotSent(why)) => self.pause(now, asked, why),
            Err(Undelivered::MaybeSent(why)) => {
                let (keyed, plain) = asked
                    .into_iter()
                    .partition(|place| self.entries[*place].is_keyed());
                self.settle(plain, |_| {
                    Error::new(Code::OutcomeUnknown, format!("the reply was lost: {why}"))
                });
                self.unsettled = true;
                self.pause(now, keyed, why)
            }
        }
    }

    fn answered(&mut self, now: Instant, asked: Vec<usize>, replies: Vec<Reply>) -> Step<Results> {
        let mut again = Vec::new();
        let mut unknown = Vec::new();
        let mut trouble = None;
        for (place, reply) in asked.into_iter().zip(replies) {
            let entry = &self.entries[place];
            self.results[place] = match reply {
                Reply::Error(text) if text.starts_with("NOSCRIPT") => {
                    if !unknown.contains(&entry.script()) {
                        unknown.push(entry.script());
                    }
                    again.push(place);
                    None
                }
                Reply::Error(text) if refuses_scripts(&text) => {
                    self.refused = true;
                    self.settings.scripts = Scripts::Avoided;
                    None
                }
                Reply::Error(text) => match Error::from_reply(&text) {
                    error if error.code() == Code::Unavailable => {
                        trouble = Some(text);
                        again.push(place);
                        None
                    }
                    error => Some(Err(entry.refusal(error, self.unsettled))),
                },
                reply => Some(
                    entry
                        .understand(reply)
                        .map_err(|error| error.about(entry.key())),
                ),
            };
        }
        match trouble {
            _ if self.refused => self.next_one(now),
            Some(why) => self.pause(now, again, why),
            None if now >= self.deadline => self.late(again, false, ""),
            None => self.ask(again, unknown),
        }
    }

    fn pause(&mut self, now: Instant, again: Vec<usize>, why: String) -> Step<Results> {
        if again.is_empty() {
            return self.done();
        }
        let longest = pause(self.pauses);
        let until = now
            .plus(self.seed.jitter(self.pauses, longest / 2, longest))
            .min(self.deadline);
        self.pauses += 1;
        self.state = State::Pausing { until, again, why };
        Step::wait(until)
    }

    /// The entries that have no result.
    fn open(&self) -> Vec<usize> {
        (0..self.results.len())
            .filter(|place| self.results[*place].is_none())
            .collect()
    }

    /// Ends what is still open with this error.
    fn fail(&mut self, open: Vec<usize>, error: impl Fn(&Entry) -> Error) -> Step<Results> {
        self.settle(open, error);
        self.done()
    }

    fn settle(&mut self, open: Vec<usize>, error: impl Fn(&Entry) -> Error) {
        for place in open {
            let entry = &self.entries[place];
            self.results[place] = Some(Err(error(entry).about(entry.key())));
        }
    }

    fn done(&mut self) -> Step<Results> {
        let results = core::mem::take(&mut self.results).into_iter();
        Step::done(
            results
                .map(|result| result.expect("each entry has its result at the end"))
                .collect(),
        )
    }

    /// Scripts are forbidden, and there are no transactions in their place.
    #[cfg(not(feature = "transactions"))]
    fn next_one(&mut self, _now: Instant) -> Step<Results> {
        let open = self.open();
        self.fail(open, |_| transaction::unavailable())
    }

    fn late(&mut self, open: Vec<usize>, in_flight: bool, why: &str) -> Step<Results> {
        let unsettled = self.unsettled;
        self.fail(open, |entry| {
            let code = match (in_flight || (unsettled && entry.is_keyed()), why) {
                (true, _) => Code::OutcomeUnknown,
                (false, "") => Code::Timeout,
                (false, _) => Code::Unavailable,
            };
            Error::new(
                code,
                format!(
                    "no reply by the deadline: {}",
                    if why.is_empty() {
                        "the server is silent"
                    } else {
                        why
                    }
                ),
            )
        })
    }

    fn stopped(&mut self, open: Vec<usize>, in_flight: bool) -> Step<Results> {
        let unsettled = self.unsettled;
        self.fail(open, |entry| {
            if in_flight || (unsettled && entry.is_keyed()) {
                Error::new(
                    Code::OutcomeUnknown,
                    "the call was cancelled before its reply came",
                )
            } else {
                Error::new(Code::Cancelled, "the call was cancelled")
            }
        })
    }
}

impl Operation for AddMany {
    type Output = Results;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Results> {
        match (
            core::mem::replace(&mut self.state, State::Asking(Vec::new())),
            event,
        ) {
            (State::Asking(asked), Event::Stop) => self.stopped(asked, true),
            (State::Asking(asked), Event::Replied { call, outcome }) if call == self.call => {
                self.replied(now, asked, outcome)
            }
            (State::Asking(asked), _) if now >= self.deadline => self.late(asked, true, ""),
            (state @ State::Asking(_), _) => {
                self.state = state;
                Step::wait(self.deadline)
            }
            (State::Pausing { again, .. }, Event::Stop) => self.stopped(again, false),
            (State::Pausing { again, why, .. }, _) if now >= self.deadline => {
                self.late(again, false, &why)
            }
            (State::Pausing { until, again, .. }, _) if now >= until => self.ask(again, Vec::new()),
            (state @ State::Pausing { until, .. }, _) => {
                self.state = state;
                Step::wait(until)
            }
            #[cfg(feature = "transactions")]
            (State::OneByOne(place, one), event) => self.go_on(now, place, one, event),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.refused
    }
}

impl Entry {
    fn key(&self) -> &[u8] {
        match self {
            Self::Plain(add) => add.key(),
            Self::Keyed(add) => Request::key(add),
        }
    }

    fn refusal(&self, error: Error, unsettled: bool) -> Error {
        let effect = match self {
            Self::Plain(add) => add.effect(),
            Self::Keyed(add) => add.effect(),
        };
        refusal(error, effect, unsettled).about(self.key())
    }

    fn is_keyed(&self) -> bool {
        matches!(self, Self::Keyed(_))
    }

    fn script(&self) -> Script {
        match self {
            Self::Plain(_) => Script::CounterAdd,
            Self::Keyed(_) => Script::CounterAddOnce,
        }
    }

    fn invocation(&self) -> Invocation {
        match self {
            Self::Plain(add) => add.invocation(),
            Self::Keyed(add) => add.invocation(),
        }
    }

    fn understand(&self, reply: Reply) -> Result<Added, Error> {
        match self {
            Self::Plain(add) => add.understand(reply).map(counted),
            Self::Keyed(add) => add.understand(reply),
        }
    }
}

fn counted(total: i64) -> Added {
    Added {
        total,
        applied: true,
    }
}
