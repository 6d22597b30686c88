//! What kind of world a seed leads to.

use tallylock_core::key::Key;
use tallylock_core::lock::{LeaseTtl, Lock};
use tallylock_core::settings::{Nodes, Settings};
use tallylock_core::time::Ttl;

use crate::random::Random;

/// What there is in a world, and how often it fails.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// How many locks each client takes.
    pub(crate) rounds: u64,
    /// The lock's TTL in milliseconds.
    pub(crate) ttl: u64,
    /// How many of a thousand requests have trouble on their way.
    pub(crate) trouble: u64,
    /// How many of a thousand times a client is stopped for a while before it takes in what happened.
    pub(crate) pauses: u64,
    /// How many milliseconds it is at the least and most from one restart of a node to the next; nothing if they are not
    /// restarted.
    pub(crate) restarts: Option<(u64, u64)>,
    /// What nodes that restart have kept.
    pub(crate) kept: Kept,
    /// Whether the nodes' clocks agree.
    pub(crate) clocks_agree: bool,
    /// Whether a node that has lost a lock is given it again.
    pub(crate) rejoin: bool,
}

/// What a node has kept when it restarts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kept {
    /// Its keys.
    Keys,
    /// Nothing, and it stays away until every lease that it may have granted is over. Fences then need clocks that agree.
    NothingButItWaits,
    /// Nothing. No lock is safe with that.
    Nothing,
}

impl Plan {
    pub(crate) fn drawn(random: &mut Random) -> Self {
        let ttl = random.one_of(&[200, 1_000, 1_000, 5_000]);
        let restarts = random.happens(500).then_some((ttl, 4 * ttl));
        let nodes = random.one_of(&NODES);
        let forgets = nodes > 1 && random.happens(250);
        Self {
            nodes,
            clients: random.one_of(&[2, 3, 4]),
            rounds: 4,
            ttl,
            trouble: random.one_of(&[0, 20, 100, 300]),
            pauses: random.one_of(&[0, 0, 5, 20]),
            restarts,
            kept: if forgets {
                Kept::NothingButItWaits
            } else {
                Kept::Keys
            },
            clocks_agree: forgets,
            rejoin: random.happens(500),
        }
    }

    pub(crate) fn lock(&self) -> Lock {
        let ttl = LeaseTtl::new(millis(self.ttl)).expect("longer than its drift");
        Lock::new(Key::new(LOCK).expect("a key"), ttl)
    }

    pub(crate) fn settings(&self) -> Settings {
        let nodes = match self.nodes {
            1 => Nodes::ONE,
            several => Nodes::new(several).expect("an odd number"),
        };
        Settings {
            timeout: millis(self.ttl / 2),
            nodes,
            rejoin: self.rejoin,
            ..Settings::default()
        }
    }

    pub(crate) fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }
}

/// On how many nodes the lock is in one world or another.
pub(crate) const NODES: [usize; 6] = [1, 1, 3, 3, 5, 7];

/// The key of the lock, on each of the nodes.
pub(crate) const LOCK: &str = "lock";

/// The key that holders write to, on a server of its own.
pub(crate) const DATA: &str = "data";

pub(crate) fn millis(millis: u64) -> Ttl {
    let millis = i64::try_from(millis).expect("a short time");
    Ttl::from_millis(millis).expect("a TTL")
}
