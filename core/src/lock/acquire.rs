//! Taking a lock, waiting for it if another holds it.

use super::Lock;
use super::raise::{self, Raised};
use super::votes::Votes;
use crate::aside::Aside;
use crate::ballot::{Ballot, Moves, are_without_scripts};
use crate::error::{Code, Error};
use crate::round::{Effect, pause};
use crate::script::Script;
use crate::seat::Seat;
use crate::settings::{LONGEST_WITHOUT_A_LOOK, LONGEST_YIELD, Settings};
use crate::step::{Event, Notice, Operation, Step};
use crate::time::{Instant, Wait};
use crate::token::{Seed, Token};

/// Takes the lock, waiting for it at the longest as long as was asked.
///
/// A lock that another holds is asked for again when something is said of it ([`Event::Notified`]), when its holder's time is
/// over, and now and then: seldom where releases are told, else with growing pauses.
///
/// On several nodes it is granted when a quorum of them gave it to us, then wrote down the highest of their fences, and
/// something is left of it after that.
///
/// Fails with `busy` if another holds it until the deadline, with `timeout` if the server is silent, with
/// `unavailable` if it cannot be reached, and with `cancelled` after [`Event::Stop`]. Whatever it may have left on a
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
    /// A request of an earlier attempt with this token may have arrived without an answer, and may arrive yet.
    unsettled: bool,
    /// Why the last attempt was in vain.
    refusal: Option<Error>,
    attempts: u32,
    /// How often it was asked for.
    asked: Aside<u32>,
    /// Something was said of the lock since it was last asked for.
    notified: bool,
    /// Whether the next release will be told too.
    listening: bool,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    Voting(Ballot),
    WritingBack {
        ballot: Ballot,
        fence: u64,
        valid_until: Instant,
    },
    Undoing {
        ballot: Ballot,
        then: Then,
    },
    BackingOff {
        until: Instant,
        seats: Vec<Seat>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Then {
    /// Try again, at this moment even if a node has not answered.
    Retry(Instant),
    Fail(Error),
}

/// What an [`Acquire`] does at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acquiring {
    /// It has asked the nodes, and waits for their answers.
    Voting,
    /// It writes the highest fence back.
    WritingBack,
    /// It undoes an attempt that was in vain.
    Undoing,
    /// It waits before it asks.
    BackingOff,
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

type Progress = Step<Result<Grant, Error>>;

impl Acquire {
    /// Takes `lock`; the token and the jitter come from `seed`.
    pub fn start(
        lock: Lock,
        wait: Wait,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Progress) {
        let (mut acquire, _) = Self::start_behind(lock, wait, settings, seed, now);
        let step = acquire.ask(now, &Seat::all(settings.nodes, settings.scripts));
        (acquire, step)
    }

    /// The same behind others of the same client who want it too ([`Line`](crate::waiting::Line)): sends nothing before it is
    /// notified, and ends as `timeout` if it has sent nothing to the end.
    pub fn start_behind(
        lock: Lock,
        wait: Wait,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> (Self, Progress) {
        let deadline = now.plus(settings.patience(wait));
        let acquire = Self {
            lock,
            settings: settings.clone(),
            seed,
            token: Token::new(seed, settings.label.as_ref()),
            waits_until: now.plus(wait.as_millis()),
            deadline,
            unsettled: false,
            refusal: None,
            attempts: 0,
            asked: Aside(0),
            notified: false,
            listening: false,
            state: State::BackingOff {
                until: deadline,
                seats: Seat::all(settings.nodes, settings.scripts),
            },
        };
        (acquire, Step::wait(deadline))
    }

    /// Why it waits at the moment, if it has asked: what it was told. It is then worth while to notify it.
    ///
    /// Several nodes are asked again after pauses only: of a release, one would have to hear from a quorum of them.
    pub fn denial(&self) -> Option<&Error> {
        match &self.state {
            State::BackingOff { .. } if self.settings.nodes.is_one() => self.refusal.as_ref(),
            _ => None,
        }
    }

    /// What it does at the moment.
    pub const fn doing(&self) -> Acquiring {
        match self.state {
            State::Voting(_) => Acquiring::Voting,
            State::WritingBack { .. } => Acquiring::WritingBack,
            State::Undoing { .. } => Acquiring::Undoing,
            State::BackingOff { .. } => Acquiring::BackingOff,
        }
    }

    /// How often it was denied.
    pub fn denials(&self) -> u32 {
        self.attempts
    }

    /// How often it has asked for the lock.
    pub fn asked(&self) -> u32 {
        self.asked.0
    }

    /// Whether it waits behind others, and has asked for nothing yet.
    pub fn is_behind(&self) -> bool {
        matches!(&self.state, State::BackingOff { .. }) && self.refusal.is_none()
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

    fn ask(&mut self, now: Instant, seats: &[Seat]) -> Progress {
        self.notified = false;
        self.asked.0 += 1;
        let work = self.lock.granting(Script::LockAcquire, &self.token);
        let deadline = self.node_deadline(now).min(self.deadline);
        let (ballot, moves) = Ballot::start(work, Effect::Undone, seats, self.seed, deadline, now);
        self.state = State::Voting(ballot);
        moves.step()
    }

    fn voted(&mut self, now: Instant, event: Event) -> Progress {
        let State::Voting(ballot) = &mut self.state else {
            unreachable!()
        };
        let moves = ballot.handle(now, event);
        let votes = Votes::count(ballot);
        let repeated = |ballot: &Ballot| {
            ballot
                .voters()
                .iter()
                .any(|voter| voter.round.was_repeated())
        };
        if votes.tally.has_quorum() {
            self.unsettled |= repeated(ballot);
            let (seats, sent_at) = (ballot.seats(), ballot.sent_at());
            let valid_until = self.lock.ttl().valid_until(sent_at);
            if self.settings.nodes.is_one() || now >= valid_until {
                return self.granted(now, votes.highest, valid_until, &seats);
            }
            return self.write_back(now, votes.highest, valid_until, &seats);
        }
        if votes.tally.is_open() {
            return moves.step();
        }
        self.unsettled |= repeated(ballot);
        let seats = ballot.seats();
        self.deny(now, &votes, seats)
    }

    fn write_back(
        &mut self,
        now: Instant,
        fence: u64,
        valid_until: Instant,
        seats: &[Seat],
    ) -> Progress {
        let deadline = self.node_deadline(now).min(self.deadline).min(valid_until);
        let work = self.lock.raising(&self.token, fence);
        let (ballot, moves) = Ballot::start(work, Effect::Undone, seats, self.seed, deadline, now);
        self.state = State::WritingBack {
            ballot,
            fence,
            valid_until,
        };
        moves.step()
    }

    fn wrote_back(&mut self, now: Instant, event: Event) -> Progress {
        let State::WritingBack {
            ballot,
            fence,
            valid_until,
        } = &mut self.state
        else {
            unreachable!()
        };
        if self.settings.nodes.is_one() {
            unreachable!();
        }
        let (fence, valid_until) = (*fence, *valid_until);
        let moves = ballot.handle(now, event);
        let Raised { tally, higher } = raise::count(ballot, fence);
        if tally.has_quorum() {
            let seats = ballot.seats();
            return self.granted(now, fence, valid_until, &seats);
        }
        // The slowest node often has the highest fence, by its clock: a quorum without it does.
        if tally.is_open() {
            return moves.step();
        }
        let seats = ballot.seats();
        match higher {
            Some(higher) if now < valid_until.min(self.deadline) => {
                self.write_back(now, higher, valid_until, &seats)
            }
            _ => {
                let error = tally.failure("fence written back on");
                self.retry(now, error, &seats)
            }
        }
    }

    /// The lock was granted; gives it to the caller if something is left of it.
    fn granted(
        &mut self,
        now: Instant,
        fence: u64,
        valid_until: Instant,
        seats: &[Seat],
    ) -> Progress {
        if now < valid_until {
            return Step::done(Ok(Grant {
                token: self.token.clone(),
                fence,
                valid_until,
            }));
        }
        let late = Error::new(Code::Timeout, "the grant took longer than its TTL");
        self.retry(now, late, seats)
    }

    /// Nothing was decided for us: tries again later, or fails.
    fn deny(&mut self, now: Instant, votes: &Votes, seats: Vec<Seat>) -> Progress {
        // The wait is over; that the last answers are still on their way is not the reason.
        let is_cut_short = |code| match code {
            Code::Timeout => true,
            Code::Unavailable => !self.settings.nodes.is_one() && now >= self.deadline,
            _ => false,
        };
        let error = match (votes.refusal(), &self.refusal) {
            (error, Some(busy)) if is_cut_short(error.code()) && busy.code() == Code::Busy => {
                busy.clone()
            }
            (error, _) => error,
        };
        let is_final = match error.code() {
            Code::Busy => false,
            // A round on the only node has tried as long as there was time.
            Code::Timeout | Code::Unavailable => self.settings.nodes.is_one(),
            _ => true,
        };
        match (is_final, votes.may_be_ours()) {
            (true, _) => {
                self.unsettled |= votes.may_be_ours();
                self.fail(now, error, &seats)
            }
            (false, true) => self.retry(now, error, &seats),
            (false, false) => self.back_off(now, error, votes.left, seats),
        }
    }

    fn back_off(
        &mut self,
        now: Instant,
        error: Error,
        left: Option<u64>,
        seats: Vec<Seat>,
    ) -> Progress {
        self.refusal = Some(self.about(error));
        let jittered = self.pause();
        self.attempts += 1;
        // The holder's own time is looked at, so that nobody waits longer than the lock is held.
        let pause = left.map_or(jittered, |left| jittered.min(left + 1));
        let until = now.plus(pause).min(self.end());
        self.state = State::BackingOff { until, seats };
        self.backed_off(now, &Event::Woke)
    }

    fn hear(&mut self, now: Instant, notice: Notice) {
        self.listening = notice != Notice::Deaf;
        let pause = match notice {
            Notice::Heard | Notice::Deaf => 0,
            Notice::Contended => {
                let longest = LONGEST_YIELD / (1 + u64::from(self.attempts));
                self.seed.jitter(self.attempts, longest / 2, longest)
            }
            // Whoever has it now has it for as long as we would.
            Notice::Forward => self.pause().min(self.lock.ttl().as_millis() + 1),
        };
        match &mut self.state {
            State::BackingOff { until, .. } => *until = now.plus(pause).min(*until),
            // What is said while an answer is on its way may be newer than the answer: it is kept until that is here.
            _ => self.notified |= notice != Notice::Forward,
        }
    }

    /// How long it waits before it looks by itself.
    fn pause(&self) -> u64 {
        let longest = if self.listening {
            LONGEST_WITHOUT_A_LOOK
        } else {
            pause(self.attempts)
        };
        self.seed.jitter(self.attempts, longest / 2, longest)
    }

    fn backed_off(&mut self, now: Instant, event: &Event) -> Progress {
        let end = self.end();
        let State::BackingOff { until, seats } = &self.state else {
            unreachable!()
        };
        let (until, seats) = (*until, seats.clone());
        if matches!(event, Event::Stop) {
            return self.fail(now, cancelled(), &seats);
        }
        if now >= end {
            let refusal = self.refusal.clone().unwrap_or_else(unasked);
            return self.fail(now, refusal, &seats);
        }
        if now < until && !self.notified {
            return Step::wait(until);
        }
        // Unless something was released, the token is still fresh: a late copy of the last request finds its own lock.
        self.ask(now, &seats)
    }

    fn undone(&mut self, now: Instant, event: Event) -> Progress {
        let (end, is_stopped) = (self.end(), matches!(event, Event::Stop));
        let State::Undoing { ballot, then } = &mut self.state else {
            unreachable!()
        };
        // Being told to stop while undoing changes what comes after, not the undoing.
        let event = if is_stopped { Event::Woke } else { event };
        let moves = ballot.handle(now, event);
        let retry_at = match then {
            Then::Retry(at) => *at,
            Then::Fail(error) if ballot.is_over() => return Step::done(Err(error.clone())),
            Then::Fail(_) => return moves.step(),
        };
        if is_stopped || now >= end {
            let error = match &self.refusal {
                Some(refusal) if !is_stopped => refusal.clone(),
                _ => cancelled().about(self.lock.key().as_bytes()),
            };
            if ballot.is_over() {
                return Step::done(Err(error));
            }
            *then = Then::Fail(error);
            return moves.step();
        }
        if !ballot.is_over() && now < retry_at {
            return moves.no_later_than(retry_at.min(end)).step();
        }
        let seats = ballot.seats();
        self.unsettled = false;
        self.seed = self.seed.next();
        self.token = Token::new(self.seed, self.settings.label.as_ref());
        let refusal = self.refusal.clone();
        let refusal = refusal.unwrap_or_else(|| unreachable!());
        self.back_off(now, refusal, None, seats)
    }

    /// Undoes what was done, and tries again while there is time.
    fn retry(&mut self, now: Instant, error: Error, seats: &[Seat]) -> Progress {
        self.refusal = Some(self.about(error.clone()));
        if now >= self.end() {
            self.unsettled = true;
            return self.fail(now, error, seats);
        }
        let retry_at = self.node_deadline(now);
        self.undo(now, Then::Retry(retry_at), seats)
            .no_later_than(retry_at.min(self.end()))
            .step()
    }

    fn fail(&mut self, now: Instant, error: Error, seats: &[Seat]) -> Progress {
        let error = self.about(error);
        if self.unsettled {
            self.undo(now, Then::Fail(error), seats).step()
        } else {
            Step::done(Err(error))
        }
    }

    /// Releases on all nodes, also where the request may still be on its way: the release follows it.
    fn undo(&mut self, now: Instant, then: Then, seats: &[Seat]) -> Moves {
        let deadline = now.plus(self.settings.timeout.as_millis());
        let work = self.lock.releasing(&self.token);
        let (ballot, moves) =
            Ballot::start(work, Effect::Idempotent, seats, self.seed, deadline, now);
        self.state = State::Undoing { ballot, then };
        moves
    }

    fn stopped(&mut self, now: Instant) -> Progress {
        let (State::Voting(ballot) | State::WritingBack { ballot, .. }) = &self.state else {
            unreachable!()
        };
        let seats = ballot.seats();
        self.unsettled |= match &self.state {
            State::Voting(ballot) => {
                let repeated = ballot
                    .voters()
                    .iter()
                    .any(|voter| voter.round.was_repeated());
                repeated || Votes::count(ballot).may_be_ours()
            }
            _ => true,
        };
        self.fail(now, cancelled(), &seats)
    }

    /// When the caller has waited long enough, for a lock that is held or for nodes that are silent.
    fn end(&self) -> Instant {
        match &self.refusal {
            Some(refusal) if refusal.code() == Code::Busy => self.waits_until,
            _ => self.deadline,
        }
    }

    fn node_deadline(&self, now: Instant) -> Instant {
        let ttl = self.lock.ttl().as_millis();
        self.settings.node_deadline(ttl, now)
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.lock.key().as_bytes())
    }
}

impl Operation for Acquire {
    type Output = Result<Grant, Error>;

    fn handle(&mut self, now: Instant, event: Event) -> Progress {
        let event = match event {
            Event::Notified(notice) => {
                self.hear(now, notice);
                Event::Woke
            }
            event => event,
        };
        match self.state {
            State::Voting(_) | State::WritingBack { .. } if matches!(event, Event::Stop) => {
                self.stopped(now)
            }
            State::Voting(_) => self.voted(now, event),
            State::WritingBack { .. } => self.wrote_back(now, event),
            State::Undoing { .. } => self.undone(now, event),
            State::BackingOff { .. } => self.backed_off(now, &event),
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        match &self.state {
            State::Voting(ballot)
            | State::WritingBack { ballot, .. }
            | State::Undoing { ballot, .. } => ballot.met_refusal_of_scripts(),
            State::BackingOff { seats, .. } => are_without_scripts(seats.iter().copied()),
        }
    }
}

fn cancelled() -> Error {
    Error::new(Code::Cancelled, "the acquire was cancelled")
}

fn unasked() -> Error {
    Error::new(
        Code::Timeout,
        "others of this client wait for it, and were not answered by the deadline",
    )
}
