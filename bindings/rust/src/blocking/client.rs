//! The blocking client itself.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::counter::{AddMany, Added, Entry};
use tallylock_core::drive::drive_blocking;
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Grant, Lock as LockSpec};
use tallylock_core::request::{Request, Single};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Operation, Step};
use tallylock_core::time::{Instant, Wait};

use super::deadline::Deadline;
use super::lane::{Lane, MemoryLane, MemorySleeper, Sleeper};
use super::pool::Pool;
use super::{Counter, Lock, Scan, Value, undo};
use crate::backend::{Backend, Place, connect_error};
use crate::endpoint::Target;
use crate::memory::{Caller, Memory, Server};
use crate::scan::Walk;
use crate::{Options, clock, random, spec};

/// A client whose calls block the calling thread. Cheap to clone; clones share connections.
///
/// It keeps a few connections and opens more when more threads call at once. It survives a fork: the child opens
/// connections of its own.
#[derive(Clone)]
pub struct Client {
    backend: Arc<Backend<Arc<Pool>>>,
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
        let place = match options.target {
            Target::Memory { name } => Place::Memory(Server::open(name.as_deref())),
            Target::Server(endpoint) => {
                let pool = Pool::new(endpoint, options.settings.timeout);
                let until = clock::now().plus(options.settings.timeout.as_millis());
                pool.put(
                    pool.take(&mut Deadline::new(until))
                        .map_err(connect_error)?,
                );
                Place::Server(Arc::new(pool))
            }
        };
        Ok(Self {
            backend: Arc::new(Backend::new(options.settings, place)),
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
    pub fn add_many(&self, entries: Vec<Entry>) -> Result<Vec<Result<Added, Error>>, Error> {
        self.backend.check_open()?;
        self.drive(|settings, now| AddMany::start(entries, settings, random::jitter(now), now))
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
        self.backend.healed()
    }

    /// The test face of a `memory://` client; nothing for others.
    pub fn memory(&self) -> Option<Memory> {
        self.backend.memory()
    }

    /// Closes the connections; each later call on this client, its clones and its handles fails with `closed`. Deletes
    /// nothing and releases no lock.
    pub fn close(&self) {
        self.backend.close();
        if let Place::Server(pool) = &self.backend.place {
            pool.clear();
        }
    }

    pub(super) fn backend(&self) -> &Backend<Arc<Pool>> {
        &self.backend
    }

    /// Makes a request.
    pub(super) fn request<R: Request>(&self, request: R) -> Result<R::Output, Error> {
        self.run(|settings, now| Single::start(request, settings, random::jitter(now), now))
    }

    /// Drives an operation to its end, unless the client is closed.
    pub(super) fn run<O, T>(
        &self,
        start: impl FnOnce(&Settings, Instant) -> (O, Step<Result<T, Error>>),
    ) -> Result<T, Error>
    where
        O: Operation<Output = Result<T, Error>>,
    {
        self.backend.check_open()?;
        self.drive(|settings, now| Ok(start(settings, now)))?
    }

    /// Drives an operation to its end, if it can be started; also after the client was closed.
    pub(super) fn drive<O: Operation>(
        &self,
        start: impl FnOnce(&Settings, Instant) -> Result<(O, Step<O::Output>), Error>,
    ) -> Result<O::Output, Error> {
        let observe = |operation: &O| {
            self.backend.observe(operation);
            ControlFlow::Continue(())
        };
        let result = match &self.backend.place {
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
                drive_blocking(operation, step, &mut lane, &MemorySleeper(&caller), observe)
            }
        };
        Ok(result.unwrap_or_else(|_| unreachable!("the observer never breaks off")))
    }

    /// Takes a lock. What a failed acquire may have left is undone, if need be after the caller has its answer.
    pub(super) fn acquire(&self, lock: &LockSpec, wait: Wait) -> Result<Grant, Error> {
        self.backend.check_open()?;
        let seed = random::secret()?;
        let start = |settings: &Settings, now: Instant| {
            Acquire::start(lock.clone(), wait, settings, seed, now)
        };
        let pool = match &self.backend.place {
            Place::Server(pool) => pool,
            // Its time is virtual: the undo takes none of the caller's.
            Place::Memory(_) => return self.run(start),
        };
        let mut lane = Lane::new(pool);
        let (operation, step) = start(self.backend.settings(), clock::now());
        let driven = drive_blocking(operation, step, &mut lane, &Sleeper, |acquire| {
            self.backend.observe(acquire);
            if acquire.refusal().is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        match driven {
            Ok(result) => {
                self.clear_if_closed(lane);
                result
            }
            Err((acquire, until)) => {
                let refusal = acquire.refusal().cloned();
                undo::go_on(acquire, until, lane);
                Err(refusal.unwrap_or_else(|| unreachable!("the observer breaks off at a refusal")))
            }
        }
    }

    /// Gives the connection back, and closes it at once if the client was closed meanwhile.
    fn clear_if_closed(&self, lane: Lane) {
        drop(lane);
        if let (Err(_), Place::Server(pool)) = (self.backend.check_open(), &self.backend.place) {
            pool.clear();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
