//! The asynchronous client itself.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tallylock_core::counter::{AddMany, Added, Entry};
use tallylock_core::drive::{drive, nothing_to_tell};
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::Lock as LockSpec;
use tallylock_core::request::{Request, Single};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Operation, Step};
use tallylock_core::time::{Instant, Wait};
use tokio::runtime::Handle;

use crate::backend::{Backend, connect_error};
use crate::held::Held;
use crate::memory::{Caller, Memory};
use crate::nodes::Nodes;
use crate::redlock::await_quorum;
use crate::renewals::Renewals;
use crate::scan::Walk;
use crate::site::{Node, Place, Site};
use crate::waiters::{Waiter, Waiters};
use crate::way::Way;
use crate::{
    Counter, Guarded, Lock, Meter, MeterOptions, Metrics, Options, Scan, SweepOptions, Sweeper,
    Value, clock, random, spec, subscriber,
};

/// A client whose calls are futures, on tokio. Cheap to clone; clones share one connection, over which any number of
/// calls travel at once.
///
/// It lives on the runtime in which it was made, and its futures can be awaited anywhere. It does not survive a fork: a
/// child makes a client of its own.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Arc<Backend>,
    place: Place,
    runtime: Handle,
    renewals: Arc<Renewals>,
    waiters: Arc<Waiters>,
}

/// A client that is not kept by this.
pub(crate) struct WeakClient(Weak<Inner>);

