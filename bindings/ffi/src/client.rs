//! A client: what it was opened with, and what it has in each process.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tallylock::{Metrics, Options, Owner, Redlock, RedlockOptions, blocking};

use crate::argument;
use crate::completion::{AtClose, Completions, Outcome, submit};
use crate::error::CallError;
use crate::fork::{PerProcess, Resident};
use crate::{registry, runtime};

/// Opens a client and connects it, on the calling thread. `timeout_us` is how long one call may take, the shared default if not
/// given. `owner` is what people see in the value of this client's locks, host and process id if not given, nothing at all if
/// `owner_off`. With `avoid_scripts` it goes by WATCH, MULTI and EXEC from the beginning. Gives the client's id.
///
/// Fails with `invalid_argument`, with `unavailable` if the server can't be reached or is silent, with `forbidden` if it wants
/// another user or password.
#[uniffi::export]
pub fn connect(
    url: String,
    timeout_us: Option<i64>,
    owner: Option<String>,
    owner_off: bool,
    avoid_scripts: bool,
) -> Result<u64, CallError> {
    let common = Common::new(timeout_us, owner, owner_off, avoid_scripts)?;
    connected(Client::new(Servers::One(url), common)?)
}

/// Opens a client that connects later: by `submit_connect`, or at its first verb. The arguments are those of `connect`.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn open(
    url: String,
    timeout_us: Option<i64>,
    owner: Option<String>,
    owner_off: bool,
    avoid_scripts: bool,
) -> Result<u64, CallError> {
    let common = Common::new(timeout_us, owner, owner_off, avoid_scripts)?;
    Ok(registry::add_client(Client::new(
        Servers::One(url),
        common,
    )?))
}

/// Connects a client in the background; the result is nothing, or an error as of `connect`.
#[uniffi::export]
pub fn submit_connect(client: u64, ticket: u64) -> Result<(), CallError> {
    let none = Arc::default();
    submit(client, ticket, none, AtClose::Ends, |here| async move {
        here.background().reach().await?;
        Ok(Outcome::Nothing)
    })
}

/// Closes a client: every later call with its id is `closed`, and so are acquires under way, which leave no lock behind. Other
/// calls under way run to their end, and their results can be taken as before; then the connections are closed. Touches no
/// data; leases stay until they are freed. Closing again does nothing.
#[uniffi::export]
pub fn close(client: u64) {
    if let Ok(here) = registry::client(client) {
        here.completions.close();
        here.close_if_idle();
        here.completions.forget_if_taken(client);
    }
}

/// How many counters had lost their TTL and were given it back by a drain of this client.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn client_healed(client: u64) -> Result<u64, CallError> {
    Ok(registry::client(client)?.metrics().healed)
}

/// How many locks this client has stolen.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn client_stolen(client: u64) -> Result<u64, CallError> {
    Ok(registry::client(client)?.metrics().stolen)
}

/// What a client was opened with, and what it has in each process.
pub(crate) struct Client {
    settings: Settings,
    here: PerProcess<Here>,
}

/// What a client is opened with.
#[derive(Clone)]
struct Settings {
    servers: Servers,
    common: Common,
}

/// Where a client's data is.
#[derive(Clone)]
pub(crate) enum Servers {
    One(String),
    /// Locks alone, on several independent servers.
    Several {
        urls: Vec<String>,
        node_timeout: Option<Duration>,
        rejoin: bool,
    },
}

/// What all clients are opened with.
#[derive(Clone)]
pub(crate) struct Common {
    timeout: Option<Duration>,
    owner: Owner,
    avoid_scripts: bool,
}

/// The same, checked.
#[derive(Clone)]
enum Checked {
    One(Options),
    Several(RedlockOptions),
}

/// What a client has in one process: its two faces, each of which connects when it is first needed, and its results.
pub(crate) struct Here {
    options: Checked,
    pub(crate) has_memory: bool,
    blocking: OnceLock<blocking::Client>,
    background: OnceLock<tallylock::Client>,
    pub(crate) completions: Completions,
}

/// Connects a new client on the calling thread, and gives its id.
pub(crate) fn connected(client: Client) -> Result<u64, CallError> {
    client.here().blocking().reach()?;
    Ok(registry::add_client(client))
}

