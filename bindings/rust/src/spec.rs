//! What a handle was opened for, checked once: the requests of both clients come from here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tallylock_core::claim::{Abort, Commit, Open};
use tallylock_core::counter::{Add, AddOnce, Drain, Entry, Expiry, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::heal::Heal;
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::lock::{Keeping, LeaseTtl, Lock, Transferred, already_held};
use tallylock_core::time::{Instant, Ttl};
use tallylock_core::value::{
    CompareAndSet, Get, GuardedDelete, GuardedSet, ReplaceIfPresent, Touch,
};

use crate::held::{End, Held};

/// A counter's key, and how it is to be used.
#[derive(Clone, Debug)]
pub(crate) struct CounterSpec {
    key: Key,
    ttl: Ttl,
    expiry: Expiry,
    remembered: Option<Ttl>,
    fence: Option<u64>,
}

impl CounterSpec {
    pub(crate) fn new(key: &[u8], ttl: Duration) -> Result<Self, Error> {
        let key = Key::new(key)?;
        let ttl = Ttl::from_duration(ttl).map_err(|error| error.about(key.as_bytes()))?;
        Ok(Self {
            key,
            ttl,
            expiry: Expiry::default(),
            remembered: None,
            fence: None,
        })
    }

    pub(crate) fn fixed(self) -> Self {
        Self {
            expiry: Expiry::Fixed,
            ..self
        }
    }

    pub(crate) fn remembering(self, time: Duration) -> Result<Self, Error> {
        let remembered = Ttl::from_duration(time).map_err(|error| self.about(error))?;
        Ok(Self {
            remembered: Some(remembered),
            ..self
        })
    }

    pub(crate) fn fenced(self, fence: u64) -> Self {
        Self {
            fence: Some(fence),
            ..self
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn add(&self, amount: i64) -> Add {
        Add {
            key: self.key.clone(),
            amount,
            ttl: self.ttl,
            expiry: self.expiry,
        }
    }

    pub(crate) fn add_once(&self, amount: i64, id: &[u8]) -> Result<AddOnce, Error> {
        Ok(AddOnce {
            key: self.key.clone(),
            id: self.id(id)?,
            amount,
            ttl: self.ttl,
            expiry: self.expiry,
            remembered: self.remembered,
        })
    }

    pub(crate) fn entry(&self, amount: i64) -> Entry {
        Entry::Plain(self.add(amount))
    }

    pub(crate) fn entry_once(&self, amount: i64, id: &[u8]) -> Result<Entry, Error> {
        Ok(Entry::Keyed(self.add_once(amount, id)?))
    }

    pub(crate) fn read(&self) -> Read {
        Read {
            key: self.key.clone(),
        }
    }

    pub(crate) fn drain(&self) -> Drain {
        Drain {
            key: self.key.clone(),
            ttl: self.ttl,
            fence: self.fence,
        }
    }

    pub(crate) fn finish(&self) -> Finish {
        Finish {
            key: self.key.clone(),
        }
    }

    pub(crate) fn claim(&self, id: &[u8]) -> Result<Open, Error> {
        Ok(Open {
            key: self.key.clone(),
            id: self.id(id)?,
            ttl: self.ttl,
            fence: self.fence,
        })
    }

    pub(crate) fn commit(&self, id: &[u8], amount: i64) -> Result<Commit, Error> {
        Ok(Commit {
            key: self.key.clone(),
            id: self.id(id)?,
            amount,
        })
    }

    pub(crate) fn abort(&self, id: &[u8]) -> Result<Abort, Error> {
        Ok(Abort {
            key: self.key.clone(),
            id: self.id(id)?,
            ttl: self.ttl,
            fence: self.fence,
        })
    }

    fn id(&self, id: &[u8]) -> Result<Id, Error> {
        Id::new(id).map_err(|error| self.about(error))
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.key.as_bytes())
    }
}

/// A value's key.
#[derive(Clone, Debug)]
pub(crate) struct ValueSpec {
    key: Key,
}

impl ValueSpec {
    pub(crate) fn new(key: &[u8]) -> Result<Self, Error> {
        Ok(Self {
            key: Key::new(key)?,
        })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn get(&self) -> Get {
        Get {
            key: self.key.clone(),
        }
    }

    pub(crate) fn replace_if_present(
        &self,
        value: &[u8],
        ttl: Duration,
    ) -> Result<ReplaceIfPresent, Error> {
        Ok(ReplaceIfPresent {
            key: self.key.clone(),
            value: value.to_vec(),
            ttl: self.ttl(ttl)?,
        })
    }

    pub(crate) fn touch(&self, ttl: Duration) -> Result<Touch, Error> {
        Ok(Touch {
            key: self.key.clone(),
            ttl: self.ttl(ttl)?,
        })
    }

    pub(crate) fn compare_and_set(
        &self,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<CompareAndSet, Error> {
        let (expected, value) = (expected.to_vec(), value.to_vec());
        Ok(CompareAndSet {
            key: self.key.clone(),
            expected,
            value,
            ttl: self.ttl(ttl)?,
        })
    }

    pub(crate) fn guarded_set(
        &self,
        value: &[u8],
        fence: u64,
        ttl: Duration,
    ) -> Result<GuardedSet, Error> {
        Ok(GuardedSet {
            key: self.key.clone(),
            value: value.to_vec(),
            fence,
            ttl: self.ttl(ttl)?,
        })
    }

    pub(crate) fn guarded_delete(&self, fence: u64) -> GuardedDelete {
        GuardedDelete {
            key: self.key.clone(),
            fence,
        }
    }

    pub(crate) fn ttl(&self, ttl: Duration) -> Result<Ttl, Error> {
        Ttl::from_duration(ttl).map_err(|error| error.about(self.key.as_bytes()))
    }
}

/// The healing of this key, whatever it is.
pub(crate) fn heal(key: &[u8], ttl: Duration) -> Result<Heal, Error> {
    Ok(Heal {
        key: key.to_vec(),
        ttl: Ttl::from_duration(ttl).map_err(|error| error.about(key))?,
    })
}

/// A lock's key and TTL, how its leases are kept, and the one that its handle has.
#[derive(Debug)]
pub(crate) struct LockSpec {
    pub(crate) lock: Lock,
    pub(crate) keeping: Keeping,
    current: Mutex<Weak<Held>>,
}

impl LockSpec {
    pub(crate) fn new(key: &[u8], ttl: Duration) -> Result<Self, Error> {
        Ok(Self::of(lock(key, ttl)?, Keeping::default()))
    }

    pub(crate) fn of(lock: Lock, keeping: Keeping) -> Self {
        Self {
            lock,
            keeping,
            current: Mutex::default(),
        }
    }

    pub(crate) fn renewed_every(self, interval: Duration) -> Result<Self, Error> {
        let keeping = Ttl::from_duration(interval)
            .and_then(|interval| self.keeping.every(interval, self.lock.ttl()))
            .map_err(|error| self.about(error))?;
        Ok(Self::of(self.lock, keeping))
    }

    pub(crate) fn without_renewal(self) -> Self {
        let keeping = self.keeping.never();
        Self::of(self.lock, keeping)
    }

    pub(crate) fn held_at_most(self, longest: Duration) -> Result<Self, Error> {
        let longest = Ttl::from_duration(longest).map_err(|error| self.about(error))?;
        let keeping = self.keeping.at_most(longest);
        Ok(Self::of(self.lock, keeping))
    }

    /// `already_held` if the handle has a lease that is ours: waiting for it would be waiting for ourselves.
    pub(crate) fn check_free(&self, now: Instant) -> Result<(), Error> {
        let current = self.current().upgrade();
        match current {
            Some(held) if matches!(held.end(now), End::NotYet) => {
                Err(already_held(self.lock.key().as_bytes()))
            }
            _ => Ok(()),
        }
    }

    /// A token's text read, with the lock that it is adopted for.
    pub(crate) fn transferred(&self, token: &str) -> Result<Transferred, Error> {
        Transferred::read(token).map_err(|error| self.about(error))
    }

    /// Remembers the lease that the handle has now.
    pub(crate) fn remember(&self, held: &Arc<Held>) {
        *self.current() = Arc::downgrade(held);
    }

    fn current(&self) -> MutexGuard<'_, Weak<Held>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.lock.key().as_bytes())
    }
}

/// A clone is a handle of its own, which holds nothing.
impl Clone for LockSpec {
    fn clone(&self) -> Self {
        Self::of(self.lock.clone(), self.keeping)
    }
}

/// The lock of this key, whose leases have this TTL.
pub(crate) fn lock(key: &[u8], ttl: Duration) -> Result<Lock, Error> {
    let key = Key::new(key)?;
    let ttl = Ttl::from_duration(ttl)
        .and_then(LeaseTtl::new)
        .map_err(|error| error.about(key.as_bytes()))?;
    Ok(Lock::new(key, ttl))
}
