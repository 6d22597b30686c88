//! What ids stand for. An id that names nothing any more is an error, never a crash.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::client::Client;
use crate::error::{CallError, closed, forked};
use crate::fork::{PerProcess, Resident};
use crate::lease::Lease;

/// Clients come and go rarely and are looked up at every call, in children of `fork` too: the map is replaced, not locked.
static CLIENTS: LazyLock<ArcSwap<BTreeMap<u64, Arc<Client>>>> = LazyLock::new(ArcSwap::default);
static LEASES: PerProcess<Leases> = PerProcess::new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The leases of one process.
struct Leases {
    held: Mutex<HashMap<u64, Arc<Lease>>>,
    /// Those of the process that forked this one.
    parents: Option<Arc<Resident<Leases>>>,
}

pub(crate) fn add_client(client: Client) -> u64 {
    let id = next();
    let client = Arc::new(client);
    CLIENTS.rcu(|clients| {
        let mut clients = BTreeMap::clone(clients);
        clients.insert(id, Arc::clone(&client));
        clients
    });
    id
}

pub(crate) fn client(id: u64) -> Result<Arc<Client>, CallError> {
    CLIENTS
        .load()
        .get(&id)
        .map(Arc::clone)
        .ok_or_else(|| closed("client"))
}

pub(crate) fn remove_client(id: u64) -> Option<Arc<Client>> {
    let before = CLIENTS.rcu(|clients| {
        let mut clients = BTreeMap::clone(clients);
        clients.remove(&id);
        clients
    });
    before.get(&id).map(Arc::clone)
}

/// Keeps a lease under the id that its owner chose, or under a new one.
pub(crate) fn add_lease(lease: Arc<Lease>, chosen: Option<u64>) -> u64 {
    let id = chosen.unwrap_or_else(next);
    own_leases().held().insert(id, lease);
    id
}

/// A lease of this process or, to be answered with `lost` and the reason `forked`, of one that forked it.
pub(crate) fn lease(id: u64) -> Result<Arc<Lease>, CallError> {
    let leases = own_leases();
    if let Some(lease) = leases.held().get(&id) {
        return Ok(Arc::clone(lease));
    }
    let mut parents = leases.parents.as_ref();
    while let Some(leases) = parents {
        // A thread that this process doesn't have may hold the lock for ever.
        let Ok(held) = leases.held.try_lock() else {
            return Err(forked());
        };
        if let Some(lease) = held.get(&id) {
            return Ok(Arc::clone(lease));
        }
        parents = leases.parents.as_ref();
    }
    Err(closed("lease"))
}

/// Forgets a lease of this process; a parent's is left alone.
pub(crate) fn remove_lease(id: u64) -> Option<Arc<Lease>> {
    own_leases().held().remove(&id)
}

/// How many leases of this process were not freed yet.
pub(crate) fn count_leases() -> u64 {
    own_leases().held().len() as u64
}

fn own_leases() -> Arc<Resident<Leases>> {
    LEASES.get(|parents| Leases {
        held: Mutex::default(),
        parents,
    })
}

impl Leases {
    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<Lease>>> {
        // Nothing panics while it holds the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that was not given before, in this process or its parents.
pub(crate) fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
