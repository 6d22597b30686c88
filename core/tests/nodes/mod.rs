//! Operations over several nodes in memory at once, each node with manners of its own, on one timeline.
#![allow(dead_code, reason = "each scenario uses its own part of this")]

use std::collections::{BTreeMap, BTreeSet};

use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::lock::{Acquire, Grant, LeaseTtl, Lock};
use tallylock_core::memory::Memory;
use tallylock_core::settings::{Nodes, Settings};
use tallylock_core::step::{Call, Event, Next, Operation, Outcome, Step, Undelivered};
use tallylock_core::time::{Instant, Ttl, Wait};
use tallylock_core::token::Seed;

pub(crate) const KEY: &str = "invoice:42";
pub(crate) const FENCE: &str = "invoice:42{invoice:42}:tlu1:fence";
pub(crate) const TTL: i64 = 10_000;
/// A twentieth of it.
pub(crate) const NODE_TIMEOUT: u64 = 500;

/// How a node answers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Manner {
    /// So many milliseconds there, and as many back.
    Answers(u64),
    /// Nobody listens.
    Down,
    /// Calls stay in its socket until it is woken up.
    Hung,
    /// Calls are executed at once, and the connection breaks before the reply.
    LosesReplies,
}

/// The nodes, and what is on its way to and from them.
pub(crate) struct World {
    pub(crate) nodes: Vec<Memory>,
    pub(crate) manners: Vec<Manner>,
    pub(crate) now: Instant,
    pub(crate) settings: Settings,
    /// Every call that was sent, with the time.
    pub(crate) sent: Vec<(Instant, Call)>,
    coming: BTreeMap<(Instant, u64), Coming>,
    number: u64,
    sockets: Vec<Vec<(usize, Call)>>,
    released: BTreeSet<Vec<u8>>,
}

enum Coming {
    Call(usize, Call),
    Told(usize, Event),
    /// What the test wants to happen at that time.
    Change(Box<dyn FnOnce(&mut World)>),
}

/// How an operation ended for its caller, and when.
pub(crate) struct Ended<T> {
    pub(crate) at: u64,
    pub(crate) output: T,
}

impl World {
    /// Nodes of these manners.
    pub(crate) fn new(manners: impl IntoIterator<Item = Manner>) -> Self {
        let manners: Vec<_> = manners.into_iter().collect();
        let nodes = vec![Memory::default(); manners.len()];
        Self {
            settings: Settings {
                nodes: Nodes::new(nodes.len()).unwrap(),
                ..Settings::default()
            },
            now: Instant::from_millis(0),
            sent: Vec::new(),
            coming: BTreeMap::new(),
            number: 0,
            sockets: vec![Vec::new(); nodes.len()],
            released: BTreeSet::new(),
            nodes,
            manners,
        }
    }

    /// Does this to the world at that time.
    pub(crate) fn at(&mut self, millis: u64, change: impl FnOnce(&mut Self) + 'static) {
        self.put(
            Instant::from_millis(millis),
            Coming::Change(Box::new(change)),
        );
    }

    /// Tells the operation of this number to stop at that time.
    pub(crate) fn stop_at(&mut self, millis: u64, operation: usize) {
        self.put(
            Instant::from_millis(millis),
            Coming::Told(operation, Event::Stop),
        );
    }

    /// Takes the lock now, and says how that ended for the caller: at a refusal, that is before all is undone.
    pub(crate) fn acquire(&mut self, wait: u32, seed: u8) -> Ended<Result<Grant, Error>> {
        self.acquire_at_once(&[(wait, seed)]).remove(0)
    }

