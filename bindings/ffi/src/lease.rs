//! Leases: the time-limited right that an acquire gave. They are named by ids and stay until they are freed.

use std::sync::Arc;
use std::time::Duration;

use tallylock::{Error, blocking};
use tokio::sync::oneshot;

use crate::completion::{AtClose, Outcome, submit};
use crate::error::{CallError, about};
use crate::{argument, registry, runtime};

/// The fencing token: larger than that of every earlier lease of this lock.
///
/// Fails with `lost` in a child made by `fork`, with `closed` after `lease_free`.
#[uniffi::export]
pub fn lease_fence(lease: u64) -> Result<u64, CallError> {
    Ok(registry::lease(lease)?.fence())
}

/// How long the lease is still ours by our clock, in microseconds; 0 if it is not.
///
/// Fails with `closed` after `lease_free`.
#[uniffi::export]
pub fn lease_remaining_us(lease: u64) -> Result<i64, CallError> {
    Ok(argument::micros(registry::lease(lease)?.remaining()))
}

/// Whether the lease is ours by our clock.
///
/// Fails with `closed` after `lease_free`.
#[uniffi::export]
pub fn lease_is_valid(lease: u64) -> Result<bool, CallError> {
    Ok(registry::lease(lease)?.is_valid())
}

/// Makes sure that the lease is ours for at least `margin_us` microseconds more by our clock; asks no server.
///
/// Fails with `lost`, with `invalid_argument`, with `closed` after `lease_free`.
#[uniffi::export]
pub fn lease_ensure(lease: u64, margin_us: i64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let ensure = || lease.ensure(argument::wait(margin_us)?);
    Ok(ensure().map_err(about(&lease.key))?)
}

/// Asks the server whether the lease is ours for at least `margin_us` microseconds more, on the calling thread.
///
/// Fails with `lost`, `invalid_argument`, `timeout`, `unavailable`, `forbidden`, `closed`.
#[uniffi::export]
pub fn lease_verify(lease: u64, margin_us: i64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let verify = || lease.verify(argument::wait(margin_us)?);
    Ok(verify().map_err(about(&lease.key))?)
}

/// Gives the lease away, on the calling thread: whoever has the text, in UTF-8, can adopt it. It is not renewed or released any
/// more.
///
/// Fails with `lost`, `closed`.
#[uniffi::export]
pub fn lease_transfer(lease: u64) -> Result<Vec<u8>, CallError> {
    let lease = registry::lease(lease)?;
    let token = lease.transfer().map_err(about(&lease.key))?;
    Ok(token.into_bytes())
}

/// Waits on the calling thread until the lease is lost, at most `millis` milliseconds, 0 for a look at our clock. Says whether it
/// is still ours; if not, it was let go of.
///
/// Fails with `lost`, with the reason, as soon as it is lost; with `closed` after `lease_free`.
#[uniffi::export]
pub fn lease_wait(lease: u64, millis: u64) -> Result<bool, CallError> {
    let lease = registry::lease(lease)?;
    let lost = match millis {
        0 => None,
        millis => lease.wait_until_lost(Duration::from_millis(millis)),
    };
    let is_valid = lease.is_valid();
    // It may have been lost just now.
    match lost.or_else(|| lease.loss()) {
        Some(lost) => Err(about(&lease.key)(lost).into()),
        None => Ok(is_valid),
    }
}

/// Gives the lease another `ttl_us` microseconds from now, on the calling thread.
///
/// Fails with `lost`, `invalid_argument`, `timeout`, `unavailable`, `outcome_unknown`, `read_only`, `forbidden`, `unsupported`,
/// `closed`.
#[uniffi::export]
pub fn lease_extend(lease: u64, ttl_us: i64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let extend = || lease.extend(argument::ttl(ttl_us)?);
    Ok(extend().map_err(about(&lease.key))?)
}

