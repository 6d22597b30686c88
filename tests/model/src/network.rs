//! The way between a client and a node.

use std::collections::VecDeque;

use tallylock_core::step::{Call, CallId, Outcome};

use crate::shared::Shared;

/// A connection: in each direction, what was sent first comes first.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Line {
    requests: VecDeque<Shared<Request>>,
    replies: VecDeque<Shared<Reply>>,
    /// Time may pass while something is on its way; until nothing is.
    is_slow: bool,
}

/// A request on its way, and in which of the client's operations it was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Request {
    pub(crate) operation: u8,
    pub(crate) call: Call,
}

/// A reply on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reply {
    pub(crate) operation: u8,
    pub(crate) call: CallId,
    pub(crate) outcome: Outcome,
}

impl Line {
    pub(crate) fn send(&mut self, request: Shared<Request>) {
        self.requests.push_back(request);
    }

    pub(crate) fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(crate) fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Whether something is on its way for which time has to wait.
    pub(crate) fn is_prompt(&self) -> bool {
        !self.is_slow && (self.has_request() || self.has_reply())
    }

    pub(crate) fn slow_down(&mut self) {
        self.is_slow = true;
    }

    /// The next request, at its node.
    pub(crate) fn arrive(&mut self) -> Option<Shared<Request>> {
        let request = self.requests.pop_front();
        self.rest();
        request
    }

    pub(crate) fn answer(&mut self, reply: Shared<Reply>) {
        self.replies.push_back(reply);
    }

    /// The next reply, at its client.
    pub(crate) fn hear(&mut self) -> Option<Shared<Reply>> {
        let reply = self.replies.pop_front();
        self.rest();
        reply
    }

    /// Nobody waits for replies to earlier operations any more; their requests are on their way all the same.
    pub(crate) fn forget_before(&mut self, operation: u8) {
        self.replies.retain(|reply| reply.operation >= operation);
        self.rest();
    }

    /// The connection is lost: gives the requests that may arrive yet, and those for which the client gets no reply.
    pub(crate) fn cut(&mut self) -> (Vec<Shared<Request>>, Vec<(u8, CallId)>) {
        let lost = std::mem::take(self);
        let replies = lost.replies.iter();
        let unheard = replies.map(|reply| (reply.operation, reply.call));
        let requests = lost.requests.iter();
        let unheard = unheard.chain(requests.map(|request| (request.operation, request.call.id)));
        let unheard = unheard.collect();
        (lost.requests.into(), unheard)
    }

    fn rest(&mut self) {
        self.is_slow &= self.has_request() || self.has_reply();
    }
}
