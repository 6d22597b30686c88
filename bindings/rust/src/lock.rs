//! A lock's handle.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::lock::Lock as LockSpec;
use tallylock_core::time::Wait;

use crate::acquire::{Unclaimed, acquire};
use crate::{Client, Lease};

/// The right of one owner at a time, for a limited time. The handle holds nothing: each acquire has a lease of its own.
#[derive(Clone, Debug)]
pub struct Lock {
    client: Client,
    spec: LockSpec,
}

impl Lock {
    pub(crate) fn new(client: Client, spec: LockSpec) -> Self {
        Self { client, spec }
    }

    /// Takes the lock, waiting for it no longer than `wait`; with a wait of zero it is tried once.
    ///
    /// An acquire that fails, or whose future is dropped, leaves no lock behind: what the server may have done is undone
    /// in the background.
    ///
    /// # Errors
    /// `busy` if another held it until the end, `timeout` if the server did not answer in time, `unavailable` if it
    /// cannot be reached, `wrong_type` if the key holds something else than a text, `invalid_argument` if the wait is
    /// longer than 10 years, `closed` after [`Client::close`].
    pub async fn acquire(&self, wait: Duration) -> Result<Lease, Error> {
        acquire(&self.client, self.spec.clone(), Wait::from_duration(wait)?).await
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
