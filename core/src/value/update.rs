//! Reading a value, changing it, and writing it if nobody else has meanwhile.

use super::{CompareAndSet, Get};
use crate::error::{Code, Error};
use crate::key::Key;
use crate::request::Request;
use crate::round::{Effect, Progress, Round, Work, pause};
use crate::script::Invocation;
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Event, Operation, Reply, Step};
use crate::time::{Instant, Ttl};
use crate::token::Seed;

/// An optimistic change of a value: what was read, and until when it is tried.
///
/// The caller makes a new value of the present one, while nothing is locked and no connection is kept, and
/// [offers](Self::offer) it. Where another was faster, the offer ends with the new present value, and the caller tries
/// again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Update {
    key: Key,
    present: Vec<u8>,
    deadline: Instant,
    tries: u32,
}

/// What has become of an offer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Offered {
    /// It was written.
    Written,
    /// Another was faster, and the update holds what is there now.
    Overtaken(Update),
    /// The key is gone; nothing was written.
    Gone,
}

impl Update {
    /// An update of a value that was read to be `present`; it is tried until the time-out of the settings is over.
    pub fn new(key: Key, present: Vec<u8>, settings: &Settings, now: Instant) -> Self {
        Self {
            key,
            present,
            deadline: now.plus(settings.timeout.as_millis()),
            tries: 0,
        }
    }

    /// The value as it was read last.
    pub fn present(&self) -> &[u8] {
        &self.present
    }

    /// Writes `value` and `ttl` in one step if the key still holds what was read; else reads it anew after a jittered
    /// pause.
    ///
    /// Fails with `conflict` if others were faster until the deadline, with `wrong_type`, and with `outcome_unknown` if
    /// the reply is lost.
    pub fn offer(
        self,
        value: Vec<u8>,
        ttl: Ttl,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Offer, Step<Result<Offered, Error>>) {
        let write = CompareAndSet {
            key: self.key.clone(),
            expected: self.present.clone(),
            value,
            ttl,
        };
        let seat = Seat::only(settings.scripts);
        let mut offer = Offer {
            state: State::Pausing { until: now, seat },
            update: self,
            write,
            seed,
        };
        let until = now.plus(settings.timeout.as_millis());
        let (work, effect) = (offer.write.invocation(), offer.write.effect());
        let step = offer.ask(work, effect, until, seat, now, State::Writing);
        (offer, step)
    }
}

/// A new value on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Offer {
    update: Update,
    write: CompareAndSet,
    seed: Seed,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Writing(Round),
    Pausing { until: Instant, seat: Seat },
    Reading(Round),
}

impl Offer {
    fn ask(
        &mut self,
        script: Invocation,
        effect: Effect,
        until: Instant,
        seat: Seat,
        now: Instant,
        state: impl FnOnce(Round) -> State,
    ) -> Step<Result<Offered, Error>> {
        let (round, call) = Round::start(Work::Script(script), effect, seat, self.seed, until, now);
        self.state = state(round);
        Step::send(call, until)
    }

    fn written(&mut self, now: Instant, reply: Reply, seat: Seat) -> Step<Result<Offered, Error>> {
        match self.write.understand(reply) {
            Err(error) => self.fail(error),
            Ok(true) => Step::done(Ok(Offered::Written)),
            Ok(false) => {
                let longest = pause(self.update.tries);
                let jittered = self.seed.jitter(self.update.tries, longest / 2, longest);
                self.update.tries += 1;
                let until = now.plus(jittered).min(self.update.deadline);
                self.state = State::Pausing { until, seat };
                Step::wait(until)
            }
        }
    }

    fn paused(&mut self, now: Instant, event: &Event) -> Step<Result<Offered, Error>> {
        let State::Pausing { until, seat } = self.state else {
            unreachable!("only after a lost race")
        };
        if *event == Event::Stop {
            return self.fail(Error::new(Code::Cancelled, "the update was cancelled"));
        }
        if now >= self.update.deadline {
            let detail = format!(
                "others wrote it first, {} times until the deadline",
                self.update.tries
            );
            return self.fail(Error::new(Code::Conflict, detail));
        }
        if now < until {
            return Step::wait(until);
        }
        let (read, until) = (self.read(), self.update.deadline);
        self.ask(
            read.invocation(),
            read.effect(),
            until,
            seat,
            now,
            State::Reading,
        )
    }

    fn read(&self) -> Get {
        Get {
            key: self.update.key.clone(),
        }
    }

    fn was_read(&mut self, reply: Reply) -> Step<Result<Offered, Error>> {
        match self.read().understand(reply) {
            Err(error) => self.fail(error),
            Ok(None) => Step::done(Ok(Offered::Gone)),
            Ok(Some(present)) => {
                self.update.present = present;
                Step::done(Ok(Offered::Overtaken(self.update.clone())))
            }
        }
    }

    fn fail(&self, error: Error) -> Step<Result<Offered, Error>> {
        Step::done(Err(error.about(self.update.key.as_bytes())))
    }
}

impl Operation for Offer {
    type Output = Result<Offered, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        let (State::Writing(round) | State::Reading(round)) = &mut self.state else {
            return self.paused(now, &event);
        };
        let progress = round.handle(now, event);
        let seat = round.seat();
        match progress {
            Progress::Wait(until) => Step::wait(until),
            Progress::Send(call, until) => Step::send(call, until),
            Progress::Failed(error) => self.fail(error),
            Progress::Answered(reply) if matches!(self.state, State::Writing(_)) => {
                self.written(now, reply, seat)
            }
            Progress::Answered(reply) => self.was_read(reply),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        match &self.state {
            State::Writing(round) | State::Reading(round) => round.met_refusal_of_scripts(),
            State::Pausing { .. } => false,
        }
    }
}