impl Client {
    /// Connects to the server at `url`, as [`Options::new`] reads it, with the default options.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with), and `invalid_argument` if the URL is no good.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(Options::new(url)?).await
    }

    /// Connects with these options; what is wrong with the address or the password is reported here.
    ///
    /// # Errors
    /// `forbidden` if the server refuses user or password, `invalid_argument` if it has no such database, `unavailable`
    /// if it cannot be reached, does not answer within the time-out, or TLS fails, and `unsupported` outside of tokio.
    pub async fn connect_with(options: Options) -> Result<Self, Error> {
        let client = Self::open_on(&runtime()?, options);
        client.reach().await?;
        Ok(client)
    }

    /// Makes a client that connects when it is first used, for the faces of other languages.
    #[doc(hidden)]
    pub fn open_on(runtime: &Handle, options: Options) -> Self {
        let (site, settings) = (Site::of(options.target), options.settings);
        let place = Place::One(site.node(settings.timeout, runtime));
        let backend = Arc::new(Backend::new(settings, site.clock()));
        Self::at(place, backend, runtime.clone())
    }

    /// Connects, unless it is connected: over several servers, to more than half of them.
    #[doc(hidden)]
    pub async fn reach(&self) -> Result<(), Error> {
        let until = clock::now().plus(self.backend().settings().timeout.as_millis());
        match self.place() {
            Place::One(Node::Server(connections)) => {
                connections.shared(until).await.map_err(connect_error)?;
                Ok(())
            }
            Place::One(Node::Memory(_)) => Ok(()),
            Place::Several(nodes) => await_quorum(nodes, until, self.runtime()).await,
        }
    }

    /// The client of this place. Connects when that is needed.
    pub(crate) fn at(place: Place, backend: Arc<Backend>, runtime: Handle) -> Self {
        let renewals = Renewals::new(backend.clock().clone());
        Self::of(place, backend, runtime, renewals)
    }

    fn of(place: Place, backend: Arc<Backend>, runtime: Handle, renewals: Arc<Renewals>) -> Self {
        let waiters = Waiters::new(backend.clock().memory().cloned());
        Self {
            inner: Arc::new(Inner {
                backend,
                place,
                runtime,
                renewals,
                waiters,
            }),
        }
    }

    /// A client that renews the leases of a blocking one, whose other calls it does not make.
    pub(crate) fn for_renewals(
        settings: Settings,
        site: &Site,
        runtime: Handle,
        renewals: &Arc<Renewals>,
    ) -> Self {
        let place = Place::One(site.node(settings.timeout, &runtime));
        let backend = Arc::new(Backend::new(settings, site.clock()));
        Self::of(place, backend, runtime, Arc::clone(renewals))
    }

    /// This client, without keeping it.
    pub(crate) fn downgrade(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.inner))
    }

    /// Has a lease looked at when that is due, if it is renewed or somebody wants to know of its loss.
    pub(crate) fn keep(&self, held: &Arc<Held>) {
        let Some(at) = held.rests_until(self.backend().now()) else {
            return;
        };
        let renewals = &self.inner.renewals;
        if renewals.put(held, at) {
            let run = Arc::clone(renewals).run(self.downgrade());
            self.runtime().spawn(run);
        }
    }

    /// Has a lease renewed no more.
    pub(crate) fn keep_no_longer(&self, held: &Held) {
        // In a child of `fork` the queue is the parent's, and perhaps locked for ever.
        if held.is_here() {
            self.inner.renewals.remove(held);
        }
    }

    /// Has the key of a lost lease removed, if it is there yet.
    pub(crate) fn give_back(&self, held: &Arc<Held>) {
        if held.is_here() {
            self.inner.renewals.give_back(held);
        }
    }

    /// A handle to the counter `key`, which each add gives `ttl` to live (see [`Counter::fixed`]). Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is empty, longer than 16 KiB, has braces that enclose no hash tag or looks like a
    /// side key, or if the TTL is not within 1 ms and 10 years.
    pub fn counter(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<Counter, Error> {
        Ok(Counter::new(
            self.clone(),
            spec::CounterSpec::new(key.as_ref(), ttl)?,
        ))
    }

    /// A handle to the value `key`. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`counter`](Self::counter).
    pub fn value(&self, key: impl AsRef<[u8]>) -> Result<Value, Error> {
        Ok(Value::new(
            self.clone(),
            spec::ValueSpec::new(key.as_ref())?,
        ))
    }

    /// A handle to the value `key` for holders of a lock: what it writes carries their fence. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`counter`](Self::counter).
    pub fn guarded(&self, key: impl AsRef<[u8]>) -> Result<Guarded, Error> {
        Ok(Guarded::new(
            self.clone(),
            spec::ValueSpec::new(key.as_ref())?,
        ))
    }

    /// A handle to the lock `key`, whose leases last for `ttl`. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`counter`](Self::counter), or if the TTL is not within 3 ms and
    /// 10 years.
    pub fn lock(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<Lock, Error> {
        Ok(Lock::new(
            self.clone(),
            spec::LockSpec::new(key.as_ref(), ttl)?,
        ))
    }

    /// Adds to any counters in one round trip: up to 10,000 entries, made by [`Counter::entry`] and
    /// [`Counter::entry_once`]. Each is atomic and has a result of its own, in the same order, so that a bad one neither stops
    /// nor hides the others.
    ///
    /// # Errors
    /// `invalid_argument` if there are more than 10,000 entries, and `closed`: then nothing is sent. What else goes wrong
    /// is the result of an entry; that of a keyed one is known in the end, that of a plain one may be `outcome_unknown`.
    pub async fn add_many(&self, entries: Vec<Entry>) -> Result<Vec<Result<Added, Error>>, Error> {
        let backend = self.backend();
        backend.check_open()?;
        let settings = backend.settings();
        let (way, now) = self.begin(settings.timeout.as_millis());
        let (batch, step) = AddMany::start(entries, settings, random::jitter(now), now)?;
        Ok(self.run(batch, step, &way).await)
    }

    /// A meter, which sums adds in memory and brings the sums to the server now and then. With a journal, it takes up what is
    /// in there, and reads its files on the calling thread; sends nothing yet.
    ///
    /// # Errors
    /// `invalid_argument` if what is flushed would not be remembered for longer than this client's calls may take, or if a file of
    /// the journal is damaged, `busy` if another meter uses the journal, `unsupported` if it was written by a later version,
    /// `unavailable` if the system refuses a file, and `closed`.
    pub fn meter(&self, options: MeterOptions) -> Result<Meter, Error> {
        Meter::new(self.clone(), options)
    }

    /// Looks through all keys of the server for those that match `pattern` (`*`, `?`, `[a-z]`). Sends nothing yet.
    pub fn scan(&self, pattern: impl AsRef<[u8]>) -> Scan {
        Scan::new(self.clone(), Walk::new(pattern.as_ref()))
    }

    /// Goes on with a [`scan`](Self::scan) from where [`Scan::cursor`] said. Sends nothing yet.
    ///
    /// # Errors
    /// `invalid_argument` if the cursor is none.
    pub fn scan_from(
        &self,
        pattern: impl AsRef<[u8]>,
        cursor: impl AsRef<[u8]>,
    ) -> Result<Scan, Error> {
        Ok(Scan::new(
            self.clone(),
            Walk::from(pattern.as_ref(), cursor.as_ref())?,
        ))
    }

    /// A sweeper, which bills counters before they end or once they hold much. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if a TTL is not within its bounds (1 ms, for the lock 3 ms, to 10 years), the wait is longer, the
    /// lock's key is no good or longer than 473 bytes, or what counters hold at least is less than 1.
    pub fn sweeper(&self, options: SweepOptions) -> Result<Sweeper, Error> {
        Sweeper::new(self.clone(), options)
    }

    /// Gives `key` (as it is, of any type) `ttl` to live if it is there and has no TTL; gives whether it did.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years.
    pub async fn heal(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        self.request(spec::heal(key.as_ref(), ttl)?).await
    }

    /// How many counters that had lost their TTL were given one again by this client's drains.
    pub fn healed(&self) -> u64 {
        self.inner.backend.metrics().healed
    }

    /// How many locks this client has stolen.
    pub fn stolen(&self) -> u64 {
        self.inner.backend.metrics().stolen
    }

    /// What was counted of this client's locks and counters in this process, since the client was made: waits, attempts, holds,
    /// renewals and losses. Clones count together. Sends nothing, and may be asked for as often as one likes, also after
    /// [`close`](Self::close).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tallylock::Error> {
    /// # use std::time::Duration;
    /// let client = tallylock::Client::connect("memory://").await?;
    /// let lock = client.lock("invoice:42", Duration::from_secs(30))?;
    /// lock.acquire(Duration::from_secs(5)).await?.release().await?;
    /// let metrics = client.metrics();
    /// assert_eq!((metrics.granted, metrics.released, metrics.lost.total()), (1, 1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.inner.backend.metrics()
    }

    /// The test face of a `memory://` client; nothing for others.
    pub fn memory(&self) -> Option<Memory> {
        self.inner.backend.memory()
    }

    /// Closes the connections once the calls under way are over; each later call on this client, its clones and its
    /// handles fails with `closed`. Deletes nothing and releases no lock, but renews none any more.
    pub fn close(&self) {
        self.inner.backend.close();
        self.inner.renewals.renew_no_more();
        self.inner.waiters.close();
        self.inner.place.clear();
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.inner.runtime
    }

    /// Stands in line for a lock, unless the caller does not want to wait. Several servers are asked by each for itself.
    pub(crate) fn join(&self, lock: &LockSpec, wait: Wait) -> Waiter {
        let wait = match self.place() {
            Place::One(_) => wait,
            Place::Several(_) => Wait::NONE,
        };
        self.inner.waiters.join(lock, wait)
    }

    /// Opens the connection over which its waiters hear of releases.
    pub(crate) fn hear(&self) {
        if let Place::One(Node::Server(connections)) = self.place() {
            let waiters = Arc::clone(&self.inner.waiters);
            let timeout = self.inner.backend.settings().timeout;
            let endpoint = connections.endpoint();
            self.runtime()
                .spawn(subscriber::hear(waiters, endpoint, timeout));
        }
    }

    /// The way of an operation that begins now and lasts for so many milliseconds at the longest, and now. In memory the clock
    /// does not jump in between: the operation would be over before it has begun.
    pub(crate) fn begin(&self, longest: u64) -> (Way, Instant) {
        let _hold = self.backend().clock().hold();
        let now = self.backend().now();
        (self.way(now.plus(longest)), now)
    }

    /// The way of an operation that ends at this moment of its own accord.
    pub(crate) fn way(&self, deadline: Instant) -> Way {
        let timeout = self.backend().settings().timeout;
        match self.place() {
            Place::One(Node::Server(connections)) => Way::to_server(connections, deadline, timeout),
            Place::One(Node::Memory(server)) => Way::Memory(Caller::new(server)),
            Place::Several(nodes) => {
                Way::Nodes(Nodes::new(nodes, deadline, timeout, self.runtime()))
            }
        }
    }

    /// Makes a request.
    pub(crate) async fn request<R: Request>(&self, request: R) -> Result<R::Output, Error> {
        let (backend, settings) = (self.backend(), self.backend().settings());
        backend.check_open()?;
        let (way, now) = self.begin(settings.timeout.as_millis());
        let (operation, step) = Single::start(request, settings, random::jitter(now), now);
        self.run(operation, step, &way).await
    }

    /// Drives an operation that nobody stops to its end.
    pub(crate) async fn run<O: Operation>(
        &self,
        operation: O,
        step: Step<O::Output>,
        way: &Way,
    ) -> O::Output {
        let never = std::future::pending();
        let observe = |operation: &O| self.backend().observe(operation);
        let output = drive(operation, step, way, way, never, nothing_to_tell, observe).await;
        self.clear_if_closed();
        output
    }

    /// Closes what an operation has opened that outlived the client's closing.
    pub(crate) fn clear_if_closed(&self) {
        if self.backend().check_open().is_err() {
            self.place().clear();
        }
    }
}

impl WeakClient {
    /// The client, if somebody keeps it.
    pub(crate) fn upgrade(&self) -> Option<Client> {
        Some(Client {
            inner: self.0.upgrade()?,
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.renewals.close();
        self.waiters.close();
    }
}

/// The runtime that a client is made in.
pub(crate) fn runtime() -> Result<Handle, Error> {
    Handle::try_current().map_err(|_| {
        Error::new(
            Code::Unsupported,
            "a client is made inside of a tokio runtime",
        )
    })
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
