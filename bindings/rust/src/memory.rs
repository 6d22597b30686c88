//! `memory://`: a server in this process whose clock is virtual, and its test face.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::memory::Memory as Node;
use tallylock_core::step::{Call, Outcome};
use tallylock_core::time::{Instant, Ttl};

use crate::waiters::Waiters;

/// The test face of a `memory://` client: looks at and changes what the server in memory holds, as another program
/// would, and moves its clock.
///
/// The clock is virtual: it stands still while calls are made, moves by [`advance`](Self::advance), and when every
/// caller is waiting (an acquire of a lock that is held), jumps to the next moment at which one of them goes on. So tests
/// that wait take no time. What a test lets pass is what the process would have slept: no lease is renewed in it.
///
/// ```
/// use std::time::Duration;
/// use tallylock::blocking::Client;
///
/// let client = Client::connect("memory://")?;
/// let memory = client.memory().expect("it is a memory:// client");
/// client.counter("calls", Duration::from_secs(60))?.add(1)?;
/// memory.advance(Duration::from_secs(61));
/// assert!(memory.keys().is_empty());
/// # Ok::<(), tallylock::Error>(())
/// ```
#[derive(Clone)]
pub struct Memory {
    server: Arc<Server>,
}

/// A live key of a [`Memory`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryKey {
    /// The key.
    pub key: Vec<u8>,
    /// Its text; nothing if it holds another type.
    pub value: Option<Vec<u8>>,
    /// Its remaining time; nothing if it never expires.
    pub ttl: Option<Duration>,
}

impl Memory {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server }
    }

    /// Lets `time` pass at once, rounded up to whole milliseconds: keys expire, and callers whose wait is over go on.
    pub fn advance(&self, time: Duration) {
        let millis = u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut state = self.server.state();
        state.node.advance(millis);
        let due = state.take_due();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// Every live key, in the order of their bytes.
    pub fn keys(&self) -> Vec<MemoryKey> {
        let state = self.server.state();
        let keys = state.node.keys().map(|(key, value, ttl)| MemoryKey {
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
            ttl: ttl.map(Duration::from_millis),
        });
        keys.collect()
    }

    /// Puts a text there as another program would, without a TTL if `ttl` is none.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years.
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        let ttl = ttl.map(Ttl::from_duration).transpose()?;
        self.server
            .state()
            .node
            .put(key.as_ref(), value.as_ref(), ttl);
        Ok(())
    }

    /// Puts a key of another type than a text there, without a TTL if `ttl` is none.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years.
    pub fn put_other_type(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        let ttl = ttl.map(Ttl::from_duration).transpose()?;
        self.server.state().node.put_other_type(key.as_ref(), ttl);
        Ok(())
    }

    /// Removes a key as another program would.
    pub fn remove(&self, key: impl AsRef<[u8]>) {
        self.server.state().node.remove(key.as_ref());
    }

    /// Executes the next request, but loses its reply; called twice, those of the next two.
    pub fn lose_next_reply(&self) {
        self.server.state().node.lose_next_reply();
    }

    /// Forgets the scripts that were sent, as a server does when it restarts.
    pub fn forget_scripts(&self) {
        self.server.state().node.forget_scripts();
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// The server behind one or several clients.
#[derive(Default)]
pub(crate) struct Server {
    state: Mutex<State>,
    /// Those who want to hear of releases.
    waiters: Mutex<Vec<Weak<Waiters>>>,
}

#[derive(Default)]
struct State {
    node: Node,
    /// How many operations are under way.
    callers: usize,
    /// Those of them that wait, by their tickets.
    parked: BTreeMap<u64, Parked>,
    next_ticket: u64,
}

struct Parked {
    until: Instant,
    waker: Waker,
    /// Whether it is an operation, and not only somebody who looks on.
    is_caller: bool,
}

impl Server {
    /// The server of this name, or a new one.
    pub(crate) fn open(name: Option<&str>) -> Arc<Self> {
        static NAMED: Mutex<BTreeMap<String, Weak<Server>>> = Mutex::new(BTreeMap::new());
        let Some(name) = name else {
            return Arc::default();
        };
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = named.get(name).and_then(Weak::upgrade) {
            return server;
        }
        let server = Arc::default();
        named.insert(name.to_owned(), Arc::downgrade(&server));
        server
    }

    /// Has these told of what is published.
    pub(crate) fn tell(&self, waiters: &Arc<Waiters>) {
        let mut all = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(waiters));
    }

    /// Executes a call at once, and tells what it has published.
    fn execute(&self, call: &Call) -> Outcome {
        let (outcome, published) = {
            let mut state = self.state();
            let outcome = state.node.execute(call);
            (outcome, state.node.published().to_vec())
        };
        for channel in published {
            let all = self
                .waiters
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            for waiters in all.iter().filter_map(Weak::upgrade) {
                waiters.released(&channel);
            }
        }
        outcome
    }

    /// The time on the virtual clock.
    pub(crate) fn now(&self) -> Instant {
        self.state().node.now()
    }

    /// Waits until the virtual clock has been moved past a moment; nothing is a reason for it to jump there.
    pub(crate) fn passing_of(&self, until: Instant) -> Sleep<'_> {
        Sleep {
            server: self,
            until,
            is_caller: false,
            ticket: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets the clock jump if nobody can do anything before the next moment that somebody waits for; gives whom to wake.
    #[must_use]
    fn jump(&mut self) -> Vec<Waker> {
        let callers = self.parked.values().filter(|parked| parked.is_caller);
        match callers.clone().map(|parked| parked.until).min() {
            Some(next) if callers.count() == self.callers => {
                self.node.advance(next.since(self.node.now()));
                self.take_due()
            }
            _ => Vec::new(),
        }
    }

    #[must_use]
    fn take_due(&mut self) -> Vec<Waker> {
        let now = self.node.now();
        let mut due = Vec::new();
        self.parked.retain(|_, parked| {
            let waits = parked.until > now;
            if !waits {
                due.push(parked.waker.clone());
            }
            waits
        });
        due
    }
}

/// An operation under way on a server in memory: while there is one that does not wait, the clock does not jump.
pub(crate) struct Caller {
    server: Arc<Server>,
}

impl Caller {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        server.state().callers += 1;
        Self {
            server: Arc::clone(server),
        }
    }

    /// Executes a call at once.
    pub(crate) fn execute(&self, call: &Call) -> Outcome {
        self.server.execute(call)
    }

    /// The time on the virtual clock.
    pub(crate) fn now(&self) -> Instant {
        self.server.now()
    }

    /// Waits on the virtual clock.
    pub(crate) fn sleep_until(&self, until: Instant) -> Sleep<'_> {
        Sleep {
            server: &self.server,
            until,
            is_caller: true,
            ticket: None,
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut state = self.server.state();
        state.callers -= 1;
        let due = state.jump();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }
}