    /// The same for several callers who begin now.
    pub(crate) fn acquire_at_once(
        &mut self,
        callers: &[(u32, u8)],
    ) -> Vec<Ended<Result<Grant, Error>>> {
        let started = callers.iter().map(|(wait, seed)| {
            let wait = Wait::from_millis_f64(f64::from(*wait)).unwrap();
            let seed = Seed::new([*seed; 16]);
            Acquire::start(lock(TTL), wait, &self.settings, seed, self.now)
        });
        let started = started.collect();
        let mut answered = BTreeMap::new();
        let ended = self.run(started, |number, now, acquire: &Acquire| {
            if let Some(refusal) = acquire.refusal() {
                answered
                    .entry(number)
                    .or_insert((now.as_millis(), refusal.clone()));
            }
        });
        let told = ended.into_iter().enumerate().map(|(number, ended)| {
            answered
                .remove(&number)
                .map_or(ended, |(at, refusal)| Ended {
                    at,
                    output: Err(refusal),
                })
        });
        told.collect()
    }

    /// Runs one operation to its end.
    pub(crate) fn run_one<O: Operation>(
        &mut self,
        started: (O, Step<O::Output>),
    ) -> Ended<O::Output> {
        self.run(vec![started], |_, _, _| {}).remove(0)
    }

    fn run<O: Operation>(
        &mut self,
        started: Vec<(O, Step<O::Output>)>,
        mut observe: impl FnMut(usize, Instant, &O),
    ) -> Vec<Ended<O::Output>> {
        let mut ended: Vec<Option<Ended<O::Output>>> = started.iter().map(|_| None).collect();
        let mut waiting: Vec<(O, Instant)> = Vec::new();
        for (number, (operation, step)) in started.into_iter().enumerate() {
            waiting.push((operation, self.now));
            self.take_step(number, step, &mut waiting, &mut ended);
        }
        while ended.iter().any(Option::is_none) {
            let alive = |number: &usize| ended[*number].is_none();
            let next = (0..waiting.len())
                .filter(alive)
                .min_by_key(|number| waiting[*number].1);
            let next = next.expect("one of them is alive");
            let until = waiting[next].1;
            let (number, event) = match self.advance(until) {
                Some((number, _)) if ended[number].is_some() => continue,
                Some(told) => told,
                None => (next, Event::Woke),
            };
            let step = waiting[number].0.handle(self.now, event);
            observe(number, self.now, &waiting[number].0);
            self.take_step(number, step, &mut waiting, &mut ended);
        }
        ended.into_iter().flatten().collect()
    }

    fn take_step<O: Operation>(
        &mut self,
        number: usize,
        step: Step<O::Output>,
        waiting: &mut [(O, Instant)],
        ended: &mut [Option<Ended<O::Output>>],
    ) {
        for call in step.calls {
            self.send(number, call);
        }
        match step.next {
            Next::WaitUntil(until) => waiting[number].1 = until.max(self.now),
            Next::Done(output) => {
                ended[number] = Some(Ended {
                    at: self.now.as_millis(),
                    output,
                });
            }
        }
    }

    /// Lets all that is on its way arrive, wakes up whoever is hung, and lets so many milliseconds pass.
    pub(crate) fn settle(&mut self, millis: u64) {
        for node in 0..self.nodes.len() {
            self.wake(node);
        }
        let until = self.now.plus(millis);
        while self.advance(until).is_some() {}
        self.pass(until);
    }

    /// Lets a node that is hung, or of any other manner, answer at once from now on.
    pub(crate) fn wake(&mut self, node: usize) {
        self.manners[node] = Manner::Answers(0);
        for (number, call) in std::mem::take(&mut self.sockets[node]) {
            self.execute(number, &call);
        }
    }

    /// Goes on to the next moment at which an operation is told something, no further than `until`.
    fn advance(&mut self, until: Instant) -> Option<(usize, Event)> {
        loop {
            let next = self.coming.first_key_value().map(|(key, _)| *key);
            let Some((at, number)) = next.filter(|(at, _)| *at <= until) else {
                self.pass(until);
                return None;
            };
            self.pass(at);
            match self.coming.remove(&(at, number))? {
                Coming::Told(operation, event) => return Some((operation, event)),
                Coming::Call(operation, call) => self.arrive(operation, call),
                Coming::Change(change) => change(self),
            }
        }
    }

