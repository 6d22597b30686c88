//! Where servers are, and the connections to them.

use std::sync::Arc;

use tallylock_core::time::Ttl;
use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::connections::Connections;
use crate::endpoint::{Endpoint, Target};
use crate::memory::Server;

/// Where a server is.
#[derive(Clone)]
pub(crate) enum Site {
    Server(Endpoint),
    Memory(Arc<Server>),
}

/// A server with the connections to it, which are opened when they are needed.
pub(crate) enum Node {
    Server(Arc<Connections>),
    Memory(Arc<Server>),
}

/// What an asynchronous client talks to.
pub(crate) enum Place {
    One(Node),
    /// Independent ones, for locks alone.
    Several(Vec<Node>),
}

impl Site {
    /// What a URL points to.
    pub(crate) fn of(target: Target) -> Self {
        match target {
            Target::Memory { name } => Self::Memory(Server::open(name.as_deref())),
            Target::Server(endpoint) => Self::Server(endpoint),
        }
    }

    /// What leases there run by.
    pub(crate) fn clock(&self) -> Clock {
        match self {
            Self::Server(_) => Clock::Machine,
            Self::Memory(server) => Clock::Virtual(Arc::clone(server)),
        }
    }

    /// The same server, to be connected to on this runtime, each time within `timeout`.
    pub(crate) fn node(&self, timeout: Ttl, runtime: &Handle) -> Node {
        match self {
            Self::Server(endpoint) => {
                let connections = Connections::new(endpoint.clone(), timeout, runtime.clone());
                Node::Server(Arc::new(connections))
            }
            Self::Memory(server) => Node::Memory(Arc::clone(server)),
        }
    }
}

impl Place {
    /// Closes the connections, each when the last operation on it is over.
    pub(crate) fn clear(&self) {
        let nodes = match self {
            Self::One(node) => std::slice::from_ref(node),
            Self::Several(nodes) => nodes,
        };
        for node in nodes {
            if let Node::Server(connections) = node {
                connections.clear();
            }
        }
    }
}
