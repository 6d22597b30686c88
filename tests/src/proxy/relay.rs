//! What the proxy's threads do: one accepts, and each connection has one for requests, one for replies and one that lets
//! replies pass.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::line::Line;
use super::trap::{Fate, Traps};
use super::wire::{Reply, Request, Tap};

/// Everything the threads share, under one lock; each change wakes all who wait for one.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) listen: SocketAddr,
    pub(super) server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) traps: Traps,
    pub(super) lines: BTreeMap<u64, Line>,
    pub(super) holding: bool,
    pub(super) delay: Duration,
    pub(super) door: Door,
    pub(super) commands: BTreeMap<String, u64>,
    pub(super) connections: u64,
    pub(super) lost: u64,
    pub(super) malformed: u64,
}

/// Whether new connections are let in, as wished and as it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    #[default]
    Open,
    Closing,
    Closed,
    Opening,
    /// For good: the proxy ends.
    Gone,
}

impl Relay {
    pub(super) fn new(listen: SocketAddr, server: SocketAddr) -> Self {
        Self {
            listen,
            server,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The shared state; whoever changes it calls [`wake`](Self::wake).
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits for a state, or until the deadline passes: then it returns nothing.
    pub(super) fn wait_for(
        &self,
        deadline: Instant,
        mut is_so: impl FnMut(&State) -> bool,
    ) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        while !is_so(&state) {
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self.wait(state, Some(left));
        }
        Some(state)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        at_most: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let Some(at_most) = at_most else {
            return self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        };
        let waited = self.changed.wait_timeout(state, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Accepts until the proxy ends. A closed door has no listener, so the system itself refuses.
    pub(super) fn accept(self: &Arc<Self>, listener: TcpListener) {
        let mut listener = Some(listener);
        loop {
            let accepted = listener.as_ref().map(TcpListener::accept);
            let mut state = self.state();
            match state.door {
                Door::Open => {}
                Door::Closing => {
                    listener = None;
                    state.door = Door::Closed;
                    self.wake();
                    continue;
                }
                Door::Closed => {
                    drop(self.wait(state, None));
                    continue;
                }
                Door::Opening => {
                    if let Ok(bound) = TcpListener::bind(self.listen) {
                        listener = Some(bound);
                        state.door = Door::Open;
                        self.wake();
                    } else {
                        // Somebody has the port for a moment; `accept` reports it if that lasts.
                        drop(self.wait(state, Some(Duration::from_millis(5))));
                    }
                    continue;
                }
                Door::Gone => return,
            }
            drop(state);
            if let Some(Ok((client, _))) = accepted {
                // A server that is down looks to the client like a connection that ends at once.
                let _ = self.connect(client);
            }
        }
    }

    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let line = Line::new(client.try_clone()?, server.try_clone()?);
        let (requests_from, requests_to) = (client.try_clone()?, server.try_clone()?);
        let id = {
            let mut state = self.state();
            state.connections += 1;
            let id = state.connections;
            state.lines.insert(id, line);
            id
        };
        self.wake();
        let relay = Arc::clone(self);
        thread::spawn(move || relay.requests(id, requests_from, requests_to));
        let relay = Arc::clone(self);
        thread::spawn(move || relay.replies(id, server));
        let relay = Arc::clone(self);
        thread::spawn(move || relay.let_pass(id, client));
        Ok(())
    }

    fn requests(&self, id: u64, client: TcpStream, mut server: TcpStream) {
        let mut tap = Tap::new(BufReader::new(client));
        loop {
            match Request::read(&mut tap) {
                Ok(Some(request)) => {
                    if !self.ask(id, &request) || server.write_all(&request.bytes).is_err() {
                        return self.end(id);
                    }
                }
                // The client is done; the server closes after its last reply, and that ends the other threads.
                Ok(None) => {
                    let _ = server.shutdown(Shutdown::Write);
                    return;
                }
                Err(error) => {
                    if error.kind() == io::ErrorKind::InvalidData {
                        self.state().malformed += 1;
                    }
                    return self.end(id);
                }
            }
        }
    }

    /// Decides on a request. False if it must not reach the server; then the replies before it have passed.
    fn ask(&self, id: u64, request: &Request) -> bool {
        let mut state = self.state();
        let fate = state.traps.fate(request);
        if fate == Fate::CutBefore {
            while state.lines.get(&id).is_some_and(|line| !line.is_idle()) {
                state = self.wait(state, None);
            }
            return false;
        }
        let delay = state.delay;
        let Some(line) = state.lines.get_mut(&id) else {
            return false;
        };
        line.ask(request, fate, delay);
        *state.commands.entry(request.command()).or_default() += 1;
        self.wake();
        true
    }

    fn replies(&self, id: u64, server: TcpStream) {
        let mut tap = Tap::new(BufReader::new(server));
        while let Ok(Some(reply)) = Reply::read(&mut tap) {
            let mut state = self.state();
            let Some(line) = state.lines.get_mut(&id) else {
                return;
            };
            if !line.answer(reply) {
                state.malformed += 1;
                break;
            }
            self.wake();
        }
        // The server is done; what it has answered still passes.
        let mut state = self.state();
        while state
            .lines
            .get_mut(&id)
            .is_some_and(|line| line.next_ready().is_some())
        {
            state = self.wait(state, None);
        }
        drop(state);
        self.end(id);
    }

    fn let_pass(&self, id: u64, mut client: TcpStream) {
        let mut state = self.state();
        loop {
            match state.next_move(id) {
                Move::Wait(at_most) => state = self.wait(state, at_most),
                Move::Lose => {
                    state.lost += 1;
                    drop(state);
                    return self.end(id);
                }
                Move::EndReplies => {
                    if let Some(line) = state.lines.get_mut(&id) {
                        line.end_replies();
                    }
                }
                Move::Swallow => {
                    state.lost += 1;
                    if let Some(line) = state.lines.get_mut(&id) {
                        line.take_ready();
                    }
                    self.wake();
                }
                Move::Pass(bytes) => {
                    drop(state);
                    let is_written = client.write_all(&bytes).is_ok();
                    state = self.state();
                    let Some(line) = state.lines.get_mut(&id) else {
                        return;
                    };
                    if !is_written && !line.has_ended_replies() {
                        drop(state);
                        return self.end(id);
                    }
                    // Taken only now: whoever waits for an idle line waits until the bytes are out.
                    line.take_ready();
                    self.wake();
                }
                Move::Stop => return,
            }
        }
    }

    /// Cuts a connection and forgets it.
    fn end(&self, id: u64) {
        let line = self.state().lines.remove(&id);
        if let Some(line) = line {
            line.cut();
        }
        self.wake();
    }
}

/// What the thread that lets replies pass does next.
enum Move {
    Wait(Option<Duration>),
    Lose,
    EndReplies,
    Swallow,
    Pass(Vec<u8>),
    Stop,
}

impl State {
    /// How many replies wait for `go`.
    pub(super) fn held(&self) -> usize {
        self.lines
            .values()
            .map(|line| line.held(self.holding))
            .sum()
    }

    fn next_move(&mut self, id: u64) -> Move {
        let Some(line) = self.lines.get_mut(&id) else {
            return Move::Stop;
        };
        let has_ended = line.has_ended_replies();
        let Some(ready) = line.next_ready() else {
            return Move::Wait(None);
        };
        if has_ended {
            return Move::Swallow;
        }
        if ready.fate == Fate::LoseReply {
            return Move::Lose;
        }
        if ready.fate == Fate::HalfClose {
            return Move::EndReplies;
        }
        if self.holding || ready.fate == Fate::HoldReply {
            return Move::Wait(None);
        }
        match ready.not_before.checked_duration_since(Instant::now()) {
            Some(early) if !early.is_zero() => Move::Wait(Some(early)),
            _ => Move::Pass(ready.pass()),
        }
    }
}