    fn pass(&mut self, until: Instant) {
        let millis = until.since(self.now);
        self.nodes.iter_mut().for_each(|node| node.advance(millis));
        self.now = self.now.max(until);
    }

    fn send(&mut self, number: usize, call: Call) {
        self.sent.push((self.now, call.clone()));
        self.watch_tokens(&call);
        let node = usize::from(call.node.0);
        match self.manners[node] {
            Manner::Answers(millis) => {
                let at = self.now.plus(millis);
                self.put(at, Coming::Call(number, call));
            }
            Manner::Hung => self.sockets[node].push((number, call)),
            Manner::LosesReplies => {
                self.nodes[node].execute(&call).unwrap();
                let lost = Undelivered::MaybeSent("connection reset".into());
                self.tell(number, &call, 0, Err(lost));
            }
            Manner::Down => {
                let refused = Undelivered::NotSent("connection refused".into());
                self.tell(number, &call, 0, Err(refused));
            }
        }
    }

    fn arrive(&mut self, number: usize, call: Call) {
        let node = usize::from(call.node.0);
        if self.manners[node] == Manner::Hung {
            self.sockets[node].push((number, call));
        } else {
            self.execute(number, &call);
        }
    }

    fn execute(&mut self, number: usize, call: &Call) {
        let node = usize::from(call.node.0);
        let back = match self.manners[node] {
            Manner::Answers(millis) => millis,
            _ => 0,
        };
        let outcome = self.nodes[node].execute(call);
        self.tell(number, call, back, outcome);
    }

    fn tell(&mut self, number: usize, call: &Call, in_millis: u64, outcome: Outcome) {
        let replied = Event::Replied {
            call: call.id,
            outcome,
        };
        self.put(self.now.plus(in_millis), Coming::Told(number, replied));
    }

    fn put(&mut self, at: Instant, coming: Coming) {
        self.number += 1;
        self.coming.insert((at, self.number), coming);
    }

    /// A token that was released is never used again: a release that comes late would free the next attempt's lock.
    fn watch_tokens(&mut self, call: &Call) {
        for command in call.commands.iter().filter(|command| command.len() > 2) {
            let is_release = command[2].as_ref() == b"1";
            let token = command[if is_release { 4 } else { 5 }].to_vec();
            if is_release {
                self.released.insert(token);
            } else {
                assert!(
                    !self.released.contains(&token),
                    "a released token is used again"
                );
            }
        }
    }

    /// What each node holds under a key.
    pub(crate) fn texts(&self, key: &str) -> Vec<Option<String>> {
        let text = |node: &Memory| {
            let mut keys = node.keys();
            let (_, text, _) = keys.find(|(name, ..)| *name == key.as_bytes())?;
            Some(String::from_utf8(text?.to_vec()).unwrap())
        };
        self.nodes.iter().map(text).collect()
    }

    /// On how many nodes the lock is.
    pub(crate) fn held(&self) -> usize {
        self.texts(KEY).iter().flatten().count()
    }

    /// Lets another hold the lock on these nodes.
    pub(crate) fn take(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            self.nodes[node].put(KEY.as_bytes(), b"another's", Some(ttl(TTL)));
        }
    }
}

pub(crate) fn ttl(millis: i64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

pub(crate) fn lock(millis: i64) -> Lock {
    Lock::new(Key::new(KEY).unwrap(), LeaseTtl::new(ttl(millis)).unwrap())
}

pub(crate) fn code<T: std::fmt::Debug>(result: &Result<T, Error>) -> &'static str {
    result.as_ref().unwrap_err().code().as_str()
}

/// What a failed call says.
pub(crate) fn said<T: std::fmt::Debug>(result: &Result<T, Error>) -> String {
    result.as_ref().unwrap_err().to_string()
}