/// Gives the lease back, on the calling thread. Can be repeated after an error.
///
/// Fails with `lost`, `timeout`, `unavailable`, `outcome_unknown`, `read_only`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn lease_release(lease: u64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    Ok(lease.release().map_err(about(&lease.key))?)
}

/// Frees the id; releases nothing. Freeing again does nothing.
#[uniffi::export]
pub fn lease_free(lease: u64) {
    drop(registry::remove_lease(lease));
}

/// Releases the lease in the background and frees its id, for a caller that was interrupted, also after the client was closed;
/// nothing if the id names no lease.
#[uniffi::export]
pub fn lease_abandon(lease: u64) {
    if let Some(lease) = registry::remove_lease(lease) {
        lease.abandon();
    }
}

/// How many leases of this process were not freed yet: for tests of wrappers.
#[uniffi::export]
pub fn leases_count() -> u64 {
    registry::count_leases()
}

/// `lease_extend` in the background; nothing comes under `ticket` of `client`.
#[uniffi::export]
pub fn submit_lease_extend(
    client: u64,
    ticket: u64,
    lease: u64,
    ttl_us: i64,
) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let ttl = argument::ttl(ttl_us).map_err(about(&lease.key))?;
    let key = Arc::clone(&lease.key);
    submit(
        client,
        ticket,
        key,
        AtClose::RunsOn,
        move |_here| async move {
            lease.extend_in_background(ttl).await?;
            Ok(Outcome::Nothing)
        },
    )
}

/// `lease_release` in the background; nothing comes under `ticket` of `client`.
#[uniffi::export]
pub fn submit_lease_release(client: u64, ticket: u64, lease: u64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let key = Arc::clone(&lease.key);
    submit(
        client,
        ticket,
        key,
        AtClose::RunsOn,
        move |_here| async move {
            lease.release_in_background().await?;
            Ok(Outcome::Nothing)
        },
    )
}

/// `lease_verify` in the background; nothing comes under `ticket` of `client`.
#[uniffi::export]
pub fn submit_lease_verify(
    client: u64,
    ticket: u64,
    lease: u64,
    margin_us: i64,
) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let margin = argument::wait(margin_us).map_err(about(&lease.key))?;
    let key = Arc::clone(&lease.key);
    submit(
        client,
        ticket,
        key,
        AtClose::RunsOn,
        move |_here| async move {
            lease.verify_in_background(margin).await?;
            Ok(Outcome::Nothing)
        },
    )
}

/// `lease_transfer` in the background; bytes come under `ticket` of `client`.
#[uniffi::export]
pub fn submit_lease_transfer(client: u64, ticket: u64, lease: u64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let key = Arc::clone(&lease.key);
    submit(
        client,
        ticket,
        key,
        AtClose::RunsOn,
        move |_here| async move {
            let token = lease.transfer_in_background().await?;
            Ok(Outcome::Bytes(token.into_bytes()))
        },
    )
}

/// Waits in the background until the lease is lost: `lost`, with the reason, comes under `ticket` of `client` as an error, and
/// nothing once it was let go of or its id was freed; `closed` if the client is closed before. Once a lease: a ticket that is
/// given up is remembered until the lease ends.
#[uniffi::export]
pub fn submit_lease_lost(client: u64, ticket: u64, lease: u64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    let (tell, told) = oneshot::channel();
    // Who gave the ticket up is not told.
    let tell = move |lost| drop(tell.send(lost));
    lease.on_lost(tell).map_err(about(&lease.key))?;
    let key = Arc::clone(&lease.key);
    // A lease that is forgotten is not kept for who waits for its end.
    drop(lease);
    submit(client, ticket, key, AtClose::Ends, |_here| async move {
        match told.await {
            Ok(lost) => Err(lost),
            Err(_) => Ok(Outcome::Nothing),
        }
    })
}

/// A lease, with the key that its errors are about.
pub(crate) struct Lease {
    pub(crate) key: Arc<[u8]>,
    holder: Holder,
}

