//! TTL-safe billing counters and distributed locks on Redis or Valkey.
//!
//! [`Client`] is for tokio, [`blocking::Client`] for threads; both have the same handles with the same verbs. What goes
//! wrong is an [`Error`] with a [`Code`] that is the same word in every language of tallylock.
//!
//! ```
//! use std::time::Duration;
//! use tallylock::Client;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tallylock::Error> {
//! let client = Client::connect("memory://").await?;
//! let seconds = client.counter("session:42:billableSecondsPending", Duration::from_secs(900))?;
//! seconds.add(30).await?;
//! let lock = client.lock("invoice:42", Duration::from_secs(30))?;
//! let billed = lock.with_lock(Duration::from_secs(5), async |lease| {
//!     lease.ensure(Duration::from_secs(2))?;
//!     seconds.drain().await
//! });
//! assert_eq!(billed.await?, Some(30));
//! # Ok(())
//! # }
//! ```
//!
//! Reading path: `spec` is what a handle was opened for, `client` drives the operations that it makes. `way`,
//! `connections` and `connection` carry their calls, `nodes` to several servers; `blocking` does the same on the calling
//! thread.
#![forbid(unsafe_code)]

mod acquire;
mod acquiring;
mod backend;
pub mod blocking;
mod claims;
mod client;
mod clock;
mod connection;
mod connections;
mod counter;
mod course;
mod dial;
mod endpoint;
mod guarded;
mod handshake;
mod held;
mod lease;
#[cfg(test)]
mod listener;
mod lock;
mod memory;
mod meter;
mod nodes;
mod opening;
mod options;
mod per_process;
mod random;
mod redlock;
mod renewals;
mod scan;
mod site;
mod socket;
mod spec;
mod subscriber;
pub mod sweeper;
mod timers;
mod tls;
mod value;
mod waiters;
mod way;
mod wire;

pub use claims::OpenClaim;
pub use client::Client;
pub use counter::Counter;
pub use guarded::Guarded;
pub use lease::Lease;
pub use lock::Lock;
pub use memory::{Memory, MemoryKey};
pub use meter::{Meter, MeterOptions};
pub use options::{Options, Owner};
pub use redlock::{Redlock, RedlockOptions};
pub use scan::Scan;
pub use sweeper::{Sweep, SweepOptions, Sweeper};
pub use tallylock_core::claim::{Claimed, Listed, State as ClaimState};
pub use tallylock_core::counter::{Added, Entry, Expiry};
pub use tallylock_core::error::{Applied, Code, Error, Reason};
pub use tallylock_core::key::SideKey;
pub use tallylock_core::lock::{Holder, Stolen};
pub use tallylock_core::meter::{Flushed, Refused};
pub use tallylock_core::metrics::{Losses, Metrics};
pub use tallylock_core::scan::Found;
pub use tallylock_core::step::Reply;
pub use tallylock_core::value::{Offered, Update};
pub use value::Value;
