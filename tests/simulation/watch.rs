//! What must hold at every moment, whatever happens.

use tallylock_core::memory::Memory;
use tallylock_core::token::Token;

use crate::plan::{DATA, Kept, LOCK, Plan};
use crate::world::Server;

/// What is wrong where a lock excludes nobody.
pub(crate) const TWO_LEASES: &str = "two leases are valid";

/// Who believes what, what was seen, and the first thing that was wrong.
#[derive(Default)]
pub(crate) struct Watch {
    leases: Vec<Belief>,
    /// The highest fence that was granted, and the last that was written.
    highest: u64,
    written: u64,
    /// Until when each client that was paused could not have known.
    paused: Vec<(usize, u64)>,
    pub(crate) seen: Seen,
    pub(crate) fault: Option<String>,
}

/// How often it came to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) grants: u64,
    pub(crate) refusals: u64,
    pub(crate) releases: u64,
    pub(crate) losses: u64,
    pub(crate) writes: u64,
    pub(crate) fenced_off: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, more: Self) {
        self.grants += more.grants;
        self.refusals += more.refusals;
        self.releases += more.releases;
        self.losses += more.losses;
        self.writes += more.writes;
        self.fenced_off += more.fenced_off;
    }
}

/// A lease that a client believes to be its own.
struct Belief {
    client: usize,
    token: Token,
    valid_until: u64,
}

impl Watch {
    /// A client was granted the lock; `floor` is the highest fence that it could have seen before.
    pub(crate) fn granted(
        &mut self,
        client: usize,
        token: Token,
        valid_until: u64,
        fence: u64,
        floor: u64,
    ) {
        self.seen.grants += 1;
        if fence <= floor {
            self.wrong(format!(
                "c{client} was granted fence {fence}, after {floor}"
            ));
        }
        self.highest = self.highest.max(fence);
        self.leases.push(Belief {
            client,
            token,
            valid_until,
        });
    }

    /// A holder has learned until when its lease is valid.
    pub(crate) fn extended(&mut self, client: usize, valid_until: u64) {
        let mut leases = self.leases.iter_mut();
        if let Some(lease) = leases.find(|lease| lease.client == client) {
            lease.valid_until = valid_until;
        }
    }

    /// A holder lets go of its lease, or was told that it is lost.
    pub(crate) fn left(&mut self, client: usize) {
        self.leases.retain(|lease| lease.client != client);
    }

    /// A holder is told that its lease is lost: in time, and not for nothing.
    pub(crate) fn lost(&mut self, client: usize, plan: &Plan, servers: &[Server], now: u64) {
        self.seen.losses += 1;
        let mut leases = self.leases.iter();
        let Some(lease) = leases.find(|lease| lease.client == client) else {
            return;
        };
        let (until, held) = (lease.valid_until, held(lease, plan, servers));
        if now < until && held >= plan.quorum() {
            self.wrong(format!(
                "c{client} was told a loss, and {held} nodes hold its lease"
            ));
        } else if now > until.max(self.awake(client)) {
            self.wrong(format!("c{client} was told at {now} of a loss at {until}"));
        }
        self.left(client);
    }

    /// A client does nothing until that moment.
    pub(crate) fn paused(&mut self, client: usize, until: u64) {
        self.paused.retain(|(paused, _)| *paused != client);
        self.paused.push((client, until));
    }

    /// The last moment at which a client could do nothing.
    pub(crate) fn awake(&self, client: usize) -> u64 {
        let mut paused = self.paused.iter();
        paused
            .find(|(paused, _)| *paused == client)
            .map_or(0, |(_, until)| *until)
    }

    /// The highest fence that was granted so far.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Looks at the leases as time passes, and as they are granted and extended.
    pub(crate) fn look(&mut self, plan: &Plan, servers: &[Server], now: u64) {
        let valid = || self.leases.iter().filter(|lease| now < lease.valid_until);
        let mut wrong = None;
        for lease in valid() {
            let held = held(lease, plan, servers);
            // A node that forgets and waits does not say so either, and grants no other.
            if held < plan.quorum() && plan.kept == Kept::Keys {
                let (client, until) = (lease.client, lease.valid_until);
                wrong = Some(format!(
                    "c{client} believes to hold the lock until {until}, and {held} nodes say so"
                ));
            }
        }
        if valid().count() > 1 {
            wrong = Some(TWO_LEASES.to_owned());
        }
        if let Some(wrong) = wrong {
            self.wrong(wrong);
        }
    }

    /// A server has executed something: keys have their TTLs, and what is written has no lower fence than before.
    pub(crate) fn executed(&mut self, plan: &Plan, servers: &[Server], number: usize, now: u64) {
        let memory = &servers[number].memory;
        for (key, text, ttl) in memory.keys() {
            let longest = if key == LOCK.as_bytes() {
                plan.ttl
            } else {
                u64::MAX
            };
            if ttl.is_none_or(|ttl| ttl > longest) {
                let key = String::from_utf8_lossy(key).into_owned();
                self.wrong(format!("{key} has a TTL of {ttl:?}"));
            }
            if key == DATA.as_bytes() {
                let fence = text.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                let fence: u64 = fence.unwrap_or_default();
                if fence < self.written {
                    let written = self.written;
                    self.wrong(format!("a write with fence {fence} came after {written}"));
                }
                self.written = fence;
            }
        }
        self.look(plan, servers, now);
    }

    /// All is over: no node has the lock.
    pub(crate) fn ended(&mut self, plan: &Plan, servers: &[Server]) {
        for (number, node) in servers[..plan.nodes].iter().enumerate() {
            if node.memory.keys().any(|(key, ..)| key == LOCK.as_bytes()) {
                self.wrong(format!("n{number} has the lock when all is over"));
            }
        }
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }
}

/// How many nodes have this lease.
fn held(lease: &Belief, plan: &Plan, servers: &[Server]) -> usize {
    let nodes = servers[..plan.nodes].iter();
    let has = |memory: &Memory| {
        let mut keys = memory.keys();
        keys.any(|(key, text, _)| key == LOCK.as_bytes() && text == Some(lease.token.as_bytes()))
    };
    nodes.filter(|server| has(&server.memory)).count()
}
