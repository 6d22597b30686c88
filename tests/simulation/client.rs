//! A client: takes the lock, holds it, writes under its fence and lets go of it, by the loop that ships.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tallylock_core::drive::{Clock, Transport, drive, nothing_to_tell};
use tallylock_core::error::{Code, Error};
use tallylock_core::key::Key;
use tallylock_core::lock::{Acquire, Grant, Keeping, Renewal};
use tallylock_core::request::Single;
use tallylock_core::settings::{Nodes, Settings};
use tallylock_core::step::{Call, Event, Operation, Outcome};
use tallylock_core::time::{Instant, Wait};
use tallylock_core::token::{Label, Seed};
use tallylock_core::value::GuardedSet;

use crate::plan::{DATA, Plan, millis};
use crate::world::World;

/// The way of a client to its servers, the first of which is this one, and its clock.
#[derive(Clone)]
struct Way {
    world: Rc<RefCell<World>>,
    client: usize,
    first_server: usize,
}

/// A client with all that it does in its life.
pub(crate) struct Client {
    way: Way,
    plan: Plan,
}

impl Client {
    pub(crate) fn new(world: &Rc<RefCell<World>>, client: usize) -> Self {
        Self {
            way: Way {
                world: Rc::clone(world),
                client,
                first_server: 0,
            },
            plan: world.borrow().plan.clone(),
        }
    }

    pub(crate) async fn live(self) {
        for _ in 0..self.plan.rounds {
            self.way.sleep_until(self.later(0, self.plan.ttl)).await;
            if let Ok(grant) = self.acquire().await {
                let (renewal, result) = self.hold(grant).await;
                self.release(renewal, result).await;
            }
        }
    }

