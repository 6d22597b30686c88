//! A lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::drive::Clock;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::Extending;
use tallylock_core::time::Instant;
use tokio::task::JoinHandle;

use crate::held::Held;
use crate::way::first_of;
use crate::{Client, random};

/// A lock that was taken, for as long as it is ours: renewed in the background until it is released, unless
/// [`Lock::without_renewal`](crate::Lock::without_renewal) was said. Dropping it ends the renewal and releases nothing: the
/// lock then ends with its TTL.
///
/// It belongs to the process that acquired it: in a child that was forked off, each verb fails with `lost (forked)` and
/// sends nothing.
pub struct Lease {
    client: Client,
    held: Arc<Held>,
}

impl Lease {
    pub(crate) fn new(client: Client, held: Arc<Held>) -> Self {
        client.keep(&held);
        Self { client, held }
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
    pub async fn verify(&self, margin: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        let margin = self.held.margin(margin)?;
        let settings = backend.settings();
        let (way, now) = self.client.begin(settings.timeout.as_millis());
        let (operation, step) = self.held.verify(settings, random::jitter(now), now)?;
        let result = self.client.run(operation, step, &way).await;
        self.held.verified(result, self.now(), margin)
    }

    /// Why it was lost, as the error `lost`; nothing if it is ours by our clock, or was let go of. Sends nothing.
    pub fn loss(&self) -> Option<Error> {
        self.held.lost(self.now())
    }

    /// Waits until it is lost, and gives the reason as the error `lost`; gives nothing once the holder lets go of it. That is
    /// known no later than at its deadline, also when the server is silent. For `select!` beside the work that it protects.
    pub async fn lost(&self) -> Option<Error> {
        self.held.watch();
        self.client.keep(&self.held);
        self.held.until_lost(|| self.now()).await
    }

    /// Calls back with the error `lost` when it is lost, on a thread of its own; never if the holder lets go of it before.
    pub fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) {
        self.held.watch();
        self.client.keep(&self.held);
        self.held.on_lost(self.now(), Box::new(callback));
    }

    /// Sets its remaining time to `ttl` from now, which is what it is renewed to from then on.
    ///
    /// # Errors
    /// `lost`, with the reason, if it is no longer ours; `outcome_unknown` if the server does not answer in time;
    /// `unavailable` if it cannot be reached; `invalid_argument` if the TTL is not within 3 ms and 10 years; `closed`.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        let hold = backend.clock().hold();
        let (settings, now) = (backend.settings(), backend.now());
        let ((operation, step), extending) =
            self.held.extend(ttl, settings, random::jitter(now), now)?;
        let deadline = now.plus(settings.timeout.as_millis());
        let way = self.client.way(deadline.min(extending.valid_until()));
        drop(hold);
        let under_way = UnderWay::new(self, extending);
        // It may be over sooner than it was to be looked at.
        self.client.keep(&self.held);
        let result = self.client.run(operation, step, &way).await;
        under_way.ended(result)
    }

    /// Releases the lock; does nothing if that was done already, or it was transferred. No renewal comes after it: one that is
    /// under way is waited for. After a failure it can be called again, but is not renewed any more. It goes on in the
    /// background if the future is dropped.
    ///
    /// # Errors
    /// `lost`, with the reason, if it was no longer ours, at once if that is known; `outcome_unknown` if the server does not
    /// answer in time; `unavailable` if it cannot be reached; `closed`.
    pub async fn release(&self) -> Result<(), Error> {
        self.client.backend().check_open()?;
        if let Some(lost) = self.held.lost(self.now()) {
            self.client.give_back(&self.held);
            return Err(lost);
        }
        self.spawn_release()
            .await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::new(
                    Code::OutcomeUnknown,
                    "the client's runtime was shut down",
                )),
            })
    }

    /// Gives the lease away: whoever has the text that this gives can [adopt](crate::Lock::adopt) it, in this process or another,
    /// for as long as it lasts. It is not renewed any more, and a release does nothing. The text is the right to release, so it
    /// belongs into no log.
    ///
    /// # Errors
    /// `lost`, with the reason, if it is no longer ours; `closed`.
    pub async fn transfer(&self) -> Result<String, Error> {
        self.client.backend().check_open()?;
        let transferred = self.held.transfer(self.now())?;
        self.client.keep_no_longer(&self.held);
        self.client.settled(&self.held).await;
        Ok(transferred.text())
    }

    /// Releases the lock, also after the client was closed, without telling anybody how it went; if it fails, the lock
    /// ends with its TTL.
    #[doc(hidden)]
    pub fn release_in_background(&self) {
        // Nobody is there to be told.
        drop(self.spawn_release());
    }

    fn spawn_release(&self) -> JoinHandle<Result<(), Error>> {
        let (client, held) = (self.client.clone(), Arc::clone(&self.held));
        // From now on it is not ours, whenever the task gets its turn.
        let is_to_be_released = held.leave(self.now());
        self.client.keep_no_longer(&held);
        self.client.runtime().spawn(async move {
            if is_to_be_released? {
                client.release_left(&held).await
            } else {
                Ok(())
            }
        })
    }

    /// What the lock's handle remembers of it.
    pub(crate) fn held(&self) -> &Arc<Held> {
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

impl Client {
    /// Releases a lease that was let go of, after what is under way.
    pub(crate) async fn release_left(&self, held: &Held) -> Result<(), Error> {
        self.settled(held).await;
        let backend = self.backend();
        let settings = backend.settings();
        let (way, now) = self.begin(settings.timeout.as_millis());
        let (operation, step) = held.release(settings, random::jitter(now), now)?;
        let result = self.run(operation, step, &way).await;
        held.released(result, backend.now())
    }

    /// Releases a lease that was lost, for its key may be there yet.
    pub(crate) async fn release_lost(&self, held: &Held) -> Result<(), Error> {
        if held.leave(self.backend().now())? {
            self.release_left(held).await?;
        }
        Ok(())
    }

    /// Waits until no renewal of a lease that was let go of is under way.
    async fn settled(&self, held: &Held) {
        loop {
            let mut changed = std::pin::pin!(held.changes());
            changed.as_mut().enable();
            let Some(until) = held.under_way(self.backend().now()) else {
                return;
            };
            let way = self.way(until);
            first_of(changed, (&way).sleep_until(until)).await;
        }
    }
}

/// An extend under way: one whose future is dropped may be executed yet, and the lease has to know that it is given up.
struct UnderWay<'a> {
    lease: &'a Lease,
    extending: Option<Extending>,
}

impl<'a> UnderWay<'a> {
    fn new(lease: &'a Lease, extending: Extending) -> Self {
        Self {
            lease,
            extending: Some(extending),
        }
    }

    fn ended(mut self, result: Result<Instant, Error>) -> Result<(), Error> {
        match self.extending.take() {
            Some(extending) => self.take_in(extending, result),
            None => unreachable!("only the end and the drop take it"),
        }
    }

    fn take_in(&self, extending: Extending, result: Result<Instant, Error>) -> Result<(), Error> {
        let Lease { client, held } = self.lease;
        let ended = held.extended(extending, result, self.lease.now());
        client.keep(held);
        ended
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(extending) = self.extending.take() {
            let unknown = Error::new(Code::OutcomeUnknown, "the extend was dropped");
            // Nobody is there to be told.
            drop(self.take_in(extending, Err(unknown)));
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
