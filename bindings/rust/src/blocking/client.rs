//! The blocking client itself.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::counter::{AddMany, Added, Entry};
use tallylock_core::drive::drive_blocking;
use tallylock_core::error::Error;
use tallylock_core::request::{Request, Single};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Operation, Step};
use tallylock_core::time::Instant;

use super::deadline::Deadline;
use super::lane::{Lane, MemoryLane, MemorySleeper, Sleeper};
use super::listener::Listener;
use super::nodes::Nodes;
use super::pool::Pool;
use super::renewer::Renewer;
use super::{Counter, Guarded, Lock, Meter, Scan, Value};
use crate::backend::{Backend, connect_error};
use crate::held::Held;
use crate::memory::{Caller, Memory, Server};
use crate::scan::Walk;
use crate::site::Site;
use crate::{MeterOptions, Metrics, Options, clock, random, spec};

/// A client whose calls block the calling thread. Cheap to clone; clones share connections.
///
/// It keeps a few connections and opens more when more threads call at once. It survives a fork: the child opens
/// connections of its own.
#[derive(Clone)]
pub struct Client {
    backend: Arc<Backend>,
    place: Place,
    renewer: Arc<Renewer>,
    listener: Arc<Listener>,
}

/// Where the data is.
#[derive(Clone)]
pub(super) enum Place {
    Server(Arc<Pool>),
    Memory(Arc<Server>),
    /// Locks alone, on several independent servers.
    Nodes(Arc<Nodes>),
}

