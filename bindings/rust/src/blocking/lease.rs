//! A lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::lock::{Grant, Keeping, Lock as LockSpec};
use tallylock_core::time::Instant;

use super::Client;
use crate::course::Course;
use crate::held::Held;
use crate::random;

/// A lock that was taken, for as long as it is ours: renewed in the background until it is released, unless
/// [`Lock::without_renewal`](super::Lock::without_renewal) was said. Dropping it ends the renewal and releases nothing: the
/// lock then ends with its TTL.
///
/// It belongs to the process that acquired it: in a child that was forked off, each verb fails with `lost (forked)` and
/// sends nothing.
pub struct Lease {
    client: Client,
    held: Arc<Held>,
}

impl Lease {
    /// The lease that was granted. If it cannot be renewed, it is released and the error given.
    pub(super) fn new(
        client: Client,
        lock: LockSpec,
        keeping: Keeping,
        grant: Grant,
        now: Instant,
    ) -> Result<Self, Error> {
        let backend = client.backend();
        let keeping = backend.keeping(keeping);
        let (settings, seed) = (backend.settings(), random::jitter(now));
        let course = Course::new(Arc::clone(backend.counts()));
        let held = Held::new(lock, grant, keeping, settings, seed, now, course);
        held.trace();
        let held = Arc::new(held);
        let lease = Self { client, held };
        if let Err(error) = lease.client.keep(&lease.held) {
            // Why it is given back is what the caller is told.
            drop(lease.abandon());
            return Err(error);
        }
        Ok(lease)
    }

    /// The fencing token: larger than that of every earlier lease of this lock, as long as the server keeps its fence.
    pub fn fence(&self) -> u64 {
        self.held.fence()
    }

    /// How long it is still ours by our clock: its TTL less the drift of the clocks; zero if it is over or lost.
    pub fn remaining(&self) -> Duration {
        self.held.remaining(self.now())
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
        self.held.ensure(self.now(), margin)
    }

    /// Asks the server whether it is ours for at least `margin`.
    ///
    /// # Errors
    /// `lost`, with the reason, if not; `timeout` if the server does not answer in time; `unavailable` if it cannot be
    /// reached; `invalid_argument` if the margin is longer than 10 years; `closed`.
    pub fn verify(&self, margin: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        let margin = self.held.margin(margin)?;
        let hold = backend.clock().hold();
        let now = self.now();
        let started = self
            .held
            .verify(backend.settings(), random::jitter(now), now)?;
        let result = self.client.run(|_, _| {
            drop(hold);
            started
        });
        self.held.verified(result, self.now(), margin)
    }

    /// Why it was lost, as the error `lost`; nothing if it is ours by our clock, or was let go of. Sends nothing.
    pub fn loss(&self) -> Option<Error> {
        self.held.lost(self.now())
    }

    /// Calls back with the error `lost` when it is lost, on a thread of its own; never if the holder lets go of it before.
    /// That is known no later than at its deadline, also when the server is silent.
    ///
    /// # Errors
    /// `unavailable` if the system starts no thread to watch the clock.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) -> Result<(), Error> {
        self.held.watch();
        self.client.keep(&self.held)?;
        self.held.on_lost(self.now(), Box::new(callback));
        Ok(())
    }

    /// Waits until it is lost, no longer than `longest`, and gives the error `lost`; nothing if it is still ours then, or the
    /// holder has let go of it.
    pub fn wait_until_lost(&self, longest: Duration) -> Option<Error> {
        self.held.wait_until_lost(|| self.now(), longest)
    }

    /// Sets its remaining time to `ttl` from now, which is what it is renewed to from then on.
    ///
    /// # Errors
    /// `lost`, with the reason, if it is no longer ours; `outcome_unknown` if the server does not answer in time;
    /// `unavailable` if it cannot be reached; `invalid_argument` if the TTL is not within 3 ms and 10 years; `closed`.
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        let hold = backend.clock().hold();
        let now = self.now();
        let ((operation, step), extending) =
            self.held
                .extend(ttl, backend.settings(), random::jitter(now), now)?;
        // It may be over sooner than it was to be looked at.
        let kept = self.client.keep(&self.held);
        let result = self.client.run(|_, _| {
            drop(hold);
            (operation, step)
        });
        let ended = self.held.extended(extending, result, self.now());
        ended.and(kept).and_then(|()| self.client.keep(&self.held))
    }

    /// Releases the lock; does nothing if that was done already, or it was transferred. No renewal comes after it: one that is
    /// under way is waited for. After a failure it can be called again, but is not renewed any more.
    ///
    /// # Errors
    /// `lost`, with the reason, if it was no longer ours, at once if that is known; `outcome_unknown` if the server does not
    /// answer in time; `unavailable` if it cannot be reached; `closed`.
    pub fn release(&self) -> Result<(), Error> {
        self.client.backend().check_open()?;
        self.abandon()
    }

    /// Gives the lease away: whoever has the text that this gives can [adopt](super::Lock::adopt) it, in this process or another,
    /// for as long as it lasts. It is not renewed any more, and a release does nothing. The text is the right to release, so it
    /// belongs into no log.
    ///
    /// # Errors
    /// `lost`, with the reason, if it is no longer ours; `closed`.
    pub fn transfer(&self) -> Result<String, Error> {
        self.client.backend().check_open()?;
        let transferred = self.held.transfer(self.now())?;
        self.client.keep_no_longer(&self.held);
        self.held.settle(|| self.now());
        Ok(transferred.text())
    }

    /// Releases the lock as [`release`](Self::release) does, also after the client was closed: for the lease of a caller who
    /// went away.
    ///
    /// # Errors
    /// Those of release, but for `closed`.
    #[doc(hidden)]
    pub fn abandon(&self) -> Result<(), Error> {
        if let Some(lost) = self.held.lost(self.now()) {
            self.client.give_back(&self.held);
            return Err(lost);
        }
        let is_to_be_released = self.held.leave(self.now())?;
        self.client.keep_no_longer(&self.held);
        if !is_to_be_released {
            return Ok(());
        }
        self.held.settle(|| self.now());
        let result = self
            .client
            .drive(|settings, now| self.held.release(settings, random::jitter(now), now))?;
        self.held.released(result, self.now())
    }

    /// What the lock's handle remembers of it.
    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    fn now(&self) -> Instant {
        self.client.backend().now()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.client.keep_no_longer(&self.held);
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
