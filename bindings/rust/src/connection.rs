//! A connection that many operations use at the same time.

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisResult, Value};
use tallylock_core::step::{Call, Outcome, Reply, Undelivered};
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, unconstrained};

use crate::dial::{Stream, dial};
use crate::endpoint::Endpoint;
use crate::socket::{Look, TRUSTED_FOR, look};
use crate::{clock, wire};

/// What comes of a call that has its place already.
pub(crate) type Sending = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An open connection that has said who it is. It ends with this value.
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    driver: AbortHandle,
    /// Closed once the driver is gone, and with it all that it had taken up.
    driven: watch::Sender<()>,
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
        let unanswered =
            |why: String| Undelivered::NotSent(format!("{address} does not answer: {why}"));
        let connection = Self::over(stream, view)
            .await
            .map_err(|error| unanswered(error.to_string()))?;
        let greetings = endpoint.greetings();
        let commands = greetings
            .iter()
            .map(|greeting| greeting.command.clone())
            .collect();
        let replies = connection
            .exchange(commands)
            .await
            .map_err(|Lost { why, .. }| unanswered(why))?;
        for (greeting, reply) in greetings.iter().zip(replies) {
            greeting.accept(&wire::reply(reply))?;
        }
        Ok(connection)
    }

    async fn over(stream: Stream, view: OwnedFd) -> RedisResult<Self> {
        // What it says about itself is our handshake's business, and how long it waits our operations'.
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        // And a call that waits for room in the queue has no place in it yet.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(Semaphore::MAX_PERMITS);
        let (redis, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
        Ok(Self::driven(redis, driver, view))
    }

    fn driven(
        redis: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        view: OwnedFd,
    ) -> Self {
        let (kept, until_then) = watch::channel(());
        let task = tokio::spawn(async move {
            // Dropped last, however the driver ends.
            let _until_then = until_then;
            driver.await;
        });
        Self {
            redis,
            driver: task.abort_handle(),
            driven: kept,
            view,
            silent: AtomicBool::new(false),
            used_at: AtomicU64::new(clock::now().as_millis()),
        }
    }

    /// Whether a new operation may begin on it.
    pub(crate) fn is_good(&self) -> bool {
        !self.driven.is_closed() && !self.silent.load(Ordering::Relaxed) && !self.was_closed_idle()
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

    /// Gives a call its place behind those that were sent before.
    pub(crate) fn begin(self: &Arc<Self>, call: Call) -> Sending {
        let connection = Arc::clone(self);
        let mut sending: Sending = Box::pin(async move { connection.send(&call).await });
        let nobody = &mut Context::from_waker(Waker::noop());
        match sending.as_mut().poll(nobody) {
            Poll::Ready(outcome) => Box::pin(std::future::ready(outcome)),
            Poll::Pending => sending,
        }
    }

    /// Sends a call and gives its outcome. Calls go out in the order in which these futures are first polled.
    pub(crate) async fn send(&self, call: &Call) -> Outcome {
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
            Err(Lost { was_taken_up, why }) => {
                let why = format!("the connection was lost: {why}");
                Err(if was_taken_up {
                    Undelivered::MaybeSent(why)
                } else {
                    Undelivered::NotSent(why)
                })
            }
        }
    }

    /// Exchanges commands for replies, as long as there is a driver: what is put into its queue while it ends is neither
    /// sent nor refused by redis-rs, and would be waited for until the connection is dropped.
    async fn exchange(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Lost> {
        if self.driven.is_closed() {
            return Err(Lost::before_it_was_sent());
        }
        let mut answered = pin!(self.queue(commands));
        let mut ended = pin!(self.driven.closed());
        // Whatever its task has done already: a budget that is used up must not look like a call that nobody took up.
        let result = poll_fn(|context| {
            if let Poll::Ready(result) = answered.as_mut().poll(context) {
                return Poll::Ready(Some(result));
            }
            if ended.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // The driver may have given its answer just before it ended.
            match answered.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => Poll::Ready(None),
            }
        });
        match unconstrained(result).await {
            Some(Ok(replies)) => Ok(replies),
            // redis-rs does not tell whether it had begun to write.
            Some(Err(error)) => Err(Lost {
                was_taken_up: true,
                why: error.to_string(),
            }),
            None => Err(Lost::before_it_was_sent()),
        }
    }

    async fn queue(&self, mut commands: Vec<Cmd>) -> RedisResult<Vec<Value>> {
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

/// Why there are no replies.
struct Lost {
    /// Whether it may have been sent.
    was_taken_up: bool,
    why: String,
}

impl Lost {
    fn before_it_was_sent() -> Self {
        Self {
            was_taken_up: false,
            why: "it ended before the call was sent".into(),
        }
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tallylock_core::step::{CallId, Lane, Node};

    use super::*;

    /// Far longer than a call to a connection that is gone takes, and far shorter than a test may.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn call() -> Call {
        Call {
            id: CallId(1),
            node: Node::ONLY,
            lane: Lane::Shared,
            commands: vec![vec![b"PING".as_slice().into()]],
        }
    }

    #[tokio::test]
    async fn a_call_that_no_driver_takes_up_was_not_sent() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let (socket, _) = UnixStream::pair().unwrap();
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let (redis, queue) = MultiplexedConnection::new(&info, ours).await.unwrap();
        // As if it had ended in the moment in which the call is put into its queue: the queue is there, and nobody reads it.
        let driver = tokio::task::yield_now();
        let connection = Connection::driven(redis, driver, socket.into());
        let outcome = tokio::time::timeout(PATIENCE, connection.send(&call())).await;
        assert!(
            matches!(outcome, Ok(Err(Undelivered::NotSent(_)))),
            "{outcome:?}"
        );
        assert!(!connection.is_good());
        drop(queue);
    }
}