impl Client {
    /// Connects to the server at `url`, as [`Options::new`] reads it, with the default options.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with), and `invalid_argument` if the URL is no good.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(Options::new(url)?)
    }

    /// Connects with these options; what is wrong with the address or the password is reported here.
    ///
    /// # Errors
    /// `forbidden` if the server refuses user or password, `invalid_argument` if it has no such database, `unavailable`
    /// if it cannot be reached, does not answer within the time-out, or TLS fails.
    pub fn connect_with(options: Options) -> Result<Self, Error> {
        let client = Self::open(options);
        client.reach()?;
        Ok(client)
    }

    /// Makes a client that connects when it is first used, for the faces of other languages.
    #[doc(hidden)]
    pub fn open(options: Options) -> Self {
        let (site, timeout) = (Site::of(options.target), options.settings.timeout);
        let backend = Arc::new(Backend::new(options.settings, site.clock()));
        let place = match site {
            Site::Memory(server) => Place::Memory(server),
            Site::Server(endpoint) => Place::Server(Arc::new(Pool::new(endpoint, timeout))),
        };
        Self::at(place, backend)
    }

    /// Connects, unless it is connected: over several servers, to more than half of them.
    #[doc(hidden)]
    pub fn reach(&self) -> Result<(), Error> {
        match &self.place {
            Place::Server(pool) => {
                let until = clock::now().plus(self.backend.settings().timeout.as_millis());
                let connection = pool.take(&mut Deadline::new(until));
                pool.put(connection.map_err(connect_error)?);
                Ok(())
            }
            Place::Memory(_) => Ok(()),
            Place::Nodes(nodes) => nodes.reach(),
        }
    }

    /// The client of this place.
    pub(super) fn at(place: Place, backend: Arc<Backend>) -> Self {
        let renewer = Arc::new(Renewer::new(backend.clock().clone()));
        let listener = Arc::new(Listener::new(backend.clock().memory().cloned()));
        Self {
            backend,
            place,
            renewer,
            listener,
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
    pub fn add_many(&self, entries: Vec<Entry>) -> Result<Vec<Result<Added, Error>>, Error> {
        self.backend.check_open()?;
        self.drive(|settings, now| AddMany::start(entries, settings, random::jitter(now), now))
    }

    /// A meter, which sums adds in memory and brings the sums to the server now and then. With a journal, it takes up what is
    /// in there, and reads its files on the calling thread; sends nothing yet.
    ///
    /// # Errors
    /// `invalid_argument` if what is flushed would not be remembered for longer than this client's calls may take, or if a file of
    /// the journal is damaged, `busy` if another meter uses the journal, `unsupported` if it was written by a later version,
    /// `unavailable` if the system refuses a file or a thread, and `closed`.
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

    /// Gives `key` (as it is, of any type) `ttl` to live if it is there and has no TTL; gives whether it did.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years.
    pub fn heal(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        self.request(spec::heal(key.as_ref(), ttl)?)
    }

    /// How many counters that had lost their TTL were given one again by this client's drains.
    pub fn healed(&self) -> u64 {
        self.backend.metrics().healed
    }

    /// How many locks this client has stolen.
    pub fn stolen(&self) -> u64 {
        self.backend.metrics().stolen
    }

    /// What was counted of this client's locks and counters in this process, since the client was made: waits, attempts, holds,
    /// renewals and losses. Clones count together. Sends nothing, and may be asked for as often as one likes, also after
    /// [`close`](Self::close).
    pub fn metrics(&self) -> Metrics {
        self.backend.metrics()
    }

    /// The test face of a `memory://` client; nothing for others.
    pub fn memory(&self) -> Option<Memory> {
        self.backend.memory()
    }

    /// Closes the connections; each later call on this client, its clones and its handles fails with `closed`. Deletes
    /// nothing and releases no lock, but renews none any more.
    pub fn close(&self) {
        self.backend.close();
        self.renewer.renew_no_more();
        self.listener.close();
        match &self.place {
            Place::Server(pool) => pool.clear(),
            Place::Memory(_) => {}
            Place::Nodes(nodes) => nodes.close(),
        }
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.backend
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Makes a request.
    pub(super) fn request<R>(&self, request: R) -> Result<R::Output, Error>
    where
        R: Request<Output: Send + 'static> + Send + 'static,
    {
        self.run(|settings, now| Single::start(request, settings, random::jitter(now), now))
    }

    /// Drives an operation to its end, unless the client is closed.
    pub(super) fn run<O, T>(
        &self,
        start: impl FnOnce(&Settings, Instant) -> (O, Step<Result<T, Error>>),
    ) -> Result<T, Error>
    where
        O: Operation<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.backend.check_open()?;
        self.drive(|settings, now| Ok(start(settings, now)))?
    }

    /// Drives an operation to its end, if it can be started; also after the client was closed.
    pub(super) fn drive<O>(
        &self,
        start: impl FnOnce(&Settings, Instant) -> Result<(O, Step<O::Output>), Error>,
    ) -> Result<O::Output, Error>
    where
        O: Operation<Output: Send + 'static> + Send + 'static,
    {
        let observe = |operation: &O| {
            self.backend.observe(operation);
            ControlFlow::Continue(())
        };
        let result = match &self.place {
            Place::Server(pool) => {
                let mut lane = Lane::new(pool);
                let (operation, step) = start(self.backend.settings(), clock::now())?;
                let result = drive_blocking(operation, step, &mut lane, &Sleeper, observe);
                self.clear_if_closed(lane);
                result
            }
            Place::Memory(server) => {
                let caller = Caller::new(server);
                let mut lane = MemoryLane::new(&caller);
                let (operation, step) = start(self.backend.settings(), caller.now())?;
                drive_blocking(
                    operation,
                    step,
                    &mut lane,
                    &MemorySleeper(&caller, None),
                    observe,
                )
            }
            Place::Nodes(nodes) => return nodes.run(start),
        };
        Ok(result.unwrap_or_else(|_| unreachable!("the observer never breaks off")))
    }

    /// Has a lease looked at when that is due, if it is renewed or somebody wants to know of its loss.
    pub(super) fn keep(&self, held: &Arc<Held>) -> Result<(), Error> {
        let backend = &self.backend;
        let Some(at) = held.rests_until(backend.now()) else {
            return Ok(());
        };
        let site = || match &self.place {
            Place::Server(pool) => Site::Server(pool.endpoint().clone()),
            Place::Memory(server) => Site::Memory(Arc::clone(server)),
            Place::Nodes(_) => unreachable!("these keep their leases themselves"),
        };
        match &self.place {
            Place::Nodes(nodes) => nodes.keep(held),
            _ => self.renewer.keep(held, at, site, backend.settings()),
        }
    }

    /// Has a lease renewed no more.
    pub(super) fn keep_no_longer(&self, held: &Held) {
        match &self.place {
            Place::Nodes(nodes) => nodes.keep_no_longer(held),
            _ => self.renewer.remove(held),
        }
    }

    /// Has the key of a lost lease removed, if it is there yet.
    pub(super) fn give_back(&self, held: &Arc<Held>) {
        match &self.place {
            Place::Nodes(nodes) => nodes.give_back(held),
            _ => self.renewer.give_back(held),
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Gives the connection back, and closes it at once if the client was closed meanwhile.
    pub(super) fn clear_if_closed(&self, lane: Lane) {
        drop(lane);
        if let (Err(_), Place::Server(pool)) = (self.backend.check_open(), &self.place) {
            pool.clear();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
