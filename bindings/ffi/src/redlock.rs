//! Clients of several independent servers, which have locks only. Of the verbs those of locks and leases are theirs; what is
//! about one server (inspect, steal) is `unsupported`.

use crate::client::{Client, Common, Servers, connected};
use crate::error::CallError;
use crate::{argument, registry};

/// Opens a client of several servers and connects it to more than half of them, on the calling thread. The first three
/// arguments are the servers' URLs, how long one of them is waited for that the others can do without (a small part of the
/// lock's TTL if not given), and whether one that has lost a lock has it again after the next extend; the others are those
/// of `connect`. Gives the client's id.
///
/// Fails with `invalid_argument`, also unless the servers are an odd number from 3 to 99 and each another; with `unavailable` if
/// too few of them can be reached; with `forbidden` if one wants another user or password.
#[uniffi::export]
pub fn connect_redlock(
    urls: Vec<String>,
    node_timeout_us: Option<i64>,
    rejoin: bool,
    timeout_us: Option<i64>,
    owner: Option<String>,
    owner_off: bool,
    avoid_scripts: bool,
) -> Result<u64, CallError> {
    let servers = several(urls, node_timeout_us, rejoin)?;
    let common = Common::new(timeout_us, owner, owner_off, avoid_scripts)?;
    connected(Client::new(servers, common)?)
}

/// Opens a client of several servers that connects later: by `submit_connect`, or at its first verb. The arguments are those
/// of `connect_redlock`.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn open_redlock(
    urls: Vec<String>,
    node_timeout_us: Option<i64>,
    rejoin: bool,
    timeout_us: Option<i64>,
    owner: Option<String>,
    owner_off: bool,
    avoid_scripts: bool,
) -> Result<u64, CallError> {
    let servers = several(urls, node_timeout_us, rejoin)?;
    let common = Common::new(timeout_us, owner, owner_off, avoid_scripts)?;
    Ok(registry::add_client(Client::new(servers, common)?))
}

fn several(
    urls: Vec<String>,
    node_timeout_us: Option<i64>,
    rejoin: bool,
) -> Result<Servers, CallError> {
    Ok(Servers::Several {
        urls,
        node_timeout: node_timeout_us.map(argument::ttl).transpose()?,
        rejoin,
    })
}
