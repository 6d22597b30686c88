//! A connection for commands that are none of tallylock's verbs.

use std::fmt;
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::step::{Command, Reply, Undelivered};
use tallylock_core::time::Ttl;

use super::connection::Connection;
use super::deadline::Deadline;
use crate::backend::connect_error;
use crate::endpoint::Target;
use crate::{Options, clock};

/// A connection of its own for what is no business of a [`Client`](super::Client): INFO, CONFIG GET, MONITOR.
///
/// It is made as a client makes its own, with the same TLS, account and database. Nothing is ever sent twice; after a
/// failure other than a refusal it is closed.
pub struct PlainConnection {
    connection: Option<Connection>,
    timeout: Ttl,
}

impl PlainConnection {
    /// Connects with these options.
    ///
    /// # Errors
    /// Those of [`Client::connect_with`](super::Client::connect_with), and `unsupported` for `memory://`, which has no
    /// connections.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let Target::Server(endpoint) = &options.target else {
            return Err(Error::new(
                Code::Unsupported,
                "memory:// has no connections: it is a server inside one process",
            ));
        };
        let timeout = options.settings.timeout;
        let mut deadline = Deadline::new(clock::now().plus(timeout.as_millis()));
        let slice = Duration::from_millis((timeout.as_millis() / 4).max(1));
        let connection = Connection::open(endpoint, std::process::id(), slice, &mut deadline)
            .map_err(connect_error)?;
        Ok(Self {
            connection: Some(connection),
            timeout,
        })
    }

    /// Sends one command and gives its reply, waiting for it as long as a call may take.
    ///
    /// # Errors
    /// That of the server's refusal (`forbidden` for one that the account may not call), and those of
    /// [`ask_all`](Self::ask_all).
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Reply, Error> {
        match self.ask_all([words])?.swap_remove(0) {
            Reply::Error(text) => Err(Error::from_reply(&text)),
            reply => Ok(reply),
        }
    }

    /// Sends commands in one write and gives their replies, a refusal of one among them.
    ///
    /// # Errors
    /// `unavailable` if they cannot have arrived, `outcome_unknown` if the replies are lost, `closed` after such a failure.
    pub fn ask_all<W: AsRef<[u8]>, C: AsRef<[W]>>(
        &mut self,
        commands: impl IntoIterator<Item = C>,
    ) -> Result<Vec<Reply>, Error> {
        let commands: Vec<Command> = commands
            .into_iter()
            .map(|words| words.as_ref().iter().map(owned).collect())
            .collect();
        let mut deadline = Deadline::new(clock::now().plus(self.timeout.as_millis()));
        let mut connection = self.take()?;
        connection
            .write(&commands, &mut deadline)
            .map_err(|undelivered| match undelivered {
                Undelivered::MaybeSent(why) => Error::new(Code::OutcomeUnknown, why),
                other => connect_error(other),
            })?;
        let mut replies = Vec::with_capacity(commands.len());
        for _ in &commands {
            let reply = connection.read(&mut deadline).map_err(|error| {
                Error::new(Code::OutcomeUnknown, format!("the reply is lost: {error}"))
            })?;
            replies.push(reply);
        }
        self.connection = Some(connection);
        Ok(replies)
    }

    /// Waits for what the server sends unasked, after MONITOR or SUBSCRIBE; gives nothing if that is nothing for so long.
    ///
    /// # Errors
    /// `unavailable` if the connection ends, `closed` after such a failure, `invalid_argument` if the patience is not
    /// within 1 ms and 10 years.
    pub fn listen(&mut self, patience: Duration) -> Result<Option<Reply>, Error> {
        let patience = Ttl::from_duration(patience)?;
        let mut deadline = Deadline::new(clock::now().plus(patience.as_millis()));
        let mut connection = self.take()?;
        let heard = match connection.read(&mut deadline) {
            Ok(reply) => Some(reply),
            Err(error) if error.is_timeout() => None,
            Err(error) => {
                let why = format!("the connection was lost: {error}");
                return Err(Error::new(Code::Unavailable, why));
            }
        };
        self.connection = Some(connection);
        Ok(heard)
    }

    fn take(&mut self) -> Result<Connection, Error> {
        self.connection
            .take()
            .ok_or_else(|| Error::new(Code::Closed, "the connection failed before"))
    }
}

impl fmt::Debug for PlainConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainConnection").finish_non_exhaustive()
    }
}

fn owned<W: AsRef<[u8]>>(word: &W) -> std::borrow::Cow<'static, [u8]> {
    word.as_ref().to_vec().into()
}
