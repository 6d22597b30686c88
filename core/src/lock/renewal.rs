//! Keeping a lease, and telling when it is lost.

use super::{Extend, Extending, Grant, Lease, LeaseTtl, Lock, Release, Transferred, Tried};
use crate::error::{Code, Error, Reason};
use crate::round::pause;
use crate::settings::{Scripts, Settings};
use crate::step::{CallId, Event, Next, Operation, Step};
use crate::time::{Instant, Ttl};
use crate::token::Seed;

/// Whether and how a lease is renewed while it is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Keeping {
    every: Every,
    max_hold: Option<Ttl>,
}

/// How long after its time was given it is given again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Every {
    /// A third of the TTL: two tries more are left if the first finds nobody.
    #[default]
    Third,
    Millis(u64),
    Never,
}

impl Keeping {
    /// Renewed this long after each time that it was given its TTL, instead of a third of that.
    ///
    /// Fails with `invalid_argument` if it is more than half of `ttl`: too little would be left for a second try.
    pub fn every(self, interval: Ttl, ttl: LeaseTtl) -> Result<Self, Error> {
        let (interval, longest) = (interval.as_millis(), ttl.as_millis() / 2);
        if interval > longest {
            let detail = format!(
                "a lock of {} ms is renewed at least every {longest} ms, not every {interval} ms",
                ttl.as_millis()
            );
            return Err(Error::new(Code::InvalidArgument, detail));
        }
        Ok(Self {
            every: Every::Millis(interval),
            ..self
        })
    }

    /// Not renewed: the lease ends with its TTL, unless the holder extends it.
    #[must_use]
    pub const fn never(self) -> Self {
        Self {
            every: Every::Never,
            ..self
        }
    }

    /// Not renewed any more once it has been held for so long.
    #[must_use]
    pub const fn at_most(self, max_hold: Ttl) -> Self {
        Self {
            max_hold: Some(max_hold),
            ..self
        }
    }

    /// Whether it is renewed at all.
    pub const fn is_renewed(self) -> bool {
        !matches!(self.every, Every::Never)
    }

    fn interval(self, ttl: LeaseTtl) -> Option<u64> {
        match self.every {
            Every::Third => Some(ttl.as_millis() / 3),
            // Where the holder has extended the lease to a shorter TTL, the interval may be too long for that.
            Every::Millis(every) => Some(every.min(ttl.as_millis() / 2)),
            Every::Never => None,
        }
    }
}

/// A lease that is held: renewed until it is released, transferred or lost.
///
/// As an operation it ends with nothing once the holder lets go of it ([`Event::Stop`], [`leave`](Self::leave),
/// [`transfer`](Self::transfer)) and what was under way is over, and with `lost` as soon as it is no longer ours: when the
/// server says so, and no later than at its deadline. An extend that fails is tried again until then, after a pause.
///
/// The holder's own verbs go to the same [`Lease`], so there is one truth about its time and its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Renewal {
    lease: Lease,
    keeping: Keeping,
    /// From when on no renewal is begun.
    kept_until: Option<Instant>,
    settings: Settings,
    seed: Seed,
    /// How many tries in a row had no success, and until when to wait after the last one.
    failures: u32,
    pause_until: Instant,
    /// The name of the next extend's first call: a late reply must not be taken for one to a later extend.
    next_call: u32,
    refused: bool,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// Nothing is under way.
    Held,
    /// An extend is under way.
    Renewing(Box<Attempt>),
    /// The holder has let go of it, or it was lost.
    Over,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Attempt {
    extend: Extend,
    extending: Extending,
    /// The name of its first call.
    first_call: u32,
    /// Its calls that were not answered yet.
    awaited: Vec<CallId>,
}

