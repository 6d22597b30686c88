//! A request that is one script, and the operation that it is by itself.

use crate::error::{Code, Error};
use crate::round::{Effect, Progress, Round, Work};
use crate::script::Invocation;
use crate::seat::Seat;
use crate::settings::Settings;
use crate::step::{Event, Operation, Reply, Step};
use crate::time::Instant;
use crate::token::Seed;

/// A request that is one script: what to run, and what its reply means.
pub trait Request: Clone + Eq + core::hash::Hash + core::fmt::Debug {
    /// What the caller gets.
    type Output;

    /// The key that errors name.
    fn key(&self) -> &[u8];

    /// What it does to the data.
    fn effect(&self) -> Effect;

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
    /// Sends the request; it ends within the time-out of the settings. `unsupported` where there are several nodes: it is
    /// about one.
    pub fn start(
        request: R,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Step<Result<R::Output, Error>>) {
        let deadline = now.plus(settings.timeout.as_millis());
        let work = Work::Script(request.invocation());
        let (round, call) = Round::start(
            work,
            request.effect(),
            Seat::only(settings.scripts),
            seed,
            deadline,
            now,
        );
        let step = if settings.nodes.is_one() {
            Step::send(call, deadline)
        } else {
            Step::done(Err(several(&request)))
        };
        (Self { request, round }, step)
    }
}

fn several(request: &impl Request) -> Error {
    let detail =
        "this asks one server, and these are several: ask each through a client of its own";
    Error::new(Code::Unsupported, detail).about(request.key())
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

    fn met_refusal_of_scripts(&self) -> bool {
        self.round.met_refusal_of_scripts()
    }
}
