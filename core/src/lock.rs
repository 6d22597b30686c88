//! Locks: the right of one owner at a time, for a limited time.

mod acquire;
mod extend;
mod inspect;
mod lease;
mod news;
mod raise;
mod rejoin;
mod release;
mod renewal;
mod steal;
mod tally;
mod transfer;
mod verify;
mod votes;

pub use acquire::{Acquire, Acquiring, Grant};
pub use extend::Extend;
pub use inspect::{Holder, Inspect};
pub use lease::{Extending, Lease};
pub use news::{End, Ended, News, Tried};
pub use release::Release;
pub use renewal::{Keeping, Renewal};
pub use steal::{Steal, Stolen};
pub use transfer::{Adopt, Transferred};
pub use verify::Verify;

pub(crate) use {
    extend::extend_twin, inspect::inspect_twin, raise::raise_fence_twin, release::release_twin,
    steal::steal_twin, votes::acquire_twin,
};

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

    /// When the request was sent of a lease that is ours until then.
    fn sent_at(self, valid_until: Instant) -> Instant {
        valid_until.minus(self.as_millis() - drift(self.0))
    }

    /// How long the last fence is kept: 24 hours, or four times the TTL if that is longer, in milliseconds.
    fn fence_ttl(self) -> u64 {
        (24 * 3600 * 1000)
            .max(self.as_millis().saturating_mul(4))
            .min(crate::time::LONGEST)
    }
}

/// The error of an acquire through a handle that holds the lock of this key already.
pub fn already_held(key: &[u8]) -> Error {
    let detail = "this handle holds the lock; another handle would wait for it";
    Error::new(Code::AlreadyHeld, detail).about(key)
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

    /// The channel on which its releases are told.
    pub fn channel(&self) -> Vec<u8> {
        self.key.side(Part::Released)
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

    /// The script that writes a fence back.
    fn raising(&self, token: &Token, fence: u64) -> Work {
        Work::Script(Invocation {
            script: Script::LockRaiseFence,
            keys: vec![
                text(self.key.as_bytes()),
                Cow::Owned(self.key.side(Part::Fence)),
            ],
            arguments: vec![
                text(token.as_bytes()),
                number(fence),
                number(self.ttl.fence_ttl()),
            ],
        })
    }

    /// The script that ends a lease.
    fn releasing(&self, token: &Token) -> Work {
        Work::Script(Invocation {
            script: Script::LockRelease,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![text(token.as_bytes()), Cow::Owned(self.channel())],
        })
    }

    /// The error of a lease of this lock that is not, or no longer, the caller's.
    pub fn lost(&self, reason: Reason, detail: impl Into<String>) -> Error {
        Error::new(Code::Lost(reason), detail).about(self.key.as_bytes())
    }
}
