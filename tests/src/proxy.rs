//! A TCP proxy in front of a real server that makes faults happen at an exact request: a reply is lost although the request
//! was executed, replies are late, a connection is cut or ends in one direction, a server refuses.
//!
//! It reads RESP just well enough to tell which reply answers which request, and passes all bytes on unchanged. It can't follow
//! `CLIENT REPLY`, `MONITOR` and inline commands.

mod command;
mod line;
mod relay;
mod trap;
mod wire;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use relay::{Door, Relay};
use trap::{Fate, Which};

pub use command::{COMMANDS, Command, Stats};

/// How long `await-held`, `await-lost`, `refuse` and `accept` wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running proxy; it cuts its connections and ends with this value.
#[derive(Debug)]
pub struct Proxy {
    relay: Arc<Relay>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy on a free loopback port in front of the server at this address.
    ///
    /// # Errors
    /// If no loopback port can be bound.
    pub fn before(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Arc::new(Relay::new(listener.local_addr()?, server));
        let acceptor = thread::spawn({
            let relay = Arc::clone(&relay);
            move || relay.accept(listener)
        });
        Ok(Self {
            relay,
            acceptor: Some(acceptor),
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.relay.listen
    }

    /// `redis://127.0.0.1:port` of the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Loses the reply to the n-th request from now (1 is the next) over all connections, and cuts its connection; the server
    /// executes the request.
    pub fn lose(&self, n: u64) {
        self.set(Which::Nth(n), Fate::LoseReply);
    }

    /// Loses the reply to the next request whose bytes contain the text, and cuts its connection; the server executes it.
    pub fn lose_matching(&self, text: &str) {
        self.set(containing(text), Fate::LoseReply);
    }

    /// Lets no reply pass until [`go`](Self::go).
    pub fn hold(&self) {
        self.relay.state().holding = true;
    }

    /// Holds the reply to the next request whose bytes contain the text, and those behind it, until [`go`](Self::go).
    pub fn hold_matching(&self, text: &str) {
        self.set(containing(text), Fate::HoldReply);
    }

    /// Lets all held replies pass.
    pub fn go(&self) {
        let mut state = self.relay.state();
        state.holding = false;
        state.lines.values_mut().for_each(line::Line::release_held);
        self.relay.wake();
    }

    /// Cuts all connections now; replies that the proxy has not passed on are gone, requests that it has are executed.
    pub fn cut(&self) {
        let lines = std::mem::take(&mut self.relay.state().lines);
        lines.into_values().for_each(line::Line::cut);
        self.relay.wake();
    }

    /// Ends what clients read on all connections now; what they write still reaches the server, whose replies are swallowed.
    pub fn half_close(&self) {
        let mut state = self.relay.state();
        state.lines.values_mut().for_each(line::Line::end_replies);
        self.relay.wake();
    }

    /// The same for the connection of the next request whose bytes contain the text, instead of its reply; the server executes it.
    pub fn half_close_matching(&self, text: &str) {
        self.set(containing(text), Fate::HalfClose);
    }

    /// Cuts the connection of the n-th request from now (1 is the next) before it reaches the server; earlier replies pass.
    pub fn cut_before(&self, n: u64) {
        self.set(Which::Nth(n), Fate::CutBefore);
    }

    /// Cuts the connection of the next request whose bytes contain the text before it reaches the server; earlier replies pass.
    pub fn cut_before_matching(&self, text: &str) {
        self.set(containing(text), Fate::CutBefore);
    }

    /// Refuses new connections from when it returns, until [`accept`](Self::accept); open ones stay.
    ///
    /// # Errors
    /// If the door is still open after a minute.
    pub fn refuse(&self) -> io::Result<()> {
        self.turn(Door::Closing, Door::Closed)
    }

    /// Accepts connections again from when it returns.
    ///
    /// # Errors
    /// If somebody else has taken the port meanwhile.
    pub fn accept(&self) -> io::Result<()> {
        self.turn(Door::Opening, Door::Open)
    }

    /// From now on no reply passes before its request is that old.
    pub fn delay(&self, delay: Duration) {
        self.relay.state().delay = delay;
    }

    /// Waits until that many replies are held: so many requests have been executed and their callers don't know.
    ///
    /// # Errors
    /// If fewer are held after a minute.
    pub fn await_held(&self, count: usize) -> io::Result<()> {
        self.wait_for(&format!("{count} held replies"), |state| {
            state.held() >= count
        })
    }

    /// Waits until that many replies were lost in all.
    ///
    /// # Errors
    /// If fewer were lost after a minute.
    pub fn await_lost(&self, count: u64) -> io::Result<()> {
        self.wait_for(&format!("{count} lost replies"), |state| {
            state.lost >= count
        })
    }

    /// What has passed so far.
    pub fn stats(&self) -> Stats {
        let state = self.relay.state();
        Stats {
            connections: state.connections,
            open: state.lines.len(),
            requests: state.commands.clone(),
            lost: state.lost,
            held: state.held(),
            armed: state.traps.len(),
            malformed: state.malformed,
        }
    }

    /// Does what a command says; `stats` and only `stats` returns something.
    ///
    /// # Errors
    /// As the method of the command's name.
    pub fn run(&self, command: Command) -> io::Result<Option<Stats>> {
        match command {
            Command::Lose(n) => self.lose(n),
            Command::LoseMatching(text) => self.lose_matching(&text),
            Command::Hold => self.hold(),
            Command::HoldMatching(text) => self.hold_matching(&text),
            Command::Go => self.go(),
            Command::Cut => self.cut(),
            Command::HalfClose => self.half_close(),
            Command::HalfCloseMatching(text) => self.half_close_matching(&text),
            Command::CutBefore(n) => self.cut_before(n),
            Command::CutBeforeMatching(text) => self.cut_before_matching(&text),
            Command::Refuse => self.refuse()?,
            Command::Accept => self.accept()?,
            Command::Delay(delay) => self.delay(delay),
            Command::AwaitHeld(count) => self.await_held(count)?,
            Command::AwaitLost(count) => self.await_lost(count)?,
            Command::Stats => return Ok(Some(self.stats())),
        }
        Ok(None)
    }

    fn set(&self, which: Which, fate: Fate) {
        self.relay.state().traps.set(which, fate);
    }

    fn turn(&self, turning: Door, turned: Door) -> io::Result<()> {
        {
            let mut state = self.relay.state();
            if state.door == turned {
                return Ok(());
            }
            state.door = turning;
        }
        self.nudge();
        self.wait_for(&format!("{turned:?} door"), |state| state.door == turned)
    }

    /// Wakes the acceptor, wherever it waits.
    fn nudge(&self) {
        self.relay.wake();
        // Refused when there is no listener, which is when the acceptor doesn't wait for a connection.
        let _ = TcpStream::connect(self.relay.listen);
    }

    fn wait_for(&self, what: &str, is_so: impl FnMut(&relay::State) -> bool) -> io::Result<()> {
        match self.relay.wait_for(Instant::now() + PATIENCE, is_so) {
            Some(_) => Ok(()),
            None => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "waited {PATIENCE:?} in vain for {what}; now: {:?}",
                    self.stats()
                ),
            )),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.relay.state().door = Door::Gone;
        self.nudge();
        if let Some(acceptor) = self.acceptor.take() {
            // A panic there has been printed already, and a drop must not add one.
            let _ = acceptor.join();
        }
        self.cut();
    }
}

fn containing(text: &str) -> Which {
    Which::Containing(text.as_bytes().to_vec())
}
