//! What ids stand for. An id that names nothing any more is an error, never a crash.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tallylock::Update;

use tallylock::Error;

use crate::client::{Client, Here};
use crate::error::{closed, forked};
use crate::fork::{PerProcess, Resident};
use crate::lease::Lease;

/// Clients come and go rarely and are looked up at every call, in children of `fork` too: the map is replaced, not locked.
static CLIENTS: LazyLock<ArcSwap<BTreeMap<u64, Arc<Client>>>> = LazyLock::new(ArcSwap::default);
static LEASES: PerProcess<Leases> = PerProcess::new();
static UPDATES: PerProcess<Updates> = PerProcess::new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The leases of one process.
struct Leases {
    held: Mutex<HashMap<u64, Arc<Lease>>>,
    /// Those of the process that forked this one.
    parents: Option<Arc<Resident<Leases>>>,
}

/// What this process has read to change it. A child of `fork` begins with none.
#[derive(Default)]
struct Updates(Mutex<HashMap<u64, Update>>);

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

/// What a client has in this process, or `closed`.
pub(crate) fn client(id: u64) -> Result<Arc<Resident<Here>>, Error> {
    client_until_forgotten(id).and_then(|here| {
        here.completions.check_open()?;
        Ok(here)
    })
}

/// The same while a client that is closed has results to be taken.
pub(crate) fn client_until_forgotten(id: u64) -> Result<Arc<Resident<Here>>, Error> {
    CLIENTS
        .load()
        .get(&id)
        .map(|client| client.here())
        .ok_or_else(|| closed("client"))
}

pub(crate) fn forget_client(id: u64) {
    CLIENTS.rcu(|clients| {
        let mut clients = BTreeMap::clone(clients);
        clients.remove(&id);
        clients
    });
}

/// Keeps a lease under the id that its owner chose, or under a new one.
pub(crate) fn add_lease(lease: Arc<Lease>, chosen: Option<u64>) -> u64 {
    let id = chosen.unwrap_or_else(next);
    own_leases().held().insert(id, lease);
    id
}

/// A lease of this process or, to be answered with `lost` and the reason `forked`, of one that forked it.
pub(crate) fn lease(id: u64) -> Result<Arc<Lease>, Error> {
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

/// Keeps what was read to be changed, under the id that its owner chose, or under a new one.
pub(crate) fn add_update(update: Update, chosen: Option<u64>) -> u64 {
    let id = chosen.unwrap_or_else(next);
    keep_update(id, update);
    id
}

pub(crate) fn keep_update(id: u64, update: Update) {
    own_updates().of_this_process().insert(id, update);
}

pub(crate) fn update(id: u64) -> Result<Update, Error> {
    let updates = own_updates();
    let found = updates.of_this_process().get(&id).cloned();
    found.ok_or_else(|| closed("update"))
}

/// What was read, which is no longer kept.
pub(crate) fn take_update(id: u64) -> Result<Update, Error> {
    let found = own_updates().of_this_process().remove(&id);
    found.ok_or_else(|| closed("update"))
}

fn own_updates() -> Arc<Resident<Updates>> {
    UPDATES.get(|_parents| Updates::default())
}

impl Updates {
    fn of_this_process(&self) -> MutexGuard<'_, HashMap<u64, Update>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
