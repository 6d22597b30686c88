//! What a handle was opened for, checked once: the requests of both clients come from here.

use std::time::Duration;

use tallylock_core::counter::{Add, Drain, Expiry, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::key::Key;
use tallylock_core::lock::{LeaseTtl, Lock};
use tallylock_core::time::Ttl;
use tallylock_core::value::{CompareAndSet, Get, ReplaceIfPresent, Touch};

/// A counter's key, TTL and expiry.
#[derive(Clone, Debug)]
pub(crate) struct CounterSpec {
    key: Key,
    ttl: Ttl,
    expiry: Expiry,
}

impl CounterSpec {
    pub(crate) fn new(key: &[u8], ttl: Duration) -> Result<Self, Error> {
        let key = Key::new(key)?;
        let ttl = Ttl::from_duration(ttl).map_err(|error| error.about(key.as_bytes()))?;
        Ok(Self {
            key,
            ttl,
            expiry: Expiry::default(),
        })
    }

    pub(crate) fn fixed(self) -> Self {
        Self {
            expiry: Expiry::Fixed,
            ..self
        }
    }

    pub(crate) fn add(&self, amount: i64) -> Add {
        Add {
            key: self.key.clone(),
            amount,
            ttl: self.ttl,
            expiry: self.expiry,
        }
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
            fence: None,
        }
    }

    pub(crate) fn finish(&self) -> Finish {
        Finish {
            key: self.key.clone(),
        }
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

    fn ttl(&self, ttl: Duration) -> Result<Ttl, Error> {
        Ttl::from_duration(ttl).map_err(|error| error.about(self.key.as_bytes()))
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
