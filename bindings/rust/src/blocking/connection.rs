//! A connection on which requests are written and replies read by the calling thread.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::Duration;

use redis::{Parser, RedisError};
use tallylock_core::step::{Call, CallId, Outcome, Reply, Undelivered};
use tallylock_core::time::Instant;

use super::stream::Stream;
use crate::endpoint::Endpoint;
use crate::wire;

/// An open connection that has said who it is.
pub(super) struct Connection {
    stream: Stream,
    parser: Parser,
    packed: Vec<u8>,
    owed: VecDeque<Owed>,
}

/// The replies that a call is still owed: the server answers in the order of the requests.
struct Owed {
    call: CallId,
    missing: usize,
    replies: Vec<Reply>,
}

/// What there is to read.
pub(super) enum Received {
    Answer(CallId, Vec<Reply>),
    /// Nothing until the deadline.
    Silence,
    /// The connection is broken: nothing will be answered any more.
    Broken(String),
}

impl Connection {
    /// Connects and says hello, at the longest until this moment.
    pub(super) fn open(
        endpoint: &Endpoint,
        slice: Duration,
        until: Instant,
    ) -> Result<Self, Undelivered> {
        let stream = Stream::connect(&endpoint.address, slice, until)?;
        let mut connection = Self {
            stream,
            parser: Parser::new(),
            packed: Vec::new(),
            owed: VecDeque::new(),
        };
        let greetings = endpoint.greetings();
        for greeting in &greetings {
            greeting
                .command
                .write_packed_command(&mut connection.packed);
        }
        let not_sent = |why: String| {
            Undelivered::NotSent(format!("{} does not answer: {why}", endpoint.address))
        };
        connection
            .stream
            .write_all(&connection.packed, until)
            .map_err(|error| not_sent(error.to_string()))?;
        for greeting in &greetings {
            greeting.accept(
                &connection
                    .read(until)
                    .map_err(|error| not_sent(error.to_string()))?,
            )?;
        }
        Ok(connection)
    }

    /// Whether nothing is owed and the other side is there, as far as can be told without asking it.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_settled() && self.stream.is_quiet()
    }

    /// Whether nothing is owed.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty()
    }

    /// Writes a call, at the longest until this moment.
    ///
    /// A server executes no command that it has not received to its last byte: where this fails, nothing was executed of
    /// a call that is one command. The connection must not be used again then.
    pub(super) fn send(&mut self, call: &Call, until: Instant) -> Result<(), Undelivered> {
        self.packed.clear();
        for command in &call.commands {
            wire::pack(command).write_packed_command(&mut self.packed);
        }
        self.stream
            .write_all(&self.packed, until)
            .map_err(|error| {
                let why = format!("the request could not be written: {error}");
                if call.commands.len() == 1 {
                    Undelivered::NotSent(why)
                } else {
                    Undelivered::MaybeSent(why)
                }
            })?;
        let missing = call.commands.len();
        self.owed.push_back(Owed {
            call: call.id,
            missing,
            replies: Vec::with_capacity(missing),
        });
        Ok(())
    }

    /// Reads the replies to the call that was sent first, at the longest until this moment.
    pub(super) fn receive(&mut self, until: Instant) -> Received {
        loop {
            let Some(owed) = self.owed.front_mut() else {
                return Received::Silence;
            };
            if owed.missing == 0 {
                let answer = Received::Answer(owed.call, std::mem::take(&mut owed.replies));
                self.owed.pop_front();
                return answer;
            }
            match self.read(until) {
                Ok(reply) => {
                    if let Some(owed) = self.owed.front_mut() {
                        owed.replies.push(reply);
                        owed.missing -= 1;
                    }
                }
                Err(error) if error.is_timeout() => {
                    return Received::Silence;
                }
                Err(error) => return Received::Broken(error.to_string()),
            }
        }
    }

    /// The calls that will never be answered if the connection ends now.
    pub(super) fn into_unanswered(self, why: &str) -> impl Iterator<Item = (CallId, Outcome)> {
        let why = format!("the connection was lost: {why}");
        self.owed
            .into_iter()
            .map(move |owed| (owed.call, Err(Undelivered::MaybeSent(why.clone()))))
    }

    fn read(&mut self, until: Instant) -> Result<Reply, RedisError> {
        self.parser
            .parse_value(Until {
                stream: &mut self.stream,
                until,
            })
            .map(wire::reply)
    }
}

/// A stream as redis-rs's parser reads it; what it has read of a reply is kept when the deadline cuts it short.
struct Until<'a> {
    stream: &'a mut Stream,
    until: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer, self.until)
    }
}
