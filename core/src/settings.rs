//! What a client can be set to, with the one set of defaults that all languages share.

#[cfg(feature = "nodes")]
use crate::error::{Code, Error};
use crate::time::{Instant, Ttl, Wait};
use crate::token::Label;

/// How a client's operations behave.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// How long one call may take, repeats included. Default 2 s. An acquire that waits has its own deadline instead.
    pub timeout: Ttl,
    /// What the tokens of this client's locks carry for people who read them. Default none; clients set host and pid.
    pub label: Option<Label>,
    /// Whether scripts are tried at all. Default yes.
    pub scripts: Scripts,
    /// On how many independent nodes each lock is. Default one; the others are for locks alone.
    pub nodes: Nodes,
    /// How long one of several nodes is waited for where a quorum may do without it. Default a twentieth of the lock's
    /// TTL, at least 25 ms and at most 500 ms.
    pub node_timeout: Option<Ttl>,
    /// Whether a node that has lost a lock is given it again, with its fence, by the next extend that a quorum has granted.
    /// Default no. It is for nodes that keep the rule of the delayed restart: one that came back without its data stays away
    /// until every lease that it may have granted is over.
    pub rejoin: bool,
}

/// A number of independent nodes, of which more than half decide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nodes(u16);

/// How the steps of an operation are made atomic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scripts {
    /// By scripts; where the server or the account forbids them, by WATCH, MULTI and EXEC.
    #[default]
    Tried,
    /// By WATCH, MULTI and EXEC from the beginning.
    Avoided,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Ttl::known(2_000),
            label: None,
            scripts: Scripts::Tried,
            nodes: Nodes::ONE,
            node_timeout: None,
            rejoin: false,
        }
    }
}

impl Settings {
    /// How long an acquire goes on: as long as the caller wants to wait, or one call if not at all, in milliseconds.
    pub fn patience(&self, wait: Wait) -> u64 {
        if wait == Wait::NONE {
            self.timeout.as_millis()
        } else {
            wait.as_millis()
        }
    }

    /// Until when a node is waited for from `now` on that a quorum may do without, for a lock of this TTL in milliseconds.
    /// Nothing is done without the only one: it is waited for as long as there is time.
    pub(crate) fn node_deadline(&self, ttl: u64, now: Instant) -> Instant {
        if self.nodes.is_one() {
            return Instant::LAST;
        }
        let timeout = self.node_timeout.map(Ttl::as_millis);
        now.plus(timeout.unwrap_or_else(|| (ttl / 20).clamp(25, 500)))
    }
}

impl Nodes {
    /// One node, which decides alone.
    pub const ONE: Self = Self(1);

    /// The most nodes that a lock can be on.
    pub const MOST: usize = 99;

    /// So many nodes; `invalid_argument` unless they are an odd number from 3 to 99. An even number costs a node more and
    /// stands no more failures.
    #[cfg(feature = "nodes")]
    pub fn new(count: usize) -> Result<Self, Error> {
        match u16::try_from(count) {
            Ok(nodes) if (3..=Self::MOST).contains(&count) && count % 2 == 1 => Ok(Self(nodes)),
            _ => Err(Error::new(
                Code::InvalidArgument,
                format!(
                    "a lock over independent nodes needs an odd number of them, 3 to {}, not {count}",
                    Self::MOST
                ),
            )),
        }
    }

    /// How many they are.
    pub const fn count(self) -> u16 {
        if self.is_one() { 1 } else { self.0 }
    }

    /// Whether there is one, as there always is without the feature `nodes`: what is for several only is then left out.
    pub(crate) const fn is_one(self) -> bool {
        !cfg!(feature = "nodes") || self.0 == 1
    }
}

/// The first pause before something is tried again, in milliseconds; each further pause is twice as long.
pub(crate) const FIRST_PAUSE: u64 = 16;

/// The longest pause before something is tried again, in milliseconds.
pub(crate) const LONGEST_PAUSE: u64 = 256;

/// How long a waiter who has just come forward lets other clients go first, in milliseconds, at the longest: each time that one of
/// them was first it waits less.
pub(crate) const LONGEST_YIELD: u64 = 16;

/// The longest time after which a waiter who is told of releases looks by itself, in milliseconds: one may not have been told.
pub(crate) const LONGEST_WITHOUT_A_LOOK: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_an_odd_number() {
        for count in [3, 5, 99] {
            assert_eq!(usize::from(Nodes::new(count).unwrap().count()), count);
        }
        for bad in [0, 1, 2, 4, 100, 101, 65_537] {
            assert_eq!(Nodes::new(bad).unwrap_err().code(), Code::InvalidArgument);
        }
    }

    #[test]
    fn a_node_among_several_is_waited_for_a_small_part_of_the_ttl() {
        let until = |settings: &Settings, ttl| {
            let now = Instant::from_millis(7);
            settings.node_deadline(ttl, now).since(now)
        };
        let one = Settings::default();
        assert!(until(&one, 30_000) > crate::time::LONGEST);
        let three = Settings {
            nodes: Nodes::new(3).unwrap(),
            ..Settings::default()
        };
        for (ttl, wanted) in [(100, 25), (4_000, 200), (30_000, 500)] {
            assert_eq!(until(&three, ttl), wanted);
        }
        let set = Settings {
            node_timeout: Some(Ttl::known(70)),
            ..three
        };
        assert_eq!(until(&set, 30_000), 70);
    }
}
