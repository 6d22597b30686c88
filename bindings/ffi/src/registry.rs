//! What ids stand for. An id that names nothing any more is an error, never a crash.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tallylock::{Code, Error, Meter, Sweep, Update};

use crate::client::{Client, Here};
use crate::error::{closed, forked};
use crate::fork::{PerProcess, Resident};
use crate::lease::Lease;

/// Clients come and go rarely and are looked up at every call, in children of `fork` too: the map is replaced, not locked.
static CLIENTS: LazyLock<ArcSwap<BTreeMap<u64, Arc<Client>>>> = LazyLock::new(ArcSwap::default);
static LEASES: PerProcess<Kept<Lease>> = PerProcess::new();
static METERS: PerProcess<Kept<Meter>> = PerProcess::new();
static UPDATES: PerProcess<Updates> = PerProcess::new();
static SWEEPS: PerProcess<Sweeps> = PerProcess::new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What one process holds of a kind that does not pass to its children.
struct Kept<T> {
    held: Mutex<HashMap<u64, Arc<T>>>,
    /// What the process that forked this one holds.
    parents: Option<Arc<Resident<Kept<T>>>>,
}

/// What an id stands for.
enum Found<T> {
    Ours(Arc<T>),
    /// Something that a process holds that forked this one; which it is, unless a thread that this process doesn't have
    /// may keep it locked for ever.
    Parents(Option<Arc<T>>),
    Nothing,
}

/// What this process has read to change it. A child of `fork` begins with none.
#[derive(Default)]
struct Updates(Mutex<HashMap<u64, Update>>);

/// The passes of sweepers of this process. A child of `fork` begins with none: their locks are the parent's.
#[derive(Default)]
struct Sweeps(Mutex<HashMap<u64, SharedSweep>>);

/// A pass, in which one verb runs at a time.
pub(crate) type SharedSweep = Arc<tokio::sync::Mutex<Sweep>>;

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
    match own_leases().find(id) {
        Found::Ours(lease) | Found::Parents(Some(lease)) => Ok(lease),
        Found::Parents(None) => Err(forked()),
        Found::Nothing => Err(closed("lease")),
    }
}

/// Forgets a lease of this process; a parent's is left alone.
pub(crate) fn remove_lease(id: u64) -> Option<Arc<Lease>> {
    own_leases().held().remove(&id)
}

/// How many leases of this process were not freed yet.
pub(crate) fn count_leases() -> u64 {
    own_leases().held().len() as u64
}

/// Keeps a meter under the id that its owner chose, or under a new one.
pub(crate) fn add_meter(meter: Meter, chosen: Option<u64>) -> u64 {
    let id = chosen.unwrap_or_else(next);
    own_meters().held().insert(id, Arc::new(meter));
    id
}

/// A meter of this process, or `closed`.
pub(crate) fn meter(id: u64) -> Result<Arc<Meter>, Error> {
    match own_meters().find(id) {
        Found::Ours(meter) => Ok(meter),
        Found::Parents(_) => Err(Error::new(
            Code::Closed,
            "the meter belongs to the process that forked this one, which counts what it holds; make one in each process",
        )),
        Found::Nothing => Err(closed("meter")),
    }
}

/// Forgets a meter of this process; a parent's is left alone.
pub(crate) fn remove_meter(id: u64) {
    let removed = own_meters().held().remove(&id);
    // Not under the lock: it may be the last to hold a journal's files.
    drop(removed);
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

/// Keeps a pass under its id.
pub(crate) fn add_sweep(id: u64, sweep: Sweep) {
    let shared = Arc::new(tokio::sync::Mutex::new(sweep));
    own_sweeps().of_this_process().insert(id, shared);
}

pub(crate) fn sweep(id: u64) -> Result<SharedSweep, Error> {
    let sweeps = own_sweeps();
    let found = sweeps.of_this_process().get(&id).cloned();
    found.ok_or_else(|| closed("sweep"))
}

pub(crate) fn remove_sweep(id: u64) -> Option<SharedSweep> {
    own_sweeps().of_this_process().remove(&id)
}

fn own_sweeps() -> Arc<Resident<Sweeps>> {
    SWEEPS.get(|_parents| Sweeps::default())
}

impl Sweeps {
    fn of_this_process(&self) -> MutexGuard<'_, HashMap<u64, SharedSweep>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

fn own_leases() -> Arc<Resident<Kept<Lease>>> {
    LEASES.get(Kept::new)
}

fn own_meters() -> Arc<Resident<Kept<Meter>>> {
    METERS.get(Kept::new)
}

impl<T> Kept<T> {
    fn new(parents: Option<Arc<Resident<Self>>>) -> Self {
        Self {
            held: Mutex::default(),
            parents,
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        // Nothing panics while it holds the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u64) -> Found<T> {
        if let Some(ours) = self.held().get(&id) {
            return Found::Ours(Arc::clone(ours));
        }
        let mut parents = self.parents.as_ref();
        while let Some(kept) = parents {
            // A thread that this process doesn't have may hold the lock for ever.
            let Ok(held) = kept.held.try_lock() else {
                return Found::Parents(None);
            };
            if let Some(found) = held.get(&id) {
                return Found::Parents(Some(Arc::clone(found)));
            }
            parents = kept.parents.as_ref();
        }
        Found::Nothing
    }
}

/// A number that was not given before, in this process or its parents.
pub(crate) fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
