//! Locks over several independent servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::settings::{Nodes, Settings};
use tallylock_core::step::Undelivered;
use tallylock_core::time::{Instant, Ttl};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::backend::Backend;
use crate::client::runtime;
use crate::clock::Clock;
use crate::endpoint::Target;
use crate::memory::Memory;
use crate::site::{Node, Place, Site};
use crate::spec::LockSpec;
use crate::{Client, Lock, Metrics, Options, Owner};

/// A client whose locks are on several independent servers, of which more than half decide: a lock is held while a minority of
/// them is down, hung or restarted. It has locks only. Cheap to clone; its calls are futures, on tokio.
///
/// ```
/// use std::time::Duration;
/// use tallylock::Redlock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tallylock::Error> {
/// let redlock = Redlock::connect(["memory://a", "memory://b", "memory://c"]).await?;
/// let lock = redlock.lock("invoice:42", Duration::from_secs(30))?;
/// let lease = lock.acquire(Duration::from_secs(5)).await?;
/// lease.ensure(Duration::from_secs(2))?;
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redlock {
    client: Client,
}

/// What a [`Redlock`] is made with: the URLs of its servers and, where the defaults do not suit, how long is waited.
#[derive(Clone, Debug)]
pub struct RedlockOptions {
    targets: Vec<Target>,
    settings: Settings,
}

impl Redlock {
    /// Connects to the servers at `urls`, each as [`Options::new`] reads it, with the default options.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with), and `invalid_argument` as [`RedlockOptions::new`].
    pub async fn connect(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        Self::connect_with(RedlockOptions::new(urls)?).await
    }

    /// Connects with these options; returns once more than half of the servers are connected. The others are connected to when
    /// they can be.
    ///
    /// # Errors
    /// `unavailable` if too few can be reached within the time-out; before that, of the first server that says so, `forbidden` if
    /// it refuses user or password and `invalid_argument` if it has no such database; `unsupported` outside of tokio.
    pub async fn connect_with(options: RedlockOptions) -> Result<Self, Error> {
        let redlock = Self::open_on(&runtime()?, options);
        redlock.client.reach().await?;
        Ok(redlock)
    }

