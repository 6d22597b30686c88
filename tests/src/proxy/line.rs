//! One connection through the proxy: what it waits for and what is ready to pass.

use std::collections::{BTreeSet, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::trap::Fate;
use super::wire::{Reply, Request};

/// The bookkeeping of one connection; its three threads share it under the proxy's lock.
#[derive(Debug)]
pub(super) struct Line {
    client: TcpStream,
    server: TcpStream,
    asked: VecDeque<Asked>,
    ready: VecDeque<Ready>,
    channels: BTreeSet<(String, Vec<u8>)>,
    /// The client has seen the end of the replies.
    has_ended_replies: bool,
}

/// A request that the server still has to answer.
#[derive(Debug)]
struct Asked {
    fate: Fate,
    not_before: Instant,
    replies: usize,
}

/// A reply on its way to the client.
#[derive(Debug)]
pub(super) struct Ready {
    bytes: Vec<u8>,
    pub(super) fate: Fate,
    pub(super) not_before: Instant,
    /// Its bytes are being written to the client, who may have them already.
    is_passing: bool,
}

impl Ready {
    /// The bytes, which go to the client now: nothing holds them any more.
    pub(super) fn pass(&mut self) -> Vec<u8> {
        self.is_passing = true;
        self.bytes.clone()
    }
}

impl Line {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Self {
        Self {
            client,
            server,
            asked: VecDeque::new(),
            ready: VecDeque::new(),
            channels: BTreeSet::new(),
            has_ended_replies: false,
        }
    }

    /// Notes a request that goes to the server now.
    pub(super) fn ask(&mut self, request: &Request, fate: Fate, delay: Duration) {
        let replies = self.replies_to(request);
        let not_before = Instant::now() + delay;
        self.asked.push_back(Asked {
            fate,
            not_before,
            replies,
        });
    }

    /// Notes a value that came from the server. False if nobody had asked for it.
    pub(super) fn answer(&mut self, reply: Reply) -> bool {
        let (fate, not_before) = if reply.is_unasked(!self.channels.is_empty()) {
            (Fate::Pass, Instant::now())
        } else {
            let Some(asked) = self.asked.front_mut() else {
                return false;
            };
            asked.replies -= 1;
            let found = (asked.fate, asked.not_before);
            if asked.replies == 0 {
                self.asked.pop_front();
            }
            found
        };
        self.ready.push_back(Ready {
            bytes: reply.bytes,
            fate,
            not_before,
            is_passing: false,
        });
        true
    }

    pub(super) fn next_ready(&mut self) -> Option<&mut Ready> {
        self.ready.front_mut()
    }

    /// Notes that the first ready reply is with the client.
    pub(super) fn take_ready(&mut self) {
        self.ready.pop_front();
    }

    /// Whether every request has its reply on the way to the client.
    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.ready.is_empty()
    }

    /// How many replies wait for `go`: all of them, or the held ones and those behind them.
    pub(super) fn held(&self, all: bool) -> usize {
        let waiting = self.ready.iter().filter(|ready| !ready.is_passing);
        waiting
            .skip_while(|ready| !all && ready.fate != Fate::HoldReply)
            .count()
    }

    pub(super) fn release_held(&mut self) {
        let asked = self.asked.iter_mut().map(|asked| &mut asked.fate);
        let ready = self.ready.iter_mut().map(|ready| &mut ready.fate);
        for fate in asked.chain(ready).filter(|fate| **fate == Fate::HoldReply) {
            *fate = Fate::Pass;
        }
    }

    /// Ends what the client reads; what it writes still reaches the server.
    pub(super) fn end_replies(&mut self) {
        self.has_ended_replies = true;
        // The client may have closed already, and that is as good.
        let _ = self.client.shutdown(Shutdown::Write);
    }

    pub(super) fn has_ended_replies(&self) -> bool {
        self.has_ended_replies
    }

    /// Ends the connection on both sides; what is ready no longer passes.
    pub(super) fn cut(self) {
        // The peer may have closed already, and that is as good.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// How many values the server answers to it: one, but one for each channel of a subscription.
    fn replies_to(&mut self, request: &Request) -> usize {
        let command = request.command();
        let Some((prefix, subscribes)) = subscription(&command) else {
            return 1;
        };
        let names = request.arguments();
        if subscribes {
            let channels = names.iter().map(|name| (prefix.to_owned(), name.clone()));
            self.channels.extend(channels);
            return names.len().max(1);
        }
        let before = self.channels.len();
        if names.is_empty() {
            self.channels.retain(|(kind, _)| kind != prefix);
            return (before - self.channels.len()).max(1);
        }
        for name in names {
            self.channels.remove(&(prefix.to_owned(), name.clone()));
        }
        names.len()
    }
}

/// Splits `PSUBSCRIBE` into (`P`, true) and `UNSUBSCRIBE` into (empty, false).
fn subscription(command: &str) -> Option<(&str, bool)> {
    let kind = command.strip_suffix("SUBSCRIBE")?;
    match kind.strip_suffix("UN") {
        Some(prefix) => Some((prefix, false)),
        None => Some((kind, true)),
    }
}