impl Common {
    pub(crate) fn new(
        timeout_us: Option<i64>,
        owner: Option<String>,
        owner_off: bool,
        avoid_scripts: bool,
    ) -> Result<Self, CallError> {
        let owner = match (owner, owner_off) {
            (_, true) => Owner::None,
            (Some(label), false) => Owner::Label(label),
            (None, false) => Owner::HostAndPid,
        };
        Ok(Self {
            timeout: timeout_us.map(argument::ttl).transpose()?,
            owner,
            avoid_scripts,
        })
    }
}

impl Client {
    pub(crate) fn new(servers: Servers, common: Common) -> Result<Self, CallError> {
        let settings = Settings { servers, common };
        settings.checked()?;
        Ok(Self {
            settings,
            here: PerProcess::new(),
        })
    }

    /// What this client has in this process.
    pub(crate) fn here(&self) -> Arc<Resident<Here>> {
        self.here.get(|parents| Here {
            has_memory: self.settings.has_memory(),
            options: self
                .settings
                .checked()
                .expect("the same settings were good when the client was opened"),
            blocking: OnceLock::new(),
            background: OnceLock::new(),
            completions: Completions::of_a_child(
                parents.as_ref().map(|parents| &parents.completions),
            ),
        })
    }
}

impl Settings {
    fn has_memory(&self) -> bool {
        matches!(&self.servers, Servers::One(url) if url.starts_with("memory:"))
    }

    fn checked(&self) -> Result<Checked, CallError> {
        let Common {
            timeout,
            owner,
            avoid_scripts,
        } = self.common.clone();
        Ok(match &self.servers {
            Servers::One(url) => {
                let mut options = Options::new(&named(url))?.owner(owner)?;
                if let Some(timeout) = timeout {
                    options = options.timeout(timeout)?;
                }
                if avoid_scripts {
                    options = options.avoid_scripts();
                }
                Checked::One(options)
            }
            Servers::Several {
                urls,
                node_timeout,
                rejoin,
            } => {
                let urls = urls.iter().map(|url| named(url));
                let mut options = RedlockOptions::new(urls)?.owner(owner)?;
                if let Some(timeout) = timeout {
                    options = options.timeout(timeout)?;
                }
                if let Some(timeout) = node_timeout {
                    options = options.node_timeout(*timeout)?;
                }
                if avoid_scripts {
                    options = options.avoid_scripts();
                }
                if *rejoin {
                    options = options.rejoin();
                }
                Checked::Several(options)
            }
        })
    }
}

/// The URL; where it is `memory://`, with a name: both connections of a client, and nobody else's, see the same memory, and a
/// child of fork starts with an empty one.
fn named(url: &str) -> String {
    if url == "memory://" {
        let (process, number) = (std::process::id(), registry::next());
        format!("memory://client-{process}-{number}")
    } else {
        url.to_owned()
    }
}

impl Here {
    /// For calls on the calling thread.
    pub(crate) fn blocking(&self) -> &blocking::Client {
        if let Some(client) = self.blocking.get() {
            return client;
        }
        let client = self.blocking.get_or_init(|| match self.options.clone() {
            Checked::One(options) => blocking::Client::open(options),
            Checked::Several(options) => blocking::Redlock::open(options).client().clone(),
        });
        // Closed meanwhile, which has not seen this one.
        self.close_if_idle();
        client
    }

    /// For calls in the background.
    pub(crate) fn background(&self) -> &tallylock::Client {
        self.background.get_or_init(|| {
            let runtime = runtime::handle();
            match self.options.clone() {
                Checked::One(options) => tallylock::Client::open_on(&runtime, options),
                Checked::Several(options) => Redlock::open_on(&runtime, options).client().clone(),
            }
        })
    }

    /// What both connections have counted.
    pub(crate) fn metrics(&self) -> Metrics {
        let blocking = self.blocking.get().map(blocking::Client::metrics);
        let background = self.background.get().map(tallylock::Client::metrics);
        let both = blocking.into_iter().chain(background);
        both.fold(Metrics::default(), Metrics::plus)
    }

    /// Closes the connections if the client is closed and has no call under way in the background.
    pub(crate) fn close_if_idle(&self) {
        if !self.completions.are_over() {
            return;
        }
        if let Some(client) = self.blocking.get() {
            client.close();
        }
        if let Some(client) = self.background.get() {
            client.close();
        }
    }
}
