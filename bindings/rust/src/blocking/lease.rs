//! A lease.

use std::fmt;
use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::lock::{Grant, Lock as LockSpec};

use super::Client;
use crate::held::Held;
use crate::random;

/// A lock that was taken, for as long as it is ours. Dropping it releases nothing: the lock then ends with its TTL.
///
/// It belongs to the process that acquired it: in a child that was forked off, each verb fails with `lost (forked)` and
/// sends nothing.
pub struct Lease {
    client: Client,
    held: Held,
}

impl Lease {
    pub(super) fn new(client: Client, lock: LockSpec, grant: Grant) -> Self {
        Self {
            client,
            held: Held::new(lock, grant),
        }
    }

    /// The fencing token: larger than that of every earlier lease of this lock, as long as the server keeps its fence.
    pub fn fence(&self) -> u64 {
        self.held.fence()
    }

    /// How long it is still ours by our clock: its TTL less the drift of the clocks; zero if it is over or lost.
    pub fn remaining(&self) -> Duration {
        self.held.remaining(self.client.backend().now())
    }

    /// Whether it is still ours by our clock.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Makes sure that it is ours by our clock for at least `margin`. Sends nothing.
    ///
    /// # Errors
    /// `lost`, with the reason, if not; `invalid_argument` if the margin is longer than 10 years.
    pub fn ensure(&self, margin: Duration) -> Result<(), Error> {
        self.held.ensure(self.client.backend().now(), margin)
    }

    /// Sets its remaining time to `ttl` from now.
    ///
    /// # Errors
    /// `lost`, with the reason, if it is no longer ours; `outcome_unknown` if the server does not answer in time;
    /// `unavailable` if it cannot be reached; `invalid_argument` if the TTL is not within 3 ms and 10 years; `closed`.
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        let now = backend.now();
        let ((operation, step), extending) =
            self.held
                .extend(ttl, backend.settings(), random::jitter(now), now)?;
        self.held
            .extended(extending, self.client.run(|_, _| (operation, step)))
    }

    /// Releases the lock; does nothing if that was done already. After a failure it can be called again.
    ///
    /// # Errors
    /// `lost`, with the reason, if it was no longer ours; `outcome_unknown` if the server does not answer in time;
    /// `unavailable` if it cannot be reached; `closed`.
    pub fn release(&self) -> Result<(), Error> {
        self.client.backend().check_open()?;
        self.abandon()
    }

    /// Releases the lock as [`release`](Self::release) does, also after the client was closed: for the lease of a caller who
    /// went away.
    ///
    /// # Errors
    /// Those of release, but for `closed`.
    #[doc(hidden)]
    pub fn abandon(&self) -> Result<(), Error> {
        let backend = self.client.backend();
        let now = backend.now();
        let seed = random::jitter(now);
        let Some(started) = self.held.release(backend.settings(), seed, now)? else {
            return Ok(());
        };
        self.held.released(self.client.drive(|_, _| Ok(started))?)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("fence", &self.fence())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
