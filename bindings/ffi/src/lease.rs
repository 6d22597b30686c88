//! Leases: the time-limited right that an acquire gave. They are named by ids and stay until they are freed.

use std::sync::Arc;
use std::time::Duration;

use tallylock::{Error, blocking};

use crate::completion::{Outcome, submit};
use crate::error::CallError;
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
    let margin = argument::wait(margin_us)?;
    Ok(registry::lease(lease)?.ensure(margin)?)
}

/// Gives the lease another `ttl_us` microseconds from now, on the calling thread.
///
/// Fails with `lost`, `invalid_argument`, `timeout`, `unavailable`, `read_only`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn lease_extend(lease: u64, ttl_us: i64) -> Result<(), CallError> {
    let ttl = argument::ttl(ttl_us)?;
    Ok(registry::lease(lease)?.extend(ttl)?)
}

/// Gives the lease back, on the calling thread. Can be repeated after an error.
///
/// Fails with `lost`, `timeout`, `unavailable`, `read_only`, `forbidden`, `unsupported`, `closed`.
#[uniffi::export]
pub fn lease_release(lease: u64) -> Result<(), CallError> {
    Ok(registry::lease(lease)?.release()?)
}

/// Frees the id; releases nothing. Freeing again does nothing.
#[uniffi::export]
pub fn lease_free(lease: u64) {
    drop(registry::remove_lease(lease));
}

/// Releases the lease in the background and frees its id, for a caller that was interrupted; nothing if the id names no lease.
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
    let (lease, ttl) = (registry::lease(lease)?, argument::ttl(ttl_us)?);
    submit(client, ticket, move |_here| async move {
        lease.extend_in_background(ttl).await?;
        Ok(Outcome::Nothing)
    })
}

/// `lease_release` in the background; nothing comes under `ticket` of `client`.
#[uniffi::export]
pub fn submit_lease_release(client: u64, ticket: u64, lease: u64) -> Result<(), CallError> {
    let lease = registry::lease(lease)?;
    submit(client, ticket, move |_here| async move {
        lease.release_in_background().await?;
        Ok(Outcome::Nothing)
    })
}

/// A lease, by the client that acquired it.
pub(crate) enum Lease {
    Blocking(blocking::Lease),
    Background(tallylock::Lease),
}

impl Lease {
    fn fence(&self) -> u64 {
        match self {
            Self::Blocking(lease) => lease.fence(),
            Self::Background(lease) => lease.fence(),
        }
    }

    fn remaining(&self) -> Duration {
        match self {
            Self::Blocking(lease) => lease.remaining(),
            Self::Background(lease) => lease.remaining(),
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            Self::Blocking(lease) => lease.is_valid(),
            Self::Background(lease) => lease.is_valid(),
        }
    }

    fn ensure(&self, margin: Duration) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.ensure(margin),
            Self::Background(lease) => lease.ensure(margin),
        }
    }

    fn extend(&self, ttl: Duration) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.extend(ttl),
            Self::Background(lease) => runtime::wait_for(lease.extend(ttl)),
        }
    }

    fn release(&self) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.release(),
            Self::Background(lease) => runtime::wait_for(lease.release()),
        }
    }

    async fn extend_in_background(self: Arc<Self>, ttl: Duration) -> Result<(), Error> {
        match &*self {
            Self::Background(lease) => lease.extend(ttl).await,
            Self::Blocking(_) => runtime::on_a_thread(move || self.extend(ttl)).await,
        }
    }

    /// Releases it with nobody waiting for it to be done.
    pub(crate) fn abandon(self: Arc<Self>) {
        // If this fails the lease ends with its TTL, like that of a holder that died.
        runtime::spawn(self.release_in_background());
    }

    async fn release_in_background(self: Arc<Self>) -> Result<(), Error> {
        match &*self {
            Self::Background(lease) => lease.release().await,
            Self::Blocking(_) => runtime::on_a_thread(move || self.release()).await,
        }
    }
}
