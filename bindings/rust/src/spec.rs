//! What a handle was opened for, checked once: the requests of both clients come from here.

use std::time::Duration;

use tallylock_core::claim::{Abort, Commit, Open};
use tallylock_core::counter::{Add, AddOnce, Drain, Entry, Expiry, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::heal::Heal;
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::lock::{LeaseTtl, Lock};
use tallylock_core::time::Ttl;
use tallylock_core::value::{CompareAndSet, Get, ReplaceIfPresent, Touch};

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

/// The lock of this key, whose leases have this TTL.
pub(crate) fn lock(key: &[u8], ttl: Duration) -> Result<Lock, Error> {
    let key = Key::new(key)?;
    let ttl = Ttl::from_duration(ttl)
        .and_then(LeaseTtl::new)
        .map_err(|error| error.about(key.as_bytes()))?;
    Ok(Lock::new(key, ttl))
}