    async fn acquire(&self) -> Result<Grant, Error> {
        let (ttl, now) = (self.plan.ttl, self.way.now());
        let (settings, floor) = (self.settings(), self.way.world.borrow().watch.highest());
        let wait = self.between(0, 3);
        let wait = if wait == 0 {
            0
        } else {
            self.between(1, wait * ttl)
        };
        let wait = Wait::from_micros(i64::try_from(wait * 1000).expect("a short time"));
        let wait = wait.expect("a short time");
        let deadline = now.plus(settings.patience(wait));
        let stops = self.between(0, 9) == 0;
        let stop_at = if stops { self.later(0, ttl) } else { NEVER };
        self.does(&format!("wants the lock until {}", deadline.as_millis()));
        let (acquire, step) = Acquire::start(self.plan.lock(), wait, &settings, self.seed(), now);
        let mut is_answered = false;
        let observe = |acquire: &Acquire| {
            if acquire.refusal().is_some() && !is_answered {
                is_answered = true;
                self.is_on_time(deadline);
            }
        };
        let notified = |_: &mut Context<'_>| {
            let notice = self.way.world.borrow_mut().notice(self.way.client);
            notice.map_or(Poll::Pending, |notice| Poll::Ready(Event::Notified(notice)))
        };
        let (way, stopped) = (self.way.clone(), self.way.sleep_until(stop_at));
        let result = drive(acquire, step, way.clone(), way, stopped, notified, observe).await;
        match &result {
            Ok(grant) => self.granted(grant, floor, deadline),
            Err(error) => {
                if !is_answered {
                    self.is_on_time(deadline);
                }
                self.does(&format!("is refused: {}", error.code().as_str()));
                self.way.world.borrow_mut().watch.seen.refusals += 1;
            }
        }
        result
    }

    fn granted(&self, grant: &Grant, floor: u64, deadline: Instant) {
        let (fence, until) = (grant.fence, grant.valid_until.as_millis());
        self.does(&format!("has the lock until {until}, fence {fence}"));
        self.is_on_time(deadline);
        let world = &mut *self.way.world.borrow_mut();
        let (client, token) = (self.way.client, grant.token.clone());
        world.watch.granted(client, token, until, fence, floor);
        world.watch.look(&world.plan, &world.servers, world.now);
    }

    /// Holds the lease until it has been long enough, or it is lost.
    async fn hold(&self, grant: Grant) -> (Renewal, Result<(), Error>) {
        let (now, fence) = (self.way.now(), grant.fence);
        let keeping = match self.between(0, 3) {
            0 => Keeping::default().never(),
            1 => Keeping::default().at_most(millis(self.plan.ttl)),
            _ => Keeping::default(),
        };
        let (lock, settings) = (self.plan.lock(), self.settings());
        let mut renewal = Renewal::new(lock, grant, keeping, &settings, self.seed(), now);
        let step = renewal.handle(now, Event::Woke);
        let last = RefCell::new(renewal.clone());
        let observe = |renewal: &Renewal| {
            self.learned(renewal.clone());
            *last.borrow_mut() = renewal.clone();
        };
        let until = self.later(0, 3 * self.plan.ttl);
        let (way, left) = (self.way.clone(), self.way.sleep_until(until));
        let keeping = drive(
            renewal,
            step,
            way.clone(),
            way,
            left,
            nothing_to_tell,
            observe,
        );
        let (result, ()) = both(keeping, self.write(fence)).await;
        (last.into_inner(), result)
    }

    /// Takes in until when the lease is valid now.
    fn learned(&self, mut renewal: Renewal) {
        let world = &mut *self.way.world.borrow_mut();
        let (client, now) = (self.way.client, Instant::from_millis(world.now));
        let lease = renewal.lease();
        let left = lease.remaining(now);
        if left > 0 {
            world.watch.extended(client, world.now + left);
            world.watch.look(&world.plan, &world.servers, world.now);
        } else if lease.is_left() {
            world.watch.left(client);
        } else if lease.lost(now).is_some() {
            world
                .watch
                .lost(client, &world.plan, &world.servers, world.now);
        }
    }

    /// Writes a few times, whether the lease is still its own or not: the fence is to keep it out then.
    async fn write(&self, fence: u64) {
        for _ in 0..self.between(0, 3) {
            self.way.sleep_until(self.later(0, 2 * self.plan.ttl)).await;
            let request = GuardedSet {
                key: Key::new(DATA).expect("a key"),
                value: fence.to_string().into_bytes(),
                fence,
                ttl: millis(1_000_000),
            };
            let settings = Settings {
                nodes: Nodes::ONE,
                ..self.settings()
            };
            let way = Way {
                first_server: self.plan.nodes,
                ..self.way.clone()
            };
            let (write, step) = Single::start(request, &settings, self.seed(), way.now());
            let never = std::future::pending();
            let result = drive(
                write,
                step,
                way.clone(),
                way,
                never,
                nothing_to_tell,
                |_| {},
            )
            .await;
            let seen = &mut self.way.world.borrow_mut().watch.seen;
            match result {
                Ok(()) => seen.writes += 1,
                Err(error) if error.code() == Code::FencedOff => seen.fenced_off += 1,
                Err(_) => {}
            }
        }
    }

    /// Gives the lock back: what was lost too, for its key may be there yet.
    async fn release(&self, mut renewal: Renewal, held: Result<(), Error>) {
        let now = self.way.now();
        match held {
            Ok(()) => self.does("lets go of the lock"),
            Err(error) => {
                self.does(&format!("has lost the lock: {}", error.code().as_str()));
                renewal.leave(now);
            }
        }
        let (release, step) = renewal.release(&self.settings(), self.seed(), now);
        let (way, never) = (self.way.clone(), std::future::pending());
        let result = drive(
            release,
            step,
            way.clone(),
            way,
            never,
            nothing_to_tell,
            |_| {},
        )
        .await;
        if result.is_ok() {
            self.way.world.borrow_mut().watch.seen.releases += 1;
        }
    }

    /// The caller has its answer: not later than it wanted, unless it was paused.
    fn is_on_time(&self, deadline: Instant) {
        let world = &mut *self.way.world.borrow_mut();
        let client = self.way.client;
        let latest = world.watch.awake(client).max(deadline.as_millis());
        if world.now > latest {
            let now = world.now;
            let wrong = format!("c{client} was answered at {now}, and waited until {latest}");
            world.watch.wrong(wrong);
        }
    }

    fn settings(&self) -> Settings {
        let label = Label::new(format!("c{}", self.way.client));
        Settings {
            label: Some(label.expect("a label")),
            ..self.plan.settings()
        }
    }

    fn does(&self, what: &str) {
        let world = &mut *self.way.world.borrow_mut();
        world.trace.does(world.now, self.way.client, what);
    }

    fn seed(&self) -> Seed {
        Seed::new(self.way.world.borrow_mut().random.bytes())
    }

    fn between(&self, least: u64, most: u64) -> u64 {
        self.way.world.borrow_mut().random.between(least, most)
    }

    /// A moment so many milliseconds from now.
    fn later(&self, least: u64, most: u64) -> Instant {
        let millis = self.between(least, most);
        self.way.now().plus(millis)
    }
}

/// No moment at all.
const NEVER: Instant = Instant::from_millis(u64::MAX);

impl Transport for Way {
    fn send(&self, call: Call) -> impl Future<Output = Outcome> {
        let server = self.first_server + usize::from(call.node.0);
        let mut call = Some(call);
        let mut ticket = None;
        poll_fn(move |_| {
            let mut world = self.world.borrow_mut();
            if let Some(call) = call.take() {
                ticket = Some(world.send(self.client, server, call));
            }
            let outcome = ticket.and_then(|ticket| world.outcome(ticket));
            outcome.map_or(Poll::Pending, Poll::Ready)
        })
    }
}

impl Clock for Way {
    fn now(&self) -> Instant {
        Instant::from_millis(self.world.borrow().now)
    }

    fn sleep_until(&self, until: Instant) -> impl Future<Output = ()> {
        let world = Rc::clone(&self.world);
        let mut is_set = until == NEVER;
        poll_fn(move |_| {
            let mut world = world.borrow_mut();
            if world.now >= until.as_millis() {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut is_set, true) {
                world.wake_at(until.as_millis());
            }
            Poll::Pending
        })
    }
}

/// Waits for both.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(move |context| {
        if first.is_none() {
            first = match one.as_mut().poll(context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            };
        }
        if second.is_none() {
            second = match other.as_mut().poll(context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            };
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}
