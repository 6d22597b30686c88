//! One operation against one server in memory, with the network's faults written down as a list.
#![allow(dead_code, reason = "each scenario uses its own part of this")]

use std::collections::VecDeque;

use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::lock::{LeaseTtl, Lock};
use tallylock_core::memory::Memory;
use tallylock_core::settings::Settings;
use tallylock_core::step::{Call, Event, Next, Operation, Reply, Step, Undelivered};
use tallylock_core::time::{Instant, Ttl};
use tallylock_core::token::Seed;

/// What the network does to a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fate {
    /// It arrives and is answered, so many milliseconds later.
    Answered(u64),
    /// It arrives, and the reply is lost.
    ReplyLost,
    /// It never arrives, and nobody is told.
    Silence,
    /// It arrives at the end of everything, and nobody is told.
    Late,
    /// There is no connection.
    NoConnection,
    /// The server refuses it with these words.
    Refused(&'static str),
}

/// A server, a clock and the fates of the next calls; calls beyond the list are answered at once.
pub(crate) struct World {
    pub(crate) memory: Memory,
    pub(crate) fates: VecDeque<Fate>,
    pub(crate) sent: Vec<Call>,
    late: Vec<Call>,
    refused_scripts: bool,
}

impl World {
    pub(crate) fn new(fates: impl IntoIterator<Item = Fate>) -> Self {
        Self {
            memory: Memory::default(),
            fates: fates.into_iter().collect(),
            sent: Vec::new(),
            late: Vec::new(),
            refused_scripts: false,
        }
    }

    /// Runs an operation to its end; `stop_at` is when the caller cancels.
    pub(crate) fn run<O: Operation>(
        &mut self,
        started: (O, Step<O::Output>),
        stop_at: Option<Instant>,
    ) -> O::Output {
        let (mut operation, mut step) = started;
        let mut coming: Vec<(Instant, Event)> =
            stop_at.map(|at| (at, Event::Stop)).into_iter().collect();
        loop {
            for call in std::mem::take(&mut step.calls) {
                coming.extend(self.send(call));
            }
            let until = match step.next {
                Next::Done(output) => {
                    for call in std::mem::take(&mut self.late) {
                        self.memory
                            .execute(&call)
                            .expect("a late call has no fate left");
                    }
                    return output;
                }
                Next::WaitUntil(until) => until,
            };
            coming.sort_by_key(|(at, _)| *at);
            let (at, event) = match coming.first() {
                Some((at, _)) if *at <= until => coming.remove(0),
                _ => (until, Event::Woke),
            };
            self.memory.advance(at.since(self.memory.now()));
            step = operation.handle(self.memory.now(), event);
            assert!(
                self.refused_scripts || !operation.met_refusal_of_scripts(),
                "nobody has refused scripts"
            );
        }
    }

    fn send(&mut self, call: Call) -> Option<(Instant, Event)> {
        self.sent.push(call.clone());
        let now = self.memory.now();
        let id = call.id;
        let (at, outcome) = match self.fates.pop_front().unwrap_or(Fate::Answered(0)) {
            Fate::Answered(millis) => (now.plus(millis), self.memory.execute(&call)),
            Fate::ReplyLost => {
                self.memory.lose_next_reply();
                (now.plus(1), self.memory.execute(&call))
            }
            Fate::NoConnection => (now, Err(Undelivered::NotSent("connection refused".into()))),
            Fate::Refused(words) => {
                self.refused_scripts |= words.contains("'evalsha'");
                (now, Ok(vec![Reply::Error(words.into())]))
            }
            Fate::Silence => return None,
            Fate::Late => {
                self.late.push(call);
                return None;
            }
        };
        Some((at, Event::Replied { call: id, outcome }))
    }

    /// The texts of the scripts that were sent, by their first word: EVALSHA or EVAL.
    pub(crate) fn commands(&self) -> Vec<String> {
        let words = self.sent.iter().flat_map(|call| &call.commands);
        words
            .map(|command| String::from_utf8_lossy(&command[0]).into_owned())
            .collect()
    }

    /// The text that a key holds.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let mut keys = self.memory.keys();
        let (_, text, _) = keys.find(|(name, ..)| *name == key.as_bytes())?;
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// The remaining milliseconds of a key.
    pub(crate) fn ttl(&self, key: &str) -> Option<u64> {
        let mut keys = self.memory.keys();
        keys.find(|(name, ..)| *name == key.as_bytes())?.2
    }
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn ttl(millis: i64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

pub(crate) fn lock(millis: i64) -> Lock {
    Lock::new(key("invoice:42"), LeaseTtl::new(ttl(millis)).unwrap())
}

pub(crate) fn seed(n: u8) -> Seed {
    Seed::new([n; 16])
}

pub(crate) fn settings() -> Settings {
    Settings::default()
}

/// The code of a failed call.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code().as_str()
}