impl Renewal {
    /// Holds the lease that was granted.
    pub fn new(
        lock: Lock,
        grant: Grant,
        keeping: Keeping,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Self {
        Self {
            lease: Lease::new(lock, grant),
            keeping,
            kept_until: keeping
                .max_hold
                .map(|longest| now.plus(longest.as_millis())),
            settings: Settings {
                // For acquires only.
                label: None,
                ..settings.clone()
            },
            seed,
            failures: 0,
            pause_until: now,
            next_call: 0,
            refused: false,
            state: State::Held,
        }
    }

    /// The lease, for the holder's own verbs. After one the operation is to be told [`Event::Woke`].
    pub const fn lease(&mut self) -> &mut Lease {
        &mut self.lease
    }

    /// Lets go of the lease because a release comes; whether one is to be sent. Not before this operation
    /// [is over](Self::is_over): a renewal that is under way could come after it.
    pub fn leave(&mut self, now: Instant) -> bool {
        let is_to_be_released = self.lease.leave(now);
        self.stop();
        is_to_be_released
    }

    /// Starts the release of a lease that was [left](Self::leave).
    pub fn release(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Release, Step<Result<(), Error>>) {
        self.lease.begin_release(settings, seed, now)
    }

    /// Gives the lease away instead of releasing it. What this gives is good once the operation [is over](Self::is_over);
    /// `lost` if the lease is.
    pub fn transfer(&mut self, now: Instant) -> Result<Transferred, Error> {
        let transferred = self.lease.transfer(now)?;
        self.stop();
        Ok(transferred)
    }

    /// When it has something to do next, if it rests.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        match (&self.state, self.lease.valid_until(now)) {
            (State::Held, Ok(valid_until)) => Some(self.next_renewal(valid_until)),
            _ => None,
        }
    }

    /// Renews it no more: it ends with its time, unless the holder extends it.
    pub const fn keep_no_longer(&mut self) {
        self.keeping = self.keeping.never();
    }

    /// Whether it has nothing to do any more, and nothing is under way.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether an extend of this operation is under way.
    pub fn is_renewing(&self) -> bool {
        matches!(self.state, State::Renewing(_))
    }

    /// Begins no extend any more, and ends where none is under way.
    fn stop(&mut self) {
        let waits = matches!(&self.state, State::Renewing(attempt) if !attempt.awaited.is_empty());
        if !waits {
            self.give_up(LET_GO);
        }
    }

    fn held(&mut self, now: Instant) -> Step<Result<(), Error>> {
        self.state = State::Held;
        let Ok(valid_until) = self.lease.valid_until(now) else {
            return self.over(now);
        };
        let next = self.next_renewal(valid_until);
        if now < next {
            return Step::wait(next);
        }
        let left = valid_until.since(now);
        let mut settings = self.settings.clone();
        // A server, or a connection to it, that stays silent must leave time for another try.
        let patience = if left < LAST_TRY { left } else { left / 2 };
        settings.timeout = settings.timeout.min(Ttl::nearest(patience));
        self.seed = self.seed.next();
        let (ttl, _) = self.lease.given();
        match self.lease.extend(ttl, &settings, self.seed, now) {
            Err(_) => self.over(now),
            Ok(((extend, step), extending)) => {
                let attempt = Box::new(Attempt {
                    extend,
                    extending,
                    first_call: self.next_call,
                    awaited: Vec::new(),
                });
                self.progressed(now, attempt, step)
            }
        }
    }

    /// When the next renewal is due: never before a pause is over, and the lease's end if it is not renewed any more.
    fn next_renewal(&self, valid_until: Instant) -> Instant {
        let (ttl, given_at) = self.lease.given();
        let Some(interval) = self.keeping.interval(ttl) else {
            return valid_until;
        };
        // A rival may have left it less than what it was given.
        let interval = interval.min(valid_until.since(given_at) / 4 * 3).max(1);
        let next = given_at.plus(interval).max(self.pause_until);
        match self.kept_until {
            Some(kept_until) if next >= kept_until => valid_until,
            _ => next.min(valid_until),
        }
    }

    fn renewing(
        &mut self,
        now: Instant,
        event: Event,
        mut attempt: Box<Attempt>,
    ) -> Step<Result<(), Error>> {
        let event = match event {
            Event::Replied { call, outcome } => {
                attempt.awaited.retain(|awaited| *awaited != call);
                match call.0.checked_sub(attempt.first_call) {
                    Some(number) => Event::Replied {
                        call: CallId(number),
                        outcome,
                    },
                    None => Event::Woke,
                }
            }
            // What is under way is waited for.
            Event::Notified(_) | Event::Woke | Event::Stop => Event::Woke,
        };
        let step = attempt.extend.handle(now, event);
        self.progressed(now, attempt, step)
    }

    /// Goes on with an extend after a step of its own.
    fn progressed(
        &mut self,
        now: Instant,
        mut attempt: Box<Attempt>,
        step: Step<Result<Instant, Error>>,
    ) -> Step<Result<(), Error>> {
        let until = match step.next {
            Next::Done(result) => return self.ended(now, *attempt, result),
            Next::WaitUntil(until) => until,
        };
        if self.lease.is_left() && attempt.awaited.is_empty() {
            // It would ask once more.
            self.state = State::Renewing(attempt);
            self.give_up(LET_GO);
            return self.over(now);
        }
        let mut calls = step.calls;
        for call in &mut calls {
            call.id.0 += attempt.first_call;
            // A node is known by what its calls' names leave: that must not change.
            let nodes = u32::from(self.settings.nodes.count());
            self.next_call = self.next_call.max((call.id.0 / nodes + 1) * nodes);
            attempt.awaited.push(call.id);
        }
        let until = until.min(attempt.extending.valid_until());
        self.state = State::Renewing(attempt);
        Step {
            calls,
            next: Next::WaitUntil(until),
        }
    }

    fn ended(
        &mut self,
        now: Instant,
        attempt: Attempt,
        result: Result<Instant, Error>,
    ) -> Step<Result<(), Error>> {
        if attempt.extend.met_refusal_of_scripts() {
            self.refused = true;
            self.settings.scripts = Scripts::Avoided;
        }
        let result = result.map_err(|error| match error.code() {
            // The key holds something that no lock is: somebody has put it into our place.
            Code::WrongType => self
                .lease
                .lock()
                .lost(Reason::TakenOver, error.detail().to_owned()),
            _ => error,
        });
        let margin = attempt.extending.valid_until().since(now);
        let has_failed = self.lease.extended(attempt.extending, result).is_err();
        self.lease.tried(if has_failed {
            Tried::Failed
        } else {
            Tried::Renewed { margin }
        });
        let longest = pause(self.failures);
        (self.failures, self.pause_until) = if has_failed {
            let paused = self.seed.jitter(self.failures, longest / 2, longest);
            (self.failures + 1, now.plus(paused))
        } else {
            (0, now)
        };
        self.held(now)
    }

    /// Is over without waiting for what may be under way.
    fn give_up(&mut self, why: &str) {
        if let State::Renewing(attempt) = core::mem::replace(&mut self.state, State::Over) {
            let unknown = Error::new(Code::OutcomeUnknown, why);
            // Whom it would be told gave it up.
            let _ = self.lease.extended(attempt.extending, Err(unknown));
        }
    }

    /// Ends, and says how.
    fn over(&mut self, now: Instant) -> Step<Result<(), Error>> {
        self.state = State::Over;
        Step::done(
            self.lease
                .lost(now)
                .map_or(Ok(()), |lost| Err(lost.clone())),
        )
    }
}

const LET_GO: &str = "the lease was let go of";

/// With less than this left of a lease, a try takes all of it, in milliseconds.
const LAST_TRY: u64 = 100;

impl Operation for Renewal {
    type Output = Result<(), Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output> {
        if event == Event::Stop {
            self.leave(now);
        }
        if self.lease.lost(now).is_some() {
            self.give_up("its time is over");
        }
        match core::mem::replace(&mut self.state, State::Over) {
            State::Over => self.over(now),
            State::Held => self.held(now),
            State::Renewing(attempt) => self.renewing(now, event, attempt),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.refused
    }
}
