//! A client: what it was opened with, and what it has in each process.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tallylock::{Error, Options, Owner, blocking};
use tokio::sync::OnceCell;

use crate::argument;
use crate::completion::{AtClose, Completions, Outcome, submit};
use crate::error::CallError;
use crate::fork::{PerProcess, Resident};
use crate::registry;

/// Opens a client and connects it, on the calling thread. `timeout_us` is how long one call may take, the shared default if not
/// given. `owner` is what people see in the value of this client's locks, host and process id if not given, nothing at all if
/// `owner_off`. Gives the client's id.
///
/// Fails with `invalid_argument`, with `unavailable` if the server can't be reached or is silent, with `forbidden` if it wants
/// another user or password.
#[uniffi::export]
pub fn connect(
    url: String,
    timeout_us: Option<i64>,
    owner: Option<String>,
    owner_off: bool,
) -> Result<u64, CallError> {
    let client = Client::new(url, timeout_us, owner, owner_off)?;
    client.here().blocking()?;
    Ok(registry::add_client(client))
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
) -> Result<u64, CallError> {
    Ok(registry::add_client(Client::new(
        url, timeout_us, owner, owner_off,
    )?))
}

/// Connects a client in the background; the result is nothing, or an error as of `connect`.
#[uniffi::export]
pub fn submit_connect(client: u64, ticket: u64) -> Result<(), CallError> {
    let none = Arc::default();
    submit(client, ticket, none, AtClose::Ends, |here| async move {
        here.background().await?;
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
    let here = registry::client(client)?;
    Ok(here.blocking.get().map_or(0, blocking::Client::healed)
        + here.background.get().map_or(0, tallylock::Client::healed))
}

/// What a client was opened with, and what it has in each process.
pub(crate) struct Client {
    settings: Settings,
    here: PerProcess<Here>,
}

/// What a client is opened with.
#[derive(Clone)]
struct Settings {
    url: String,
    timeout: Option<Duration>,
    owner: Owner,
}

/// What a client has in one process: its two connections, each made when it is first needed, and its results.
pub(crate) struct Here {
    options: Options,
    pub(crate) has_memory: bool,
    blocking: OnceLock<blocking::Client>,
    background: OnceCell<tallylock::Client>,
    pub(crate) completions: Completions,
}

impl Client {
    fn new(
        url: String,
        timeout_us: Option<i64>,
        owner: Option<String>,
        owner_off: bool,
    ) -> Result<Self, CallError> {
        let owner = match (owner, owner_off) {
            (_, true) => Owner::None,
            (Some(label), false) => Owner::Label(label),
            (None, false) => Owner::HostAndPid,
        };
        let timeout = timeout_us.map(argument::ttl).transpose()?;
        let settings = Settings {
            url,
            timeout,
            owner,
        };
        settings.options()?;
        Ok(Self {
            settings,
            here: PerProcess::new(),
        })
    }

    /// What this client has in this process.
    pub(crate) fn here(&self) -> Arc<Resident<Here>> {
        self.here.get(|parents| Here {
            has_memory: self.settings.url.starts_with("memory:"),
            options: self
                .settings
                .options()
                .expect("the same settings were good when the client was opened"),
            blocking: OnceLock::new(),
            background: OnceCell::new(),
            completions: Completions::of_a_child(
                parents.as_ref().map(|parents| &parents.completions),
            ),
        })
    }
}

impl Settings {
    fn options(&self) -> Result<Options, CallError> {
        let url = if self.url == "memory://" {
            // Both connections of this client, and nobody else's, see the same memory; a child of fork starts with an empty one.
            format!(
                "memory://client-{}-{}",
                std::process::id(),
                registry::next()
            )
        } else {
            self.url.clone()
        };
        let options = Options::new(&url)?.owner(self.owner.clone())?;
        Ok(match self.timeout {
            Some(timeout) => options.timeout(timeout)?,
            None => options,
        })
    }
}

impl Here {
    /// The connections for calls on the calling thread.
    pub(crate) fn blocking(&self) -> Result<&blocking::Client, Error> {
        if let Some(client) = self.blocking.get() {
            return Ok(client);
        }
        let client = blocking::Client::connect_with(self.options.clone())?;
        // Two threads may both have connected: the slower one's is dropped.
        let client = self.blocking.get_or_init(|| client);
        // Closed meanwhile, which has not seen this connection.
        self.close_if_idle();
        Ok(client)
    }

    /// The connection for calls in the background.
    pub(crate) async fn background(&self) -> Result<&tallylock::Client, Error> {
        let connect = || tallylock::Client::connect_with(self.options.clone());
        self.background.get_or_try_init(connect).await
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
