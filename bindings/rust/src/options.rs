//! What a client is made with.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::settings::{Scripts, Settings};
use tallylock_core::time::Ttl;
use tallylock_core::token::Label;

use crate::endpoint::Target;

/// What a client is made with: a URL and, where the defaults do not suit, how long a call may take and what its locks
/// say about their owner.
///
/// ```
/// use std::time::Duration;
/// use tallylock::{Options, Owner, blocking::Client};
///
/// let options = Options::new("memory://")?.timeout(Duration::from_millis(500))?.owner(Owner::Label("biller".into()))?;
/// let client = Client::connect_with(options)?;
/// # Ok::<(), tallylock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) target: Target,
    pub(crate) settings: Settings,
}

/// What the keys of a client's locks say about their owner, for people who look at them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Owner {
    /// The name of the machine and the id of the process, such as `web-3.4711`.
    #[default]
    HostAndPid,
    /// This text: 1 to 64 visible ASCII characters.
    Label(String),
    /// Nothing.
    None,
}

impl Options {
    /// Options for the server at `url`; nothing is sent yet.
    ///
    /// URLs are `redis://`, `valkey://`, `rediss://` and `valkeys://` (both with TLS), as in
    /// `rediss://user:password@host:6379/0`; `unix:///path/to.sock?db=0&user=...&pass=...`; and `memory://`, a server in
    /// this process for tests: private to the client, or with a name (`memory://shared`) common to all clients of the
    /// process that use it, for as long as there is one.
    ///
    /// # Errors
    /// `invalid_argument` if the URL is none of these. The message shows no part of it but says what is wrong.
    pub fn new(url: &str) -> Result<Self, Error> {
        let settings = Settings {
            label: Owner::default().label()?,
            ..Settings::default()
        };
        Ok(Self {
            target: Target::parse(url)?,
            settings,
        })
    }

    /// Where the server is, for people: host and port, or the socket's path; never a user or password.
    pub fn server(&self) -> String {
        match &self.target {
            Target::Server(endpoint) => endpoint.address.to_string(),
            Target::Memory { .. } => "memory".to_owned(),
        }
    }

    /// Sets how long one call may take, repeats included; 2 s if not set. An acquire that waits has its own deadline.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn timeout(mut self, timeout: Duration) -> Result<Self, Error> {
        self.settings.timeout = Ttl::from_duration(timeout)?;
        Ok(self)
    }

    /// Sets what the keys of the client's locks say about their owner; host and process id if not set.
    ///
    /// # Errors
    /// `invalid_argument` if a label is empty, too long, or not of visible ASCII characters.
    pub fn owner(mut self, owner: Owner) -> Result<Self, Error> {
        self.settings.label = owner.label()?;
        Ok(self)
    }

    /// Goes by WATCH, MULTI and EXEC from the first call on, and sends no script.
    ///
    /// A client finds out by itself that a server or an account forbids scripts, from its first refusal; this is for
    /// where such a refusal is logged as an attack. `memory://` is as it is without.
    #[must_use]
    pub fn avoid_scripts(mut self) -> Self {
        self.settings.scripts = Scripts::Avoided;
        self
    }
}

impl Owner {
    pub(crate) fn label(self) -> Result<Option<Label>, Error> {
        match self {
            Self::HostAndPid => Ok(Some(host_and_pid())),
            Self::Label(text) => Label::new(text).map(Some),
            Self::None => Ok(None),
        }
    }
}

fn host_and_pid() -> Label {
    let pid = format!(".{}", std::process::id());
    let name = rustix::system::uname();
    let host: String = name
        .nodename()
        .to_string_lossy()
        .chars()
        .map(|character| {
            if character.is_ascii_graphic() {
                character
            } else {
                '-'
            }
        })
        .take(Label::LONGEST - pid.len())
        .collect();
    Label::new(host + &pid)
        .expect("at most 64 visible ASCII characters, and a process id is not empty")
}

#[cfg(test)]
mod tests {
    use tallylock_core::error::Code;

    use super::*;

    #[test]
    fn the_owner_is_host_and_process_unless_said_otherwise() {
        let options = Options::new("memory://").unwrap();
        let label = options.settings.label.clone().unwrap();
        assert!(
            label
                .as_str()
                .ends_with(&format!(".{}", std::process::id()))
        );
        assert_eq!(
            options.clone().owner(Owner::None).unwrap().settings.label,
            None
        );
        let named = options.owner(Owner::Label("biller".into())).unwrap();
        assert_eq!(named.settings.label.unwrap().as_str(), "biller");
    }

    #[test]
    fn the_server_is_named_without_user_and_password() {
        let named = |url| Options::new(url).unwrap().server();
        assert_eq!(named("rediss://alice:secret@h:7000/3"), "h:7000 (TLS)");
        assert_eq!(
            named("unix:///run/s.sock?user=alice&pass=secret"),
            "/run/s.sock"
        );
        assert_eq!(named("memory://tests"), "memory");
    }

    #[test]
    fn bad_options_are_refused() {
        let options = Options::new("memory://").unwrap();
        assert_eq!(
            options.clone().timeout(Duration::ZERO).unwrap_err().code(),
            Code::InvalidArgument
        );
        assert_eq!(
            options
                .owner(Owner::Label("two words".into()))
                .unwrap_err()
                .code(),
            Code::InvalidArgument
        );
    }
}
