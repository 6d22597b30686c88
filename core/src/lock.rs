//! Locks: the right of one owner at a time, for a limited time.

mod acquire;
mod extend;
mod lease;
mod release;

pub use acquire::{Acquire, Grant};
pub use extend::Extend;
pub use lease::{Extending, Lease};
pub use release::Release;

pub(crate) use {acquire::acquire_twin, extend::extend_twin, release::release_twin};

use std::borrow::Cow;

use crate::error::{Code, Error, Reason};
use crate::key::{Key, Part};
use crate::round::Work;
use crate::script::{Invocation, Script, number, text};
use crate::time::{Instant, Ttl, drift};
use crate::token::Token;

/// The TTL of a lease: long enough that something is left of it after the drift of the clocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseTtl(Ttl);

impl LeaseTtl {
    /// A lease of this TTL; `invalid_argument` if its drift would use it up.
    pub fn new(ttl: Ttl) -> Result<Self, Error> {
        if ttl.as_millis() <= drift(ttl) {
            return Err(Error::new(
                Code::InvalidArgument,
                format!(
                    "a lock's ttl must be more than its drift of {} ms, not {} ms",
                    drift(ttl),
                    ttl.as_millis()
                ),
            ));
        }
        Ok(Self(ttl))
    }

    /// The TTL in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0.as_millis()
    }

    /// Until when a lease is ours whose request was sent at `sent_at`.
    pub fn valid_until(self, sent_at: Instant) -> Instant {
        sent_at.plus(self.as_millis() - drift(self.0))
    }

    /// How long the last fence is kept: 24 hours, or four times the TTL if that is longer, in milliseconds.
    fn fence_ttl(self) -> u64 {
        (24 * 3600 * 1000)
            .max(self.as_millis().saturating_mul(4))
            .min(crate::time::LONGEST)
    }
}

/// A lock by its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    key: Key,
    ttl: LeaseTtl,
}

impl Lock {
    /// The lock of this key, whose leases have this TTL.
    pub const fn new(key: Key, ttl: LeaseTtl) -> Self {
        Self { key, ttl }
    }

    /// The key.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The TTL of its leases.
    pub const fn ttl(&self) -> LeaseTtl {
        self.ttl
    }

    /// The same lock with leases of another TTL.
    #[must_use]
    pub fn with_ttl(&self, ttl: LeaseTtl) -> Self {
        Self {
            key: self.key.clone(),
            ttl,
        }
    }

    /// A script that takes or lengthens a lease.
    fn granting(&self, script: Script, token: &Token) -> Work {
        Work::Script(Invocation {
            script,
            keys: vec![
                text(self.key.as_bytes()),
                Cow::Owned(self.key.side(Part::Fence)),
            ],
            arguments: vec![
                text(token.as_bytes()),
                number(self.ttl.as_millis()),
                number(self.ttl.fence_ttl()),
            ],
        })
    }

    /// The script that ends a lease.
    fn releasing(&self, token: &Token) -> Work {
        Work::Script(Invocation {
            script: Script::LockRelease,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![
                text(token.as_bytes()),
                Cow::Owned(self.key.side(Part::Released)),
            ],
        })
    }

    /// The error of a lease of this lock that is not, or no longer, the caller's.
    pub fn lost(&self, reason: Reason, detail: impl Into<String>) -> Error {
        Error::new(Code::Lost(reason), detail).about(self.key.as_bytes())
    }
}