/// A lease, by the client that acquired it.
pub(crate) enum Holder {
    Blocking(Box<blocking::Lease>),
    Background(tallylock::Lease),
}

impl Lease {
    pub(crate) fn new(key: impl Into<Arc<[u8]>>, holder: Holder) -> Arc<Self> {
        Arc::new(Self {
            key: key.into(),
            holder,
        })
    }

    fn fence(&self) -> u64 {
        match &self.holder {
            Holder::Blocking(lease) => lease.fence(),
            Holder::Background(lease) => lease.fence(),
        }
    }

    fn remaining(&self) -> Duration {
        match &self.holder {
            Holder::Blocking(lease) => lease.remaining(),
            Holder::Background(lease) => lease.remaining(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        match &self.holder {
            Holder::Blocking(lease) => lease.is_valid(),
            Holder::Background(lease) => lease.is_valid(),
        }
    }

    fn ensure(&self, margin: Duration) -> Result<(), Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.ensure(margin),
            Holder::Background(lease) => lease.ensure(margin),
        }
    }

    fn verify(&self, margin: Duration) -> Result<(), Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.verify(margin),
            Holder::Background(lease) => runtime::wait_for(lease.verify(margin)),
        }
    }

    fn transfer(&self) -> Result<String, Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.transfer(),
            Holder::Background(lease) => runtime::wait_for(lease.transfer()),
        }
    }

    fn wait_until_lost(&self, longest: Duration) -> Option<Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.wait_until_lost(longest),
            Holder::Background(lease) => runtime::wait_for(async {
                let lost = tokio::time::timeout(longest, lease.lost());
                lost.await.unwrap_or_default()
            }),
        }
    }

    fn loss(&self) -> Option<Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.loss(),
            Holder::Background(lease) => lease.loss(),
        }
    }

    fn on_lost(&self, callback: impl FnOnce(Error) + Send + 'static) -> Result<(), Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.on_lost(callback),
            Holder::Background(lease) => {
                lease.on_lost(callback);
                Ok(())
            }
        }
    }

    fn extend(&self, ttl: Duration) -> Result<(), Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.extend(ttl),
            Holder::Background(lease) => runtime::wait_for(lease.extend(ttl)),
        }
    }

    fn release(&self) -> Result<(), Error> {
        match &self.holder {
            Holder::Blocking(lease) => lease.release(),
            Holder::Background(lease) => runtime::wait_for(lease.release()),
        }
    }

    async fn extend_in_background(self: Arc<Self>, ttl: Duration) -> Result<(), Error> {
        match &self.holder {
            Holder::Background(lease) => lease.extend(ttl).await,
            Holder::Blocking(_) => runtime::on_a_thread(move || self.extend(ttl)).await,
        }
    }

    async fn verify_in_background(self: Arc<Self>, margin: Duration) -> Result<(), Error> {
        match &self.holder {
            Holder::Background(lease) => lease.verify(margin).await,
            Holder::Blocking(_) => runtime::on_a_thread(move || self.verify(margin)).await,
        }
    }

    async fn transfer_in_background(self: Arc<Self>) -> Result<String, Error> {
        match &self.holder {
            Holder::Background(lease) => lease.transfer().await,
            Holder::Blocking(_) => runtime::on_a_thread(move || self.transfer()).await,
        }
    }

    async fn release_in_background(self: Arc<Self>) -> Result<(), Error> {
        match &self.holder {
            Holder::Background(lease) => lease.release().await,
            Holder::Blocking(_) => runtime::on_a_thread(move || self.release()).await,
        }
    }

    /// Releases it with nobody waiting for it to be done. If that fails it ends with its TTL, like that of a holder that died.
    pub(crate) fn abandon(self: Arc<Self>) {
        runtime::spawn(runtime::on_a_thread(move || match &self.holder {
            // Nobody is there to be told how it went.
            Holder::Blocking(lease) => drop(lease.abandon()),
            Holder::Background(lease) => lease.release_in_background(),
        }));
    }
}
