//! The connection over which a client hears of releases, for as long as somebody waits for one.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{Cmd, Parser, RedisResult};
use tallylock_core::step::{Command, Reply, Undelivered};
use tallylock_core::time::Ttl;
use tallylock_core::waiting::{Heard, KEPT_IDLE, Subscriptions, reopened_after};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::time::{sleep, timeout};

use crate::dial::{Stream, dial};
use crate::endpoint::Endpoint;
use crate::waiters::Waiters;
use crate::{clock, random, wire};

/// Hears of releases until nobody has waited for one for a while. A connection that is lost is opened again; meanwhile,
/// and where the server forbids it, those who wait look by themselves.
pub(crate) async fn hear(waiters: Arc<Waiters>, endpoint: Arc<Endpoint>, patience: Ttl) {
    let patience = Duration::from_millis(patience.as_millis());
    let seed = random::jitter(clock::now());
    let mut failures = 0_u32;
    while waiters.want_connection() {
        if failures > 0 {
            sleep(Duration::from_millis(reopened_after(seed, failures))).await;
        }
        let mut was_of_use = false;
        if let Ok(Ok(subscriber)) = timeout(patience, Subscriber::open(&endpoint)).await {
            was_of_use = subscriber.serve(&waiters, patience).await;
            waiters.listen_to_none();
        }
        failures = if was_of_use {
            0
        } else {
            failures.saturating_add(1)
        };
    }
}

struct Subscriber {
    stream: Stream,
    parser: Parser,
}

/// What a connection waits for.
enum Turn {
    Received(RedisResult<Reply>),
    Changed,
    Idle,
}

impl Subscriber {
    /// Connects and says hello. Has no deadline of its own.
    async fn open(endpoint: &Endpoint) -> Result<Self, Undelivered> {
        let (stream, _) = dial(&endpoint.address).await?;
        let mut subscriber = Self {
            stream,
            parser: Parser::new(),
        };
        let not_sent = |why: String| Undelivered::NotSent(why);
        let greetings = endpoint.greetings();
        let mut packed = Vec::new();
        for greeting in &greetings {
            greeting.command.write_packed_command(&mut packed);
        }
        let written = subscriber.write(&packed).await;
        written.map_err(|error| not_sent(error.to_string()))?;
        for greeting in &greetings {
            let reply = poll_fn(|context| subscriber.poll_reply(context)).await;
            greeting.accept(&reply.map_err(|error| not_sent(error.to_string()))?)?;
        }
        Ok(subscriber)
    }

    /// Tells the waiters what it hears, until it is lost or nothing was wanted for a while; whether anything was ever subscribed.
    async fn serve(mut self, waiters: &Waiters, patience: Duration) -> bool {
        let mut subscriptions = Subscriptions::default();
        let (mut was_of_use, mut has_changed) = (false, true);
        loop {
            if std::mem::take(&mut has_changed) {
                let wanted = waiters.wanted();
                let commands = subscriptions.want(&wanted);
                for channel in wanted.iter().filter(|channel| subscriptions.has(channel)) {
                    waiters.is_told_already(channel);
                }
                let sent = timeout(patience, self.send(&commands)).await;
                if !matches!(sent, Ok(Ok(()))) || wanted.is_empty() && waiters.is_closed() {
                    return was_of_use;
                }
            }
            match self.turn(waiters, subscriptions.is_idle()).await {
                Turn::Received(Ok(reply)) => match subscriptions.hear(reply) {
                    Ok(Heard::Message(channel)) => waiters.released(&channel),
                    Ok(Heard::Subscribed(channel)) => {
                        was_of_use = true;
                        waiters.listen(&channel, true);
                    }
                    Ok(Heard::Refused(channel)) => waiters.listen(&channel, false),
                    Ok(Heard::Nothing) => {}
                    Err(_) => return was_of_use,
                },
                Turn::Changed => has_changed = true,
                Turn::Received(Err(_)) | Turn::Idle => return was_of_use,
            }
        }
    }

    async fn turn(&mut self, waiters: &Waiters, is_idle: bool) -> Turn {
        let mut changed = pin!(waiters.changed());
        let mut idle = pin!(sleep(Duration::from_millis(KEPT_IDLE)));
        poll_fn(|context| {
            if let Poll::Ready(reply) = self.poll_reply(context) {
                return Poll::Ready(Turn::Received(reply));
            }
            if changed.as_mut().poll(context).is_ready() {
                return Poll::Ready(Turn::Changed);
            }
            if is_idle && idle.as_mut().poll(context).is_ready() {
                return Poll::Ready(Turn::Idle);
            }
            Poll::Pending
        })
        .await
    }

    async fn send(&mut self, commands: &[Command]) -> io::Result<()> {
        let mut packed = Vec::new();
        for command in commands {
            let mut cmd = Cmd::new();
            wire::pack(command, &mut cmd);
            cmd.write_packed_command(&mut packed);
        }
        self.write(&packed).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The next reply; what was read of one is kept until the rest is there.
    fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<RedisResult<Reply>> {
        let stream = &mut self.stream;
        match self.parser.parse_value(Polled { stream, context }) {
            Ok(value) => Poll::Ready(Ok(wire::reply(value))),
            Err(error) if error.is_timeout() => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// A stream as redis-rs's parser reads it: as far as it goes without waiting.
struct Polled<'a, 'b> {
    stream: &'a mut Stream,
    context: &'a mut Context<'b>,
}

impl Read for Polled<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut *self.stream).poll_read(self.context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len()),
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}
