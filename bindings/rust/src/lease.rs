//! A lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Extending, Grant, Lock as LockSpec};
use tallylock_core::time::Instant;
use tokio::task::JoinHandle;

use crate::held::Held;
use crate::{Client, random};

/// A lock that was taken, for as long as it is ours. Dropping it releases nothing: the lock then ends with its TTL.
///
/// It belongs to the process that acquired it: in a child that was forked off, each verb fails with `lost (forked)` and
/// sends nothing.
pub struct Lease {
    client: Client,
    held: Arc<Held>,
}

impl Lease {
    pub(crate) fn new(client: Client, lock: LockSpec, grant: Grant) -> Self {
        Self {
            client,
            held: Arc::new(Held::new(lock, grant)),
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
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        let (settings, now) = (backend.settings(), backend.now());
        let ((operation, step), extending) =
            self.held.extend(ttl, settings, random::jitter(now), now)?;
        let deadline = now.plus(settings.timeout.as_millis());
        let way = self.client.way(deadline.min(extending.valid_until()));
        let under_way = UnderWay::new(&self.held, extending);
        let result = self.client.run(operation, step, &way).await;
        under_way.ended(result)
    }

    /// Releases the lock; does nothing if that was done already. After a failure it can be called again. It goes on in the
    /// background if the future is dropped.
    ///
    /// # Errors
    /// `lost`, with the reason, if it was no longer ours; `outcome_unknown` if the server does not answer in time;
    /// `unavailable` if it cannot be reached; `closed`.
    pub async fn release(&self) -> Result<(), Error> {
        self.client.backend().check_open()?;
        match self.start_release()? {
            None => Ok(()),
            Some(task) => task
                .await
                .unwrap_or_else(|error| match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(Error::new(
                        Code::OutcomeUnknown,
                        "the client's runtime was shut down",
                    )),
                }),
        }
    }

    /// Releases the lock, also after the client was closed, without telling anybody how it went; if it fails, the lock
    /// ends with its TTL.
    #[doc(hidden)]
    pub fn release_in_background(&self) {
        // Nobody is there to be told.
        drop(self.start_release());
    }

    fn start_release(&self) -> Result<Option<JoinHandle<Result<(), Error>>>, Error> {
        let backend = self.client.backend();
        let (settings, now) = (backend.settings(), backend.now());
        let Some((operation, step)) = self.held.release(settings, random::jitter(now), now)? else {
            return Ok(None);
        };
        let way = self.client.way(now.plus(settings.timeout.as_millis()));
        let (client, held) = (self.client.clone(), Arc::clone(&self.held));
        Ok(Some(self.client.runtime().spawn(async move {
            let result = client.run(operation, step, &way).await;
            held.released(result)
        })))
    }
}

/// An extend under way: one whose future is dropped may be executed yet, and the lease has to know that it is given up.
struct UnderWay<'a> {
    held: &'a Held,
    extending: Option<Extending>,
}

impl<'a> UnderWay<'a> {
    fn new(held: &'a Held, extending: Extending) -> Self {
        Self {
            held,
            extending: Some(extending),
        }
    }

    fn ended(mut self, result: Result<Instant, Error>) -> Result<(), Error> {
        match self.extending.take() {
            Some(extending) => self.held.extended(extending, result),
            None => unreachable!("only the end and the drop take it"),
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(extending) = self.extending.take() {
            let unknown = Error::new(Code::OutcomeUnknown, "the extend was dropped");
            // Nobody is there to be told.
            drop(self.held.extended(extending, Err(unknown)));
        }
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
