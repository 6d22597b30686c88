//! The vocabulary: what an operation is told, and what it answers.

use core::fmt::Debug;
use core::hash::Hash;
use std::borrow::Cow;

use crate::time::Instant;

/// A protocol step machine as plain data: it is told what happened and says what to do next.
///
/// Being `Clone`, `Eq` and `Hash`, the value that ships is also the value that a model checker enumerates.
pub trait Operation: Clone + Eq + Hash + Debug {
    /// What the operation ends with.
    type Output;

    /// Takes in what happened at `now` and says what to do next. Not called again after `Done`.
    fn handle(&mut self, now: Instant, event: Event) -> Step<Self::Output>;

    /// Whether a server has refused scripts, so that the client can begin its next operations without them.
    fn met_refusal_of_scripts(&self) -> bool;
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A call was answered, or it is known that it will not be.
    Replied {
        /// Which call.
        call: CallId,
        /// One reply a command, or why there are none.
        outcome: Outcome,
    },
    /// Something was said about what the operation waits for. It may come for no reason.
    Notified(Notice),
    /// Time has passed. It may come early or for no reason: operations look at `now`.
    Woke,
    /// The caller wants no more of this; the operation undoes what it did.
    Stop,
}

/// What is said about what an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Notice {
    /// It may have happened, and the next time will be told too.
    Heard,
    /// The same, and others want it as well, who are to have it first if they have waited longer.
    Contended,
    /// It may have happened, and the next time will not be told: the operation has to look by itself.
    Deaf,
    /// It has happened to another who waited before this one, who is told from now on.
    Forward,
}

/// The replies to a call, one a command, or why there are none.
pub type Outcome = Result<Vec<Reply>, Undelivered>;

/// What to send now, and what then.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub struct Step<T> {
    /// Calls to send, in this order.
    pub calls: Vec<Call>,
    /// Whether to wait or to stop.
    pub next: Next<T>,
}

/// Whether an operation goes on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Next<T> {
    /// Wait for an event, at the longest until this moment.
    WaitUntil(Instant),
    /// Over, with this output.
    Done(T),
}

impl<T> Step<T> {
    /// Nothing to send; wait.
    pub const fn wait(until: Instant) -> Self {
        Self {
            calls: Vec::new(),
            next: Next::WaitUntil(until),
        }
    }

    /// One call to send; then wait.
    pub fn send(call: Call, until: Instant) -> Self {
        Self {
            calls: vec![call],
            next: Next::WaitUntil(until),
        }
    }

    /// Over.
    pub const fn done(output: T) -> Self {
        Self {
            calls: Vec::new(),
            next: Next::Done(output),
        }
    }
}

/// Names a call within its operation, so that a late reply is known as such.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u32);

/// Names a server among those that an operation talks to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(pub u16);

impl Node {
    /// The one server of an operation that has one.
    pub const ONLY: Self = Self(0);
}

/// Commands to send to a node in one write.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    /// Its name within the operation.
    pub id: CallId,
    /// Where to.
    pub node: Node,
    /// On which connection.
    pub lane: Lane,
    /// What.
    pub commands: Vec<Command>,
}

/// A connection to a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// One that others may use at the same time: calls are answered in the order in which they went out.
    Shared,
    /// One that nobody else uses while the operation lasts. Calls of the same number go over the same connection, or
    /// are not sent: what a connection remembers (WATCH) is gone with it.
    Own(u32),
}

/// One command: its name and its arguments.
pub type Command = Vec<Argument>;

/// A word of a command: static where it is part of the protocol, owned where it is data.
pub type Argument = Cow<'static, [u8]>;

/// What a server answered to one command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// Nothing there.
    Nil,
    /// A text of any bytes.
    Text(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// Several replies.
    Array(Vec<Reply>),
    /// A refusal, in the server's words.
    Error(String),
}

/// Why a call has no replies.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Undelivered {
    /// The server cannot have seen it, for this reason.
    NotSent(String),
    /// The server may have executed it, and the reply is lost for this reason.
    MaybeSent(String),
    /// The server refuses the connection as such (authentication, TLS, database): asking again is of no use.
    Refused(crate::error::Error),
}
