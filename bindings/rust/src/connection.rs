//! A connection that many operations use at the same time.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisResult, Value};
use tallylock_core::step::{Call, Outcome, Reply, Undelivered};
use tokio::task::JoinHandle;

use crate::dial::{Stream, dial};
use crate::endpoint::Endpoint;
use crate::socket::{Look, TRUSTED_FOR, look};
use crate::{clock, wire};

/// An open connection that has said who it is. It ends with this value.
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    driver: JoinHandle<()>,
    /// The same socket, to look at; only the driver reads from it.
    view: OwnedFd,
    /// A call was given up, and nothing was answered since.
    silent: AtomicBool,
    used_at: AtomicU64,
}

impl Connection {
    /// Connects and says hello. Has no deadline of its own.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, Undelivered> {
        let address = &endpoint.address;
        let (stream, view) = dial(address).await?;
        let unanswered = |error: redis::RedisError| {
            Undelivered::NotSent(format!("{address} does not answer: {error}"))
        };
        let connection = Self::over(stream, view).await.map_err(unanswered)?;
        let greetings = endpoint.greetings();
        let commands = greetings
            .iter()
            .map(|greeting| greeting.command.clone())
            .collect();
        let replies = connection.exchange(commands).await.map_err(unanswered)?;
        for (greeting, reply) in greetings.iter().zip(replies) {
            greeting.accept(&wire::reply(reply))?;
        }
        Ok(connection)
    }

    async fn over(stream: Stream, view: OwnedFd) -> RedisResult<Self> {
        // What it says about itself is our handshake's business, and how long it waits our operations'.
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (redis, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
        Ok(Self {
            redis,
            driver: tokio::spawn(driver),
            view,
            silent: AtomicBool::new(false),
            used_at: AtomicU64::new(clock::now().as_millis()),
        })
    }

    /// Whether a new operation may begin on it.
    pub(crate) fn is_good(&self) -> bool {
        !self.driver.is_finished()
            && !self.silent.load(Ordering::Relaxed)
            && !self.was_closed_idle()
    }

    /// Whether the other side has closed it while it was not used: the runtime may not have noticed yet.
    fn was_closed_idle(&self) -> bool {
        let idle = clock::now()
            .as_millis()
            .saturating_sub(self.used_at.load(Ordering::Relaxed));
        idle >= TRUSTED_FOR && look(&self.view) == Look::Closed
    }

    /// Takes note that a call is waited for no longer: new operations keep away until something is answered.
    pub(crate) fn mark_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Sends a call and gives its outcome. Calls go out in the order in which these futures are first polled.
    pub(crate) async fn send(&self, call: &Call) -> Outcome {
        if self.driver.is_finished() {
            return Err(Undelivered::NotSent("the connection was lost".into()));
        }
        let mut waiting = Waiting {
            connection: self,
            answered: false,
        };
        let commands = call.commands.iter().map(wire::command).collect();
        let result = self.exchange(commands).await;
        waiting.answered = true;
        self.used_at
            .store(clock::now().as_millis(), Ordering::Relaxed);
        match result {
            Ok(values) => {
                self.silent.store(false, Ordering::Relaxed);
                Ok(values.into_iter().map(wire::reply).collect::<Vec<Reply>>())
            }
            // redis-rs does not tell whether it had begun to write.
            Err(error) => Err(Undelivered::MaybeSent(format!(
                "the connection was lost: {error}"
            ))),
        }
    }

    async fn exchange(&self, mut commands: Vec<Cmd>) -> RedisResult<Vec<Value>> {
        let mut redis = self.redis.clone();
        if commands.len() == 1 {
            return Ok(vec![redis.send_packed_command(&commands.remove(0)).await?]);
        }
        let count = commands.len();
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        redis.send_packed_commands(&pipeline, 0, count).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // It would otherwise wait for replies that may never come.
        self.driver.abort();
    }
}

/// A call that was sent: one that is given up unanswered makes its connection suspect.
struct Waiting<'a> {
    connection: &'a Connection,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.connection.mark_silent();
        }
    }
}
