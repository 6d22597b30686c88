//! Which server a command is about.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use tallylock::blocking::{Client, PlainConnection};
use tallylock::{Options, Owner};

use crate::duration;
use crate::status::Failure;

/// The variable that holds the URL if none is given.
pub(crate) const VARIABLE: &str = "TALLYLOCK_REDIS_URL";

/// A URL as it was given. It may hold a password: there is no way to show it.
#[derive(Clone)]
pub(crate) struct Url(String);

/// The server of a command that has one.
#[derive(Args)]
pub(crate) struct Server {
    #[arg(
        value_name = "URL",
        help = "Where the server is, such as redis://user:password@host:6379/0; else what TALLYLOCK_REDIS_URL holds"
    )]
    url: Option<Url>,

    #[command(flatten)]
    patience: Patience,
}

/// How long servers are waited for.
#[derive(Args)]
pub(crate) struct Patience {
    /// How long one call to a server may take
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
}

impl Server {
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        match &self.url {
            Some(url) => self.patience.options(url),
            None => self.patience.options(&Url::from_environment()?),
        }
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::connect_with(self.options()?)?)
    }

    pub(crate) fn plain(&self) -> Result<PlainConnection, Failure> {
        Ok(PlainConnection::open(&self.options()?)?)
    }

    /// The key that was given beside the URL.
    ///
    /// A single argument is taken for the key. If it is a URL, the key was forgotten: it must not be shown as one, since it
    /// may hold a password.
    pub(crate) fn key<'a>(&self, key: &'a OsStr) -> Result<&'a [u8], Failure> {
        let bytes = key.as_encoded_bytes();
        if self.url.is_none() && bytes.windows(3).any(|window| window == b"://") {
            return Err(Failure::usage(
                "the key is missing: after the URL comes a KEY",
            ));
        }
        Ok(bytes)
    }
}

impl Patience {
    pub(crate) fn options(&self, url: &Url) -> Result<Options, Failure> {
        Ok(Options::new(&url.0)?
            .timeout(self.timeout)?
            .owner(Owner::Label("tallylock-cli".to_owned()))?)
    }
}

impl Url {
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let url = std::env::var_os(VARIABLE).filter(|url| !url.is_empty());
        let url =
            url.ok_or_else(|| Failure::usage(format!("no URL: give one, or set {VARIABLE}")))?;
        let url = OsString::into_string(url)
            .map_err(|_| Failure::usage(format!("the URL in {VARIABLE} is not UTF-8")))?;
        Ok(Self(url))
    }
}

impl FromStr for Url {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}
