//! A lock's handle.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::lock::{Holder, Inspect, Keeping, Steal, Stolen};
use tallylock_core::time::Wait;

use crate::acquire::{Unclaimed, acquire, hold};
use crate::spec::LockSpec;
use crate::{Client, Lease, random};

/// The right of one owner at a time, for a limited time.
///
/// A handle is for one holder at a time: while a lease that it acquired is ours, it acquires no other. A clone is a handle of
/// its own, and so is each that the client gives.
#[derive(Clone, Debug)]
pub struct Lock {
    client: Client,
    spec: LockSpec,
}

impl Lock {
    pub(crate) fn new(client: Client, spec: LockSpec) -> Self {
        Self { client, spec }
    }

    /// Renews its leases so long after each time that they were given their TTL, instead of after a third of it.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and half of the TTL.
    pub fn renewed_every(self, interval: Duration) -> Result<Self, Error> {
        let spec = self.spec.renewed_every(interval)?;
        Ok(Self { spec, ..self })
    }

    /// Does not renew its leases: they end with their TTL, unless they are extended.
    #[must_use]
    pub fn without_renewal(self) -> Self {
        let spec = self.spec.without_renewal();
        Self { spec, ..self }
    }

    /// Renews no lease any more that has been held for so long, so that a holder who hangs loses it: at the latest a TTL
    /// after that. Without this a lease is renewed for as long as it is held.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn held_at_most(self, longest: Duration) -> Result<Self, Error> {
        let spec = self.spec.held_at_most(longest)?;
        Ok(Self { spec, ..self })
    }

    /// Keeps its leases like this, which goes with the TTL.
    #[doc(hidden)]
    #[must_use]
    pub fn kept(self, keeping: Keeping) -> Self {
        let spec = LockSpec::of(self.spec.lock, keeping);
        Self { spec, ..self }
    }

    /// Takes the lock, waiting for it no longer than `wait`; with a wait of zero it is tried once.
    ///
    /// An acquire that fails, or whose future is dropped, leaves no lock behind: what the server may have done is undone
    /// in the background.
    ///
    /// # Errors
    /// `busy` if another held it until the end, `already_held` at once if this handle holds it, `timeout` if the server did
    /// not answer in time, `unavailable` if it cannot be reached, `wrong_type` if the key holds something else than a text,
    /// `invalid_argument` if the wait is longer than 10 years, `closed` after [`Client::close`].
    pub async fn acquire(&self, wait: Duration) -> Result<Lease, Error> {
        let wait = Wait::from_duration(wait)?;
        let backend = self.client.backend();
        backend.check_open()?;
        self.spec.check_free(backend.now())?;
        let LockSpec { lock, keeping, .. } = &self.spec;
        let lease = acquire(&self.client, lock.clone(), *keeping, wait).await?;
        self.spec.remember(lease.held());
        Ok(lease)
    }

    /// Takes over a lease that [`Lease::transfer`] gave away, with its fence, for this lock's TTL from now. If the future is
    /// dropped, or fails, the lease stays what it was or is extended once.
    ///
    /// # Errors
    /// `lost` if the lock is no longer held by this token, `already_held` if this handle holds it, `invalid_argument` if the
    /// token is none, `outcome_unknown` if the server does not answer in time, `unavailable` if it cannot be reached, `closed`.
    pub async fn adopt(&self, token: &str) -> Result<Lease, Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        let transferred = self.spec.transferred(token)?;
        let settings = backend.settings();
        let (way, now) = self.client.begin(settings.timeout.as_millis());
        self.spec.check_free(now)?;
        let LockSpec { lock, keeping, .. } = &self.spec;
        let (operation, step) = transferred.adopt(lock.clone(), settings, random::jitter(now), now);
        let grant = self.client.run(operation, step, &way).await?;
        backend.counts().adopted();
        let lease = hold(&self.client, lock.clone(), *keeping, grant, backend.now());
        lease.held().trace();
        self.spec.remember(lease.held());
        Ok(lease)
    }

    /// Tells who holds the lock, a holder of another library too; nothing if nobody does. Changes nothing.
    ///
    /// # Errors
    /// `wrong_type` if the key holds something else than a text, `timeout`, `unavailable`, `closed`.
    pub async fn inspect(&self) -> Result<Option<Holder>, Error> {
        let lock = self.spec.lock.clone();
        self.client.request(Inspect { lock }).await
    }

    /// Takes the lock away from the holder of the token `expected`, as [`inspect`](Self::inspect) gave it, and wakes those who
    /// wait; gives nothing, and changes nothing, if that token holds it no more. For operators: the holder is not asked.
    ///
    /// The fence is counted up, so that the next grant has a larger one than the holder; a guarded write or a fenced drain with
    /// [`Stolen::fence`] shuts the holder out at once. `reason` is logged (a `tracing` event of the level WARN), and
    /// [`Client::stolen`] counts.
    ///
    /// # Errors
    /// `invalid_argument` if the reason says nothing, `outcome_unknown` if the reply is lost (then look again), `wrong_type` if the
    /// lock or its fence is something else than a text, `not_an_integer` if the fence is no number, `timeout`, `unavailable`,
    /// `closed`.
    pub async fn steal(
        &self,
        expected: impl AsRef<[u8]>,
        reason: &str,
    ) -> Result<Option<Stolen>, Error> {
        let steal = Steal::new(self.spec.lock.clone(), expected.as_ref(), reason)?;
        let stolen = self.client.request(steal).await?;
        Ok(self.client.backend().stole(stolen))
    }

    /// Takes the lock as [`acquire`](Self::acquire) does, runs `body`, and releases it, also when `body` fails or panics,
    /// or the future is dropped.
    ///
    /// # Errors
    /// Those of acquire, in which case `body` is not run; those of `body`; and if that succeeded, those of
    /// [`Lease::release`]: `lost` then means that the lock was not ours to the end of `body`.
    pub async fn with_lock<T, E>(
        &self,
        wait: Duration,
        body: impl AsyncFnOnce(&Lease) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        let guard = Unclaimed::new(self.acquire(wait).await?);
        let result = body(guard.lease()).await;
        let released = guard.claim().release().await;
        let output = result?;
        released?;
        Ok(output)
    }
}
