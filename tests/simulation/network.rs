//! The way between clients and servers: what becomes of each request, by the seed.

use tallylock_core::step::{Call, Outcome, Undelivered};

use crate::random::Random;

/// A connection of a client to a server. What goes over it arrives in order, and so do the replies; a lost one is
/// replaced, and what was on its way over it may arrive later than what goes over the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// When the last request arrives, and when the last reply does.
    last_request: u64,
    last_reply: u64,
    /// Which of the client's connections to this server it is.
    pub(crate) number: u32,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    /// When it is executed; nothing if it never is.
    pub(crate) arrives_at: Option<u64>,
    /// How long after that its reply is heard, in milliseconds; nothing if it never is.
    pub(crate) reply_takes: Option<u64>,
    /// When the client is told that the connection is lost.
    pub(crate) cut_at: Option<u64>,
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) call: Call,
    pub(crate) ticket: u64,
    pub(crate) connection: u32,
    pub(crate) reply_takes: Option<u64>,
}

impl Fate {
    /// Draws the fate of a request that is sent now; `ttl` is that of the lock.
    pub(crate) fn drawn(random: &mut Random, trouble: u64, ttl: u64, now: u64) -> Self {
        let (there, back) = (random.between(0, 2), random.between(0, 2));
        let good = Self {
            arrives_at: Some(now + there),
            reply_takes: Some(back),
            cut_at: None,
        };
        if !random.happens(trouble) {
            return good;
        }
        let slow = random.between(1, ttl);
        match random.between(0, 5) {
            // Slow on its way there, or back.
            0 => Self {
                arrives_at: Some(now + slow),
                ..good
            },
            1 => Self {
                reply_takes: Some(slow),
                ..good
            },
            // Silence: executed or not, nobody is told.
            2 => Self {
                arrives_at: random.happens(500).then_some(now + slow),
                reply_takes: None,
                ..good
            },
            // The connection is lost before it arrives, after that, or long before that.
            3 => Self {
                arrives_at: None,
                cut_at: Some(now + there),
                ..good
            },
            4 => Self {
                reply_takes: None,
                cut_at: Some(now + there + back),
                ..good
            },
            _ => Self {
                arrives_at: Some(now + 2 * slow),
                reply_takes: None,
                cut_at: Some(now + there),
            },
        }
    }
}

impl Connection {
    /// When a request arrives that could at this moment: not before the one before it.
    pub(crate) fn arrival(&mut self, at: u64) -> u64 {
        self.last_request = self.last_request.max(at);
        self.last_request
    }

    /// When a reply is heard that could be at this moment: not before the one before it.
    pub(crate) fn hearing(&mut self, at: u64) -> u64 {
        self.last_reply = self.last_reply.max(at);
        self.last_reply
    }

    /// Replaces it by a new one.
    pub(crate) fn replace(&mut self) {
        *self = Self {
            number: self.number + 1,
            ..Self::default()
        };
    }
}

pub(crate) fn not_sent() -> Outcome {
    Err(Undelivered::NotSent("the server is away".into()))
}

pub(crate) fn maybe_sent() -> Outcome {
    Err(Undelivered::MaybeSent("the connection was lost".into()))
}
