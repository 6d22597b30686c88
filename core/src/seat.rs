//! A node among those that an operation talks to, as seen by one round after the other.

use crate::settings::{Nodes, Scripts};
use crate::step::{CallId, Node};

/// Where a round's calls go, how they are named, and how they are made atomic there.
///
/// Each node has call ids of its own, so that an answer is known by its id alone: the ids of the n-th of N nodes are those
/// that leave n when they are divided by N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Seat {
    node: Node,
    of: u16,
    turn: u32,
    /// What the node was found to allow.
    pub(crate) scripts: Scripts,
}

impl Seat {
    /// The seat of the one server of an operation that has one.
    pub(crate) const fn only(scripts: Scripts) -> Self {
        Self {
            node: Node::ONLY,
            of: 1,
            turn: 0,
            scripts,
        }
    }

    /// The seats of all nodes.
    pub(crate) fn all(nodes: Nodes, scripts: Scripts) -> Vec<Self> {
        let of = nodes.count();
        let seat = |node| Self {
            node: Node(node),
            of,
            turn: 0,
            scripts,
        };
        (0..of).map(seat).collect()
    }

    pub(crate) const fn node(self) -> Node {
        self.node
    }

    /// Whether a quorum may do without it.
    pub(crate) const fn is_one_of_several(self) -> bool {
        cfg!(feature = "nodes") && self.of > 1
    }

    /// The id of its call.
    pub(crate) fn call(self) -> CallId {
        self.of_turn(self.turn)
    }

    /// The id of the call before.
    pub(crate) fn previous(self) -> CallId {
        self.of_turn(self.turn - 1)
    }

    /// The same seat for the next call.
    #[must_use]
    pub(crate) const fn next(self) -> Self {
        Self {
            turn: self.turn + 1,
            ..self
        }
    }

    /// Whether a call of this id went to this node.
    pub(crate) fn is_asked_by(self, call: CallId) -> bool {
        !cfg!(feature = "nodes") || call.0 % u32::from(self.of) == u32::from(self.node.0)
    }

    fn of_turn(self, turn: u32) -> CallId {
        if cfg!(feature = "nodes") {
            CallId(turn * u32::from(self.of) + u32::from(self.node.0))
        } else {
            CallId(turn)
        }
    }
}