    /// Makes a client that connects when it is first used, for the faces of other languages.
    #[doc(hidden)]
    pub fn open_on(runtime: &Handle, options: RedlockOptions) -> Self {
        let (sites, backend) = options.open();
        let client = over(&sites, &backend, runtime.clone());
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

    /// The test faces of `memory://` servers, in the order of their URLs; empty for others. Each has a clock of its own, and the
    /// first one's is that of the leases: advance all of them.
    pub fn memories(&self) -> Vec<Memory> {
        let Place::Several(nodes) = self.client.place() else {
            return Vec::new();
        };
        let memories = nodes.iter().filter_map(|node| match node {
            Node::Memory(server) => Some(Memory::new(Arc::clone(server))),
            Node::Server(_) => None,
        });
        memories.collect()
    }

    /// What was counted of this client's locks, as [`Client::metrics`].
    pub fn metrics(&self) -> Metrics {
        self.client.metrics()
    }

    /// Closes the connections once the calls under way are over, as [`Client::close`] does: no lease is renewed any more.
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

impl RedlockOptions {
    /// Options for the servers at `urls`, each as [`Options::new`] reads it; nothing is sent yet.
    ///
    /// # Errors
    /// `invalid_argument` if a URL is none, if they are not an odd number from 3 to 99, if two of them name the same server (which is
    /// not independent of itself, whatever the database), or if some are `memory://` and others are not.
    pub fn new(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        let (mut targets, mut settings) = (Vec::new(), None);
        for url in urls {
            let options = Options::new(url.as_ref())?;
            targets.push(options.target);
            settings = Some(options.settings);
        }
        let nodes = Nodes::new(targets.len())?;
        let settings = settings.unwrap_or_else(|| unreachable!("there are three at least"));
        check_independence(&targets)?;
        let settings = Settings { nodes, ..settings };
        Ok(Self { targets, settings })
    }

    /// Where the servers are, and what a client of them is built on.
    pub(crate) fn open(self) -> (Vec<Site>, Arc<Backend>) {
        let sites: Vec<_> = self.targets.into_iter().map(Site::of).collect();
        // Of several in memory, the clock of the first counts.
        let clock = sites.first().map_or(Clock::Machine, Site::clock);
        let backend = Arc::new(Backend::new(self.settings, clock));
        (sites, backend)
    }

    /// Sets how long one call may take, repeats included, as [`Options::timeout`].
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn timeout(mut self, timeout: Duration) -> Result<Self, Error> {
        self.settings.timeout = Ttl::from_duration(timeout)?;
        Ok(self)
    }

    /// Sets how long a server is waited for that the others may do without; if not set a twentieth of the lock's TTL, at least
    /// 25 ms and at most 500 ms.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn node_timeout(mut self, timeout: Duration) -> Result<Self, Error> {
        self.settings.node_timeout = Some(Ttl::from_duration(timeout)?);
        Ok(self)
    }

    /// Sets what the keys of the locks say about their owner, as [`Options::owner`].
    ///
    /// # Errors
    /// `invalid_argument` if a label is empty, too long, or not of visible ASCII characters.
    pub fn owner(mut self, owner: Owner) -> Result<Self, Error> {
        self.settings.label = owner.label()?;
        Ok(self)
    }

    /// Has a server that knows nothing of a lock take it again, with its fence, after the next extend that more than half of them
    /// have granted. Such an extend waits for all servers, for as long as for one that the others can do without.
    ///
    /// Only for servers that keep the rule of the delayed restart: one that comes back without its data stays away for the longest
    /// TTL of the locks. One that comes back at once may vote for two holders, whether this is set or not.
    #[must_use]
    pub fn rejoin(mut self) -> Self {
        self.settings.rejoin = true;
        self
    }

    /// Goes by WATCH, MULTI and EXEC from the first call on, as [`Options::avoid_scripts`].
    #[must_use]
    pub fn avoid_scripts(mut self) -> Self {
        self.settings.scripts = tallylock_core::settings::Scripts::Avoided;
        self
    }
}

/// The client of these servers. Connects when that is needed.
pub(crate) fn over(sites: &[Site], backend: &Arc<Backend>, runtime: Handle) -> Client {
    let timeout = backend.settings().timeout;
    let nodes = sites.iter().map(|site| site.node(timeout, &runtime));
    let place = Place::Several(nodes.collect());
    Client::at(place, Arc::clone(backend), runtime)
}

/// Waits until more than half of the servers are connected. One that refuses us as such is not waited for: it never will be.
pub(crate) async fn await_quorum(
    nodes: &[Node],
    until: Instant,
    runtime: &Handle,
) -> Result<(), Error> {
    let mut connecting = JoinSet::new();
    let mut missing = nodes.len() / 2 + 1;
    for node in nodes {
        match node {
            Node::Memory(_) => missing = missing.saturating_sub(1),
            Node::Server(connections) => {
                let connections = Arc::clone(connections);
                let opened = async move { connections.shared(until).await.map(|_| ()) };
                connecting.spawn_on(opened, runtime);
            }
        }
    }
    let mut unreachable = Vec::new();
    while missing > 0 {
        match connecting.join_next().await {
            Some(Ok(Ok(()))) => missing -= 1,
            Some(Ok(Err(Undelivered::Refused(error)))) => return Err(error),
            Some(Ok(Err(Undelivered::NotSent(why) | Undelivered::MaybeSent(why)))) => {
                unreachable.push(why);
            }
            Some(Err(_)) => unreachable.push("the client's runtime was shut down".into()),
            None => {
                let (count, all) = (unreachable.len(), nodes.len());
                let why = unreachable.join("; ");
                let detail = format!("unreachable {count} of {all} nodes: {why}");
                return Err(Error::new(Code::Unavailable, detail));
            }
        }
    }
    // Those that are slower are opened in tasks of their own.
    Ok(())
}

fn check_independence(targets: &[Target]) -> Result<(), Error> {
    let refuse = |detail: String| Err(Error::new(Code::InvalidArgument, detail));
    for (place, target) in targets.iter().enumerate() {
        if let Some(same) = targets[..place]
            .iter()
            .position(|other| other.is_same_server(target))
        {
            return refuse(format!(
                "URLs {} and {} name the same server: independent ones are needed",
                same + 1,
                place + 1
            ));
        }
    }
    let in_memory = |target: &Target| matches!(target, Target::Memory { .. });
    if targets.iter().any(in_memory) && !targets.iter().all(in_memory) {
        return refuse("memory:// is beside real servers, whose clock is another".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(urls: &[&str]) -> String {
        let error = RedlockOptions::new(urls).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        error.to_string()
    }

    #[test]
    fn servers_are_an_odd_number_of_different_ones() {
        RedlockOptions::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        RedlockOptions::new(["memory://", "memory://", "memory://"]).unwrap();
        for (urls, words) in [
            (&[][..], "not 0"),
            (&["redis://a"], "not 1"),
            (&["redis://a", "redis://b"], "not 2"),
            (
                &["redis://a", "redis://b", "rediss://a:6379/1"],
                "URLs 1 and 3",
            ),
            (&["memory://a", "memory://b", "memory://a"], "URLs 1 and 3"),
            (&["memory://a", "memory://b", "redis://a"], "clock"),
        ] {
            assert!(refused(urls).contains(words), "{}", refused(urls));
        }
        let said = refused(&["redis://:secret@a", "redis://b", "redis://:secret@a"]);
        assert!(!said.contains("secret"), "{said}");
    }
}
