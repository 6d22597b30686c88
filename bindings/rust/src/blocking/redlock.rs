//! Locks over several independent servers, for threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::error::Error;

use super::client::Place;
use super::nodes::Nodes;
use super::{Client, Lock};
use crate::site::Site;
use crate::spec::LockSpec;
use crate::{Memory, Metrics, RedlockOptions};

/// A client whose locks are on several independent servers, as [`crate::Redlock`]; its calls block the calling thread, while
/// the servers are asked at the same time in the background. Cheap to clone.
///
/// It survives a fork: the child opens connections of its own.
///
/// ```
/// use std::time::Duration;
/// use tallylock::blocking::Redlock;
///
/// let redlock = Redlock::connect(["memory://d", "memory://e", "memory://f"])?;
/// let lease = redlock.lock("invoice:42", Duration::from_secs(30))?.acquire(Duration::from_secs(5))?;
/// lease.ensure(Duration::from_secs(2))?;
/// lease.release()?;
/// # Ok::<(), tallylock::Error>(())
/// ```
#[derive(Clone)]
pub struct Redlock {
    client: Client,
}

impl Redlock {
    /// Connects to the servers at `urls`, as [`crate::Redlock::connect`] does.
    ///
    /// # Errors
    /// As there, and `unavailable` if the system starts no thread.
    pub fn connect(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        Self::connect_with(RedlockOptions::new(urls)?)
    }

    /// Connects with these options, as [`crate::Redlock::connect_with`] does.
    ///
    /// # Errors
    /// As there, and `unavailable` if the system starts no thread.
    pub fn connect_with(options: RedlockOptions) -> Result<Self, Error> {
        let redlock = Self::open(options);
        redlock.client.reach()?;
        Ok(redlock)
    }

    /// Makes a client that connects when it is first used, for the faces of other languages.
    #[doc(hidden)]
    pub fn open(options: RedlockOptions) -> Self {
        let nodes = Nodes::new(options);
        let backend = Arc::clone(nodes.backend());
        let client = Client::at(Place::Nodes(Arc::new(nodes)), backend);
        Self { client }
    }

    /// A handle to the lock `key`, whose leases last for `ttl`. Sends nothing.
    ///
    /// Errors of its verbs count the servers, such as `granted by 2, held by another on 2, unreachable 1 of 5 nodes`.
    ///
    /// # Errors
    /// `invalid_argument` if the key is no good, as for [`Client::counter`], or if the TTL is not within 3 ms and 10 years.
    pub fn lock(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<Lock, Error> {
        Ok(Lock::new(
            self.client.clone(),
            LockSpec::new(key.as_ref(), ttl)?,
        ))
    }

    /// The test faces of `memory://` servers, as [`crate::Redlock::memories`].
    pub fn memories(&self) -> Vec<Memory> {
        let Place::Nodes(nodes) = self.client.place() else {
            return Vec::new();
        };
        let memories = nodes.sites().iter().filter_map(|site| match site {
            Site::Memory(server) => Some(Memory::new(Arc::clone(server))),
            Site::Server(_) => None,
        });
        memories.collect()
    }

    /// What was counted of this client's locks, as [`Client::metrics`].
    pub fn metrics(&self) -> Metrics {
        self.client.metrics()
    }

    /// Closes the connections, as [`Client::close`] does: no lease is renewed any more.
    pub fn close(&self) {
        self.client.close();
    }

    /// The client behind it, for the faces of other languages. It is good for locks only.
    #[doc(hidden)]
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").finish_non_exhaustive()
    }
}
