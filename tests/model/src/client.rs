//! A client: the operations that ship, one after the other, and what it believes.

use std::time::Duration;

use tallylock_core::error::{Error, Reason};
use tallylock_core::key::Key;
use tallylock_core::lock::{Acquire, Acquiring, Grant, Keeping, LeaseTtl, Lock, Release, Renewal};
use tallylock_core::settings::{Nodes, Settings};
use tallylock_core::step::{Event, Next, Operation, Step};
use tallylock_core::time::{Instant, Ttl, Wait};
use tallylock_core::token::{Label, Seed, Token};

use crate::life::Stage;
use crate::network::{Reply, Request};
use crate::shared::Shared;

/// The lock's key.
pub(crate) const LOCK: &str = "lock";

/// The lock's TTL in milliseconds; a lease is valid for 97 of them.
pub(crate) const TTL: u64 = 100;

/// What is taken off for clocks that run at different speeds, in milliseconds.
pub(crate) const DRIFT: u64 = 3;

/// How long a client waits for the only node, and for one of several, in milliseconds.
const TIMEOUT: u64 = 40;
const NODE_TIMEOUT: u64 = 20;

/// What the clients of a world have in common.
#[derive(Clone, Hash, Debug, Default)]
pub(crate) struct Habits {
    /// How long a lock that is held is waited for, in milliseconds.
    pub(crate) wait: u32,
    /// Whether a lease is renewed while it is held.
    pub(crate) renews: bool,
    /// Whether all attempts of a client have the same token, as they must not.
    pub(crate) reuses_token: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Client {
    number: u8,
    nodes: usize,
    phase: Phase,
    /// How many locks it may still take.
    attempts: u8,
    /// The number of its operation, by which replies to earlier ones are known.
    operation: u8,
    /// The highest fence that was granted before its first request.
    floor: u64,
    /// Until when it waits.
    until: u64,
    /// A lease of its own was lost, or its release was not answered: its key may be there until its TTL ends.
    has_abandoned: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Resting,
    Acquiring(Acquire),
    Holding(Lease),
    /// It has let go of the lease, and waits for a renewal that is under way.
    Leaving(Renewal),
    Releasing(Release),
}

/// A lease that is held.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lease {
    renewal: Renewal,
    token: Token,
    /// Until when it is believed to be the holder's own; nothing once it is known to be lost.
    valid_until: Option<u64>,
    /// Why it is lost, once the holder was told.
    lost: Option<Reason>,
}

/// A lock that was granted with this fence, to a client that could have seen that one before.
pub(crate) struct Granted {
    pub(crate) fence: u64,
    pub(crate) floor: u64,
}

/// What happens to a client.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Occasion {
    /// It is to take the lock; this is the highest fence that was granted before.
    Start(u64),
    /// It is to let go of it.
    Leave,
    /// A node has answered.
    Heard(Shared<Reply>),
    /// Something else happens.
    Told(Event),
}

/// What a client does to the world around it.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) requests: Vec<Shared<Request>>,
    pub(crate) granted: Option<Granted>,
    /// How what it did has ended.
    pub(crate) ended: Option<Stage>,
}

impl Client {
    pub(crate) fn new(number: u8, attempts: u8, nodes: usize) -> Self {
        Self {
            number,
            nodes,
            phase: Phase::Resting,
            attempts,
            operation: 0,
            floor: 0,
            until: NEVER,
            has_abandoned: false,
        }
    }

    pub(crate) fn can_start(&self) -> bool {
        self.attempts > 0 && self.is_resting()
    }

