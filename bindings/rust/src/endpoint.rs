//! Where a client's server is, and as whom the client speaks to it.

use std::fmt;
use std::path::{Path, PathBuf};

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use tallylock_core::error::{Code, Error};

/// What a URL points to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Server(Endpoint),
    /// `memory://`: a server in this process; with a name, all clients of the process share the one of that name.
    Memory {
        name: Option<String>,
    },
}

/// A server that is reached over a socket.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
}

/// Where the socket leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix(PathBuf),
}

impl Target {
    /// What this URL points to; `invalid_argument` if it is none of ours. No message shows any part of the URL but its
    /// scheme: a password may stand anywhere in a URL that is mistyped.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| refuse("it has no scheme such as redis://"))?;
        match scheme {
            "memory" => Self::memory(rest),
            "redis" | "valkey" | "unix" => Endpoint::parse(url, false).map(Self::Server),
            // redis-rs knows these only where it brings its own TLS.
            "rediss" | "valkeys" => {
                Endpoint::parse(&format!("redis://{rest}"), true).map(Self::Server)
            }
            _ => Err(refuse(
                "its scheme is none of redis, rediss, valkey, valkeys, unix and memory",
            )),
        }
    }

    /// Whether both are the same server, whatever the user or the database.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(one), Self::Server(other)) => {
                one.address.place() == other.address.place()
            }
            (Self::Memory { name: Some(one) }, Self::Memory { name: Some(other) }) => one == other,
            _ => false,
        }
    }

    fn memory(rest: &str) -> Result<Self, Error> {
        let name = rest.strip_suffix('/').unwrap_or(rest);
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(refuse(
                "the name after memory:// has letters, digits, '-', '_' and '.' only",
            ));
        }
        let name = (!name.is_empty()).then(|| name.to_owned());
        Ok(Self::Memory { name })
    }
}

impl Endpoint {
    fn parse(url: &str, tls: bool) -> Result<Self, Error> {
        let url = redis::parse_redis_url(url)
            .ok_or_else(|| refuse("it is not of the form scheme://host:port/database"))?;
        if url.fragment().is_some() {
            return Err(refuse("it has a part after '#'"));
        }
        let known: &[&str] = if url.scheme() == "unix" {
            &["db", "user", "pass"]
        } else {
            &[]
        };
        if url
            .query_pairs()
            .any(|(name, _)| !known.contains(&name.as_ref()))
        {
            return Err(refuse(
                "it has a query that is not supported; unix:// knows db, user and pass",
            ));
        }
        let info = url
            .into_connection_info()
            .map_err(|error| refuse(why(&error)))?;
        Self::from_info(&info, tls)
    }

    fn from_info(info: &ConnectionInfo, tls: bool) -> Result<Self, Error> {
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) if tls => Address::Tls {
                host: host.clone(),
                port: *port,
            },
            ConnectionAddr::Tcp(host, port) => Address::Tcp {
                host: host.clone(),
                port: *port,
            },
            ConnectionAddr::Unix(path) if path != Path::new("/") => Address::Unix(path.clone()),
            _ => return Err(refuse("it names no server")),
        };
        let settings = info.redis_settings();
        if settings.db() < 0 {
            return Err(refuse("a database number is not negative"));
        }
        let (user, password) = (settings.username(), settings.password());
        if user.is_some() && password.is_none() {
            return Err(refuse("it has a user without a password"));
        }
        Ok(Self {
            address,
            user: user.map(Into::into),
            password: password.map(Into::into),
            database: settings.db(),
        })
    }
}

impl Address {
    /// Where it is, with TLS or without.
    fn place(&self) -> (&str, u16, &Path) {
        match self {
            Self::Tcp { host, port } | Self::Tls { host, port } => (host, *port, Path::new("")),
            Self::Unix(path) => ("", 0, path),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tcp = |host: &str, port| {
            let (open, close) = if host.contains(':') {
                ("[", "]")
            } else {
                ("", "")
            };
            format!("{open}{host}{close}:{port}")
        };
        match self {
            Self::Tcp { host, port } => write!(f, "{}", tcp(host, port)),
            Self::Tls { host, port } => write!(f, "{} (TLS)", tcp(host, port)),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "(hidden)"))
            .field("database", &self.database)
            .finish()
    }
}

/// redis-rs's reason, which is a fixed text: its detail could hold a part of the URL.
fn why(error: &redis::RedisError) -> &'static str {
    match error.to_string() {
        text if text.contains("database number") => "its database is not a number",
        text if text.contains("wildcard") => "it names a wildcard address; name the server itself",
        text if text.contains("UTF-8") => "its user or password is not UTF-8",
        _ => "it names no server",
    }
}

fn refuse(why: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        format!("the URL is not one that tallylock can connect to: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        match Target::parse(url).unwrap() {
            Target::Server(endpoint) => endpoint,
            Target::Memory { .. } => panic!("{url} is a server"),
        }
    }

    #[test]
    fn a_url_is_taken_apart() {
        let plain = endpoint("redis://127.0.0.1");
        assert_eq!(
            plain.address,
            Address::Tcp {
                host: "127.0.0.1".into(),
                port: 6379
            }
        );
        assert_eq!(
            (plain.user, plain.password, plain.database),
            (None, None, 0)
        );

        let full = endpoint("valkeys://al%40ice:p%2Fss%3A@db.example:7000/3");
        assert_eq!(
            full.address,
            Address::Tls {
                host: "db.example".into(),
                port: 7000
            }
        );
        assert_eq!(
            (full.user.as_deref(), full.password.as_deref()),
            (Some("al@ice"), Some("p/ss:"))
        );
        assert_eq!(full.database, 3);

        assert_eq!(
            endpoint("redis://[::1]:7000").address.to_string(),
            "[::1]:7000"
        );
        let unix = endpoint("unix:///run/valkey.sock?db=2&user=alice&pass=secret");
        assert_eq!(unix.address, Address::Unix("/run/valkey.sock".into()));
        assert_eq!(
            (unix.password.as_deref(), unix.database),
            (Some("secret"), 2)
        );
        assert_eq!(
            endpoint("redis://:secret@h").password.as_deref(),
            Some("secret")
        );
    }

    #[test]
    fn memory_has_an_optional_name() {
        assert_eq!(
            Target::parse("memory://").unwrap(),
            Target::Memory { name: None }
        );
        assert_eq!(
            Target::parse("memory://tests").unwrap(),
            Target::Memory {
                name: Some("tests".into())
            }
        );
    }

    #[test]
    fn bad_urls_are_refused_and_no_message_shows_a_password() {
        for bad in [
            "",
            "secret",
            "secret@127.0.0.1",
            "http://user:secret@127.0.0.1",
            "redis://",
            "redis://user@h",
            "redis://:secret@127.0.0.1:port",
            "redis://:secret@127.0.0.1:99999",
            "redis://:secret@127.0.0.1/first",
            "redis://:secret@127.0.0.1/-1",
            "redis://:secret@127.0.0.1/0?password=secret",
            "rediss://:secret@127.0.0.1/#insecure",
            "redis://:secret@0.0.0.0",
            "redis://:%ff@secret",
            "unix://",
            "memory://a/b",
            "memory://user:secret@h",
        ] {
            let error = Target::parse(bad).expect_err(bad);
            assert_eq!(error.code(), Code::InvalidArgument, "{bad}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_no_password() {
        assert!(!format!("{:?}", endpoint("redis://alice:secret@h")).contains("secret"));
    }
}