/// A wait on the virtual clock.
pub(crate) struct Sleep<'a> {
    server: &'a Server,
    until: Instant,
    is_caller: bool,
    ticket: Option<u64>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.server.state();
        if state.node.now() >= self.until {
            return Poll::Ready(());
        }
        let ticket = self.ticket.unwrap_or_else(|| {
            state.next_ticket += 1;
            state.next_ticket
        });
        state.parked.insert(
            ticket,
            Parked {
                until: self.until,
                waker: context.waker().clone(),
                is_caller: self.is_caller,
            },
        );
        let due = state.jump();
        let over = state.node.now() >= self.until;
        drop(state);
        self.ticket = Some(ticket);
        due.into_iter().for_each(Waker::wake);
        if over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.server.state().parked.remove(&ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    struct Idle;

    impl Wake for Idle {
        fn wake(self: Arc<Self>) {}
    }

    fn poll(sleep: &mut Sleep<'_>) -> bool {
        let waker = Arc::new(Idle).into();
        Pin::new(sleep)
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_clock_jumps_only_when_every_caller_waits() {
        let server = Server::open(None);
        let (first, second) = (Caller::new(&server), Caller::new(&server));
        let (mut long, mut short) = (first.sleep_until(at(500)), second.sleep_until(at(100)));
        assert!(!poll(&mut long), "the second caller is busy");
        assert_eq!(server.now(), at(0));
        assert!(
            poll(&mut short),
            "now both wait, and this is the next moment"
        );
        assert_eq!(server.now(), at(100));
        assert!(!poll(&mut long), "the second caller is busy again");
        drop(short);
        drop(second);
        assert_eq!(
            server.now(),
            at(500),
            "only the first caller is left, and it waits"
        );
        assert!(poll(&mut long));
    }

    #[test]
    fn a_wait_that_is_given_up_holds_nobody_back() {
        let server = Server::open(None);
        let (first, second) = (Caller::new(&server), Caller::new(&server));
        let mut given_up = first.sleep_until(at(100));
        assert!(!poll(&mut given_up));
        drop(given_up);
        drop(first);
        assert!(poll(&mut second.sleep_until(at(300))));
        assert_eq!(server.now(), at(300));
    }

    #[test]
    fn a_name_is_shared_for_as_long_as_somebody_uses_it() {
        let first = Server::open(Some("shared"));
        assert!(Arc::ptr_eq(&first, &Server::open(Some("shared"))));
        assert!(!Arc::ptr_eq(&first, &Server::open(Some("other"))));
        assert!(!Arc::ptr_eq(&first, &Server::open(None)));
        Memory::new(Arc::clone(&first)).put("k", "v", None).unwrap();
        drop(first);
        assert!(Memory::new(Server::open(Some("shared"))).keys().is_empty());
    }
}
