//! A connection on which requests are written and replies read by the calling thread.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::time::Duration;

use redis::{Cmd, Parser, RedisError};
use tallylock_core::step::{Call, CallId, Command, Outcome, Reply, Undelivered};
use tallylock_core::time::Instant;

use super::deadline::Deadline;
use super::stream::Stream;
use crate::endpoint::Endpoint;
use crate::wire;

/// An open connection that has said who it is.
pub(super) struct Connection {
    stream: Stream,
    parser: Parser,
    /// Kept for their allocations.
    command: Cmd,
    packed: Vec<u8>,
    owed: VecDeque<Owed>,
    process: u32,
    used_at: Instant,
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
    /// Connects and says hello before the deadline, for this process.
    pub(super) fn open(
        endpoint: &Endpoint,
        process: u32,
        slice: Duration,
        deadline: &mut Deadline,
    ) -> Result<Self, Undelivered> {
        let stream = Stream::connect(&endpoint.address, slice, deadline)?;
        let mut connection = Self {
            stream,
            parser: Parser::new(),
            command: Cmd::new(),
            packed: Vec::new(),
            owed: VecDeque::new(),
            process,
            used_at: deadline.now(),
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
        let written = connection.stream.write_all(&connection.packed, deadline);
        written.map_err(|error| not_sent(error.to_string()))?;
        for greeting in &greetings {
            let reply = connection
                .read(deadline)
                .map_err(|error| not_sent(error.to_string()))?;
            greeting.accept(&reply)?;
        }
        Ok(connection)
    }

    /// The process that opened it.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// When it was last used, or a little earlier.
    pub(super) fn used_at(&self) -> Instant {
        self.used_at
    }

    /// Whether nothing is owed and the other side is there, as far as can be told without asking it.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_settled() && self.stream.is_quiet()
    }

    /// Whether nothing is owed.
    pub(super) fn is_settled(&self) -> bool {
        self.owed.is_empty()
    }

    /// Writes a call before the deadline.
    ///
    /// A server executes no command that it has not received to its last byte: where this fails, nothing was executed of
    /// a call that is one command. The connection must not be used again then.
    pub(super) fn send(&mut self, call: &Call, deadline: &mut Deadline) -> Result<(), Undelivered> {
        self.write(&call.commands, deadline)?;
        let missing = call.commands.len();
        self.owed.push_back(Owed {
            call: call.id,
            missing,
            replies: Vec::with_capacity(missing),
        });
        Ok(())
    }

    /// Writes commands whose replies the caller [reads](Self::read) itself; fails as [`send`](Self::send) does.
    pub(super) fn write(
        &mut self,
        commands: &[Command],
        deadline: &mut Deadline,
    ) -> Result<(), Undelivered> {
        self.packed.clear();
        for command in commands {
            self.command.clear();
            wire::pack(command, &mut self.command);
            self.command.write_packed_command(&mut self.packed);
        }
        self.stream
            .write_all(&self.packed, deadline)
            .map_err(|error| {
                let why = format!("the request could not be written: {error}");
                if commands.len() == 1 {
                    Undelivered::NotSent(why)
                } else {
                    Undelivered::MaybeSent(why)
                }
            })
    }

    /// Reads the replies to the call that was sent first, waiting for them until the deadline.
    pub(super) fn receive(&mut self, deadline: &mut Deadline) -> Received {
        self.used_at = deadline.now();
        loop {
            let Some(owed) = self.owed.front_mut() else {
                return Received::Silence;
            };
            if owed.missing == 0 {
                let answer = Received::Answer(owed.call, std::mem::take(&mut owed.replies));
                self.owed.pop_front();
                return answer;
            }
            match self.read(deadline) {
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

    /// Reads one reply, waiting for it until the deadline.
    pub(super) fn read(&mut self, deadline: &mut Deadline) -> Result<Reply, RedisError> {
        let stream = &mut self.stream;
        self.parser
            .parse_value(Until {
                stream,
                deadline,
                has_read: false,
            })
            .map(wire::reply)
    }
}

/// A stream as redis-rs's parser reads it; what it has read of a reply is kept when the deadline cuts it short.
struct Until<'a> {
    stream: &'a mut Stream,
    deadline: &'a mut Deadline,
    /// Something was read, so time has passed.
    has_read: bool,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_read {
            self.deadline.refresh();
        }
        self.has_read = true;
        self.stream.read(buffer, self.deadline)
    }
}
