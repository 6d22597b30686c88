//! A lock's handle.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::lock::Lock as LockSpec;
use tallylock_core::time::Wait;

use super::{Client, Lease};

/// The right of one owner at a time, for a limited time. The handle holds nothing: each acquire has a lease of its own.
#[derive(Clone, Debug)]
pub struct Lock {
    client: Client,
    spec: LockSpec,
}

impl Lock {
    pub(super) fn new(client: Client, spec: LockSpec) -> Self {
        Self { client, spec }
    }

    /// Takes the lock, waiting for it no longer than `wait`; with a wait of zero it is tried once.
    ///
    /// A failed acquire leaves no lock behind: what the server may have done is undone, in the background if the caller's
    /// time is over.
    ///
    /// # Errors
    /// `busy` if another held it until the end, `timeout` if the server did not answer in time, `unavailable` if it
    /// cannot be reached, `wrong_type` if the key holds something else than a text, `invalid_argument` if the wait is
    /// longer than 10 years, `closed` after [`Client::close`].
    pub fn acquire(&self, wait: Duration) -> Result<Lease, Error> {
        let grant = self
            .client
            .acquire(&self.spec, Wait::from_duration(wait)?)?;
        Ok(Lease::new(self.client.clone(), self.spec.clone(), grant))
    }

    /// Takes the lock as [`acquire`](Self::acquire) does, runs `body`, and releases it, also when `body` fails or panics.
    ///
    /// # Errors
    /// Those of acquire, in which case `body` is not run; those of `body`; and if that succeeded, those of
    /// [`Lease::release`]: `lost` then means that the lock was not ours to the end of `body`.
    pub fn with_lock<T, E>(
        &self,
        wait: Duration,
        body: impl FnOnce(&Lease) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        let mut guard = ReleaseOnPanic(Some(self.acquire(wait)?));
        let result = guard.0.as_ref().map(body);
        let lease = guard.0.take();
        let (Some(result), Some(lease)) = (result, lease) else {
            unreachable!("only the guard's drop takes it")
        };
        let released = lease.release();
        let output = result?;
        released?;
        Ok(output)
    }
}

struct ReleaseOnPanic(Option<Lease>);

impl Drop for ReleaseOnPanic {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            // The panic goes on; it matters more than a failed release.
            let _ = lease.release();
        }
    }
}
