//! The adds of a batch one after the other, each as a transaction, where scripts are forbidden.

use super::{AddMany, Added, Entry, Results, State, counted};
use crate::counter::{Add, AddOnce};
use crate::error::{Code, Error};
use crate::request::Single;
use crate::settings::Settings;
use crate::step::{Call, Event, Next, Operation, Step};
use crate::time::{Instant, Ttl};
use crate::token::Seed;

impl AddMany {
    /// Goes on with the next entry that has no result, by itself.
    pub(super) fn next_one(&mut self, now: Instant) -> Step<Results> {
        loop {
            let Some(place) = self.results.iter().position(Option::is_none) else {
                return self.done();
            };
            // What is left of the batch's time.
            let Ok(timeout) =
                Ttl::from_millis(i64::try_from(self.deadline.since(now)).unwrap_or(0))
            else {
                let open = self.open();
                let unsettled = self.unsettled;
                return self.fail(open, |entry| {
                    let code = if unsettled && entry.is_keyed() {
                        Code::OutcomeUnknown
                    } else {
                        Code::Timeout
                    };
                    Error::new(code, "the batch's time was over")
                });
            };
            let settings = Settings {
                timeout,
                ..self.settings.clone()
            };
            self.seed = self.seed.next();
            let (one, calls, next) = One::start(&self.entries[place], &settings, self.seed, now);
            match next {
                Next::WaitUntil(until) => {
                    self.state = State::OneByOne(place, Box::new(one));
                    return Step {
                        calls,
                        next: Next::WaitUntil(until),
                    };
                }
                Next::Done(result) => self.results[place] = Some(result),
            }
        }
    }

    /// Hands an event to the entry that is under way by itself.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        place: usize,
        mut one: Box<One>,
        event: Event,
    ) -> Step<Results> {
        let stops = event == Event::Stop;
        let (calls, next) = one.handle(now, event);
        match next {
            Next::WaitUntil(until) => {
                self.state = State::OneByOne(place, one);
                Step {
                    calls,
                    next: Next::WaitUntil(until),
                }
            }
            Next::Done(result) => {
                self.results[place] = Some(result);
                if stops {
                    let open = self.open();
                    return self.stopped(open, false);
                }
                self.next_one(now)
            }
        }
    }
}

/// One add by itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum One {
    Plain(Single<Add>),
    Keyed(Single<AddOnce>),
}

impl One {
    fn start(
        entry: &Entry,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Vec<Call>, Next<Result<Added, Error>>) {
        match entry {
            Entry::Plain(add) => {
                let (one, step) = Single::start(add.clone(), settings, seed, now);
                (Self::Plain(one), step.calls, plain(step.next))
            }
            Entry::Keyed(add) => {
                let (one, step) = Single::start(add.clone(), settings, seed, now);
                (Self::Keyed(one), step.calls, step.next)
            }
        }
    }

    fn handle(&mut self, now: Instant, event: Event) -> (Vec<Call>, Next<Result<Added, Error>>) {
        match self {
            Self::Plain(one) => {
                let step = one.handle(now, event);
                (step.calls, plain(step.next))
            }
            Self::Keyed(one) => {
                let step = one.handle(now, event);
                (step.calls, step.next)
            }
        }
    }
}

fn plain(next: Next<Result<i64, Error>>) -> Next<Result<Added, Error>> {
    match next {
        Next::WaitUntil(until) => Next::WaitUntil(until),
        Next::Done(result) => Next::Done(result.map(counted)),
    }
}
