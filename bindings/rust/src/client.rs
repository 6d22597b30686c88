//! The asynchronous client itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::counter::{AddMany, Added, Entry};
use tallylock_core::drive::drive;
use tallylock_core::error::{Code, Error};
use tallylock_core::request::{Request, Single};
use tallylock_core::step::{Operation, Step};
use tallylock_core::time::Instant;
use tokio::runtime::Handle;

use crate::backend::{Backend, Place, connect_error};
use crate::connections::Connections;
use crate::endpoint::Target;
use crate::memory::{Caller, Memory, Server};
use crate::scan::Walk;
use crate::way::Way;
use crate::{Counter, Lock, Options, Scan, Value, clock, random, spec};

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
    backend: Backend<Arc<Connections>>,
    runtime: Handle,
}

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
        let runtime = Handle::try_current().map_err(|_| {
            Error::new(
                Code::Unsupported,
                "a client is made inside of a tokio runtime",
            )
        })?;
        let place = match options.target {
            Target::Memory { name } => Place::Memory(Server::open(name.as_deref())),
            Target::Server(endpoint) => {
                let timeout = options.settings.timeout;
                let connections = Connections::new(endpoint, timeout, runtime.clone());
                let until = clock::now().plus(timeout.as_millis());
                connections.shared(until).await.map_err(connect_error)?;
                Place::Server(Arc::new(connections))
            }
        };
        let backend = Backend::new(options.settings, place);
        Ok(Self {
            inner: Arc::new(Inner { backend, runtime }),
        })
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

    /// A handle to the lock `key`, whose leases last for `ttl`. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`counter`](Self::counter), or if the TTL is not within 3 ms and
    /// 10 years.
    pub fn lock(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<Lock, Error> {
        Ok(Lock::new(self.clone(), spec::lock(key.as_ref(), ttl)?))
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
        let (settings, now) = (backend.settings(), backend.now());
        let way = self.way(now.plus(settings.timeout.as_millis()));
        let (batch, step) = AddMany::start(entries, settings, random::jitter(now), now)?;
        Ok(self.run(batch, step, &way).await)
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
    pub async fn heal(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<bool, Error> {
        self.request(spec::heal(key.as_ref(), ttl)?).await
    }

    /// How many counters that had lost their TTL were given one again by this client's drains.
    pub fn healed(&self) -> u64 {
        self.inner.backend.healed()
    }

    /// The test face of a `memory://` client; nothing for others.
    pub fn memory(&self) -> Option<Memory> {
        self.inner.backend.memory()
    }

    /// Closes the connections once the calls under way are over; each later call on this client, its clones and its
    /// handles fails with `closed`. Deletes nothing and releases no lock.
    pub fn close(&self) {
        self.inner.backend.close();
        if let Place::Server(connections) = &self.inner.backend.place {
            connections.clear();
        }
    }

    pub(crate) fn backend(&self) -> &Backend<Arc<Connections>> {
        &self.inner.backend
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.inner.runtime
    }

    /// The way of an operation that ends at this moment of its own accord.
    pub(crate) fn way(&self, deadline: Instant) -> Way {
        match &self.inner.backend.place {
            Place::Server(connections) => {
                Way::to_server(connections, deadline, self.inner.backend.settings().timeout)
            }
            Place::Memory(server) => Way::Memory(Caller::new(server)),
        }
    }

    /// Makes a request.
    pub(crate) async fn request<R: Request>(&self, request: R) -> Result<R::Output, Error> {
        let (backend, settings) = (self.backend(), self.backend().settings());
        backend.check_open()?;
        let now = backend.now();
        let way = self.way(now.plus(settings.timeout.as_millis()));
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
        let output = drive(operation, step, way, way, never, observe).await;
        self.clear_if_closed();
        output
    }

    /// Closes what an operation has opened that outlived the client's closing.
    pub(crate) fn clear_if_closed(&self) {
        if let (Err(_), Place::Server(connections)) =
            (self.backend().check_open(), &self.inner.backend.place)
        {
            connections.clear();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