    /// Whether it has asked for the lock, now or before.
    pub(crate) fn has_begun(&self) -> bool {
        self.operation > 0 || !self.is_resting()
    }

    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting)
    }

    /// In which stage of a lease's life it is.
    pub(crate) fn stage(&self) -> Stage {
        match &self.phase {
            Phase::Resting => Stage::Idle,
            Phase::Acquiring(acquire) => match acquire.doing() {
                Acquiring::Voting => Stage::Asking,
                Acquiring::WritingBack => Stage::WritingBack,
                Acquiring::Undoing => Stage::Undoing,
                Acquiring::BackingOff => Stage::BackingOff,
            },
            Phase::Holding(lease) => match lease.lost {
                Some(reason) => Stage::lost(reason),
                None if lease.renewal.is_renewing() => Stage::Renewing,
                None => Stage::Held,
            },
            Phase::Leaving(_) => Stage::Leaving,
            Phase::Releasing(_) => Stage::Releasing,
        }
    }

    pub(crate) fn is_acquiring(&self) -> bool {
        matches!(self.phase, Phase::Acquiring(_))
    }

    pub(crate) fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Holding(_))
    }

    /// The number of the operation whose replies are waited for.
    pub(crate) fn operation(&self) -> u8 {
        self.operation
    }

    /// When it wants to be woken; nothing if it waits for nothing.
    pub(crate) fn until(&self) -> Option<u64> {
        (self.until != NEVER).then_some(self.until)
    }

    /// The token of the lease that it believes to be its own.
    pub(crate) fn holds(&self, now: u64) -> Option<&Token> {
        match &self.phase {
            Phase::Holding(lease) if lease.valid_until.is_some_and(|until| now < until) => {
                Some(&lease.token)
            }
            _ => None,
        }
    }

    /// Whether a holder whose time is over knows why, and one whose time is not yet over will be woken when it is.
    pub(crate) fn knows_its_loss(&self, now: u64) -> bool {
        let Phase::Holding(lease) = &self.phase else {
            return true;
        };
        match lease.valid_until {
            None => true,
            Some(valid_until) if now < valid_until => self.until <= valid_until,
            // A look changes nothing but what is remembered of the look.
            Some(_) => lease.renewal.clone().lease().lost(at(now)).is_some(),
        }
    }

    /// Whether nothing of its attempts should be left on any node.
    pub(crate) fn has_undone_all(&self) -> bool {
        self.is_resting() && !self.has_abandoned
    }

    /// Whether a lock of this value is one that it asked for.
    pub(crate) fn has_asked_for(&self, value: &[u8]) -> bool {
        matches!(value, [.., b'.', digit] if *digit == b'0' + self.number)
    }

    /// Takes in what happens to it.
    pub(crate) fn meet(&mut self, habits: &Habits, occasion: &Occasion, now: u64) -> Effects {
        match occasion {
            Occasion::Start(floor) => self.start(habits, *floor, now),
            Occasion::Leave => self.leave(habits, now),
            Occasion::Told(event) => self.handle(habits, event.clone(), now),
            Occasion::Heard(reply) => {
                let (call, outcome) = (reply.call, reply.outcome.clone());
                self.handle(habits, Event::Replied { call, outcome }, now)
            }
        }
    }

    fn start(&mut self, habits: &Habits, floor: u64, now: u64) -> Effects {
        self.attempts -= 1;
        self.floor = floor;
        let wait = Wait::from_millis_f64(f64::from(habits.wait)).expect("at most 10 years");
        let seed = self.seed(habits);
        let (acquire, step) = Acquire::start(lock(), wait, &self.settings(), seed, at(now));
        self.phase = Phase::Acquiring(acquire);
        let mut effects = Effects::default();
        // It never ends at once.
        let _ = self.take(step, &mut effects);
        effects
    }

    fn handle(&mut self, habits: &Habits, event: Event, now: u64) -> Effects {
        let mut effects = Effects::default();
        match &mut self.phase {
            Phase::Resting => {}
            Phase::Acquiring(acquire) => {
                let step = acquire.handle(at(now), event);
                self.acquired(habits, step, now, &mut effects);
            }
            Phase::Holding(lease) => {
                let step = lease.renewal.handle(at(now), event);
                let left = lease.renewal.lease().remaining(at(now));
                lease.valid_until = (left > 0).then_some(now + left);
                let next = self.take(step, &mut effects);
                if let (Next::Done(result), Phase::Holding(lease)) = (next, &mut self.phase) {
                    // Lost; it rests until the holder lets go of it.
                    lease.lost = result.err().and_then(|error| error.code().reason());
                    self.until = NEVER;
                }
            }
            Phase::Leaving(renewal) => {
                let step = renewal.handle(at(now), event);
                if let Next::Done(_) = self.take(step, &mut effects) {
                    self.release(habits, now, &mut effects);
                }
            }
            Phase::Releasing(release) => {
                let step = release.handle(at(now), event);
                self.released(step, &mut effects);
            }
        }
        effects
    }

    /// Lets go of the lease.
    fn leave(&mut self, habits: &Habits, now: u64) -> Effects {
        let mut effects = Effects::default();
        if let Phase::Holding(lease) = &mut self.phase {
            lease.renewal.leave(at(now));
            let renewal = lease.renewal.clone();
            let is_over = renewal.is_over();
            self.phase = Phase::Leaving(renewal);
            if is_over {
                self.release(habits, now, &mut effects);
            }
        }
        effects
    }

    fn acquired(
        &mut self,
        habits: &Habits,
        step: Step<Result<Grant, Error>>,
        now: u64,
        effects: &mut Effects,
    ) {
        match self.take(step, effects) {
            Next::WaitUntil(_) => {}
            Next::Done(Err(_)) => {
                effects.ended = Some(Stage::Refused);
                self.rest();
            }
            Next::Done(Ok(grant)) => {
                let fence = grant.fence;
                let floor = std::mem::take(&mut self.floor);
                effects.granted = Some(Granted { fence, floor });
                self.next_operation();
                self.hold(habits, grant, now);
            }
        }
    }

    fn hold(&mut self, habits: &Habits, grant: Grant, now: u64) {
        let keeping = if habits.renews {
            Keeping::default()
        } else {
            Keeping::default().never()
        };
        let token = grant.token.clone();
        let valid_until = Some(grant.valid_until.as_millis());
        let (settings, seed) = (self.settings(), self.seed(habits));
        let mut renewal = Renewal::new(lock(), grant, keeping, &settings, seed, at(now));
        self.until = renewal.next(at(now)).map_or(NEVER, Instant::as_millis);
        self.phase = Phase::Holding(Lease {
            renewal,
            token,
            valid_until,
            lost: None,
        });
    }

    fn release(&mut self, habits: &Habits, now: u64, effects: &mut Effects) {
        let Phase::Leaving(renewal) = &self.phase else {
            unreachable!("only what was left is released")
        };
        let (release, step) = renewal.release(&self.settings(), self.seed(habits), at(now));
        self.next_operation();
        self.phase = Phase::Releasing(release);
        self.released(step, effects);
    }

    fn released(&mut self, step: Step<Result<(), Error>>, effects: &mut Effects) {
        if let Next::Done(result) = self.take(step, effects) {
            self.has_abandoned |= result.is_err();
            effects.ended = Some(match result.map_err(|error| error.code().reason()) {
                Ok(()) => Stage::Released,
                Err(Some(reason)) => Stage::lost(reason),
                Err(None) => Stage::Unknown,
            });
            self.rest();
        }
    }

    /// Sends what a step has to send, and gives what comes next.
    fn take<T>(&mut self, step: Step<T>, effects: &mut Effects) -> Next<T> {
        let operation = self.operation;
        let requests = step.calls.into_iter();
        let requests = requests.map(|call| Shared::new(Request { operation, call }));
        effects.requests.extend(requests);
        if let Next::WaitUntil(until) = step.next {
            self.until = until.as_millis();
        }
        step.next
    }

    fn rest(&mut self) {
        self.next_operation();
        self.floor = 0;
        self.until = NEVER;
        self.phase = Phase::Resting;
    }

    fn next_operation(&mut self) {
        self.operation += 1;
    }

    fn seed(&self, habits: &Habits) -> Seed {
        let attempt = if habits.reuses_token {
            0
        } else {
            self.attempts
        };
        Seed::new([self.number * 16 + attempt; 16])
    }

    fn settings(&self) -> Settings {
        Settings {
            timeout: millis(TIMEOUT),
            node_timeout: Some(millis(NODE_TIMEOUT)),
            label: Some(self.label()),
            nodes: if self.nodes == 1 {
                Nodes::ONE
            } else {
                Nodes::new(self.nodes).expect("an odd number")
            },
            ..Settings::default()
        }
    }

    fn label(&self) -> Label {
        Label::new(self.number.to_string()).expect("a label")
    }
}

/// No moment at all.
const NEVER: u64 = u64::MAX;

fn at(now: u64) -> Instant {
    Instant::from_millis(now)
}

/// The lock that all want.
pub(crate) fn lock() -> Lock {
    let ttl = LeaseTtl::new(millis(TTL));
    Lock::new(Key::new(LOCK).expect("a key"), ttl.expect("a TTL"))
}

fn millis(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).expect("a TTL")
}
