//! TTL-safe billing counters and distributed locks on Redis or Valkey.
//!
//! [`blocking::Client`] is for threads.
#![forbid(unsafe_code)]

mod backend;
pub mod blocking;
mod clock;
mod endpoint;
mod handshake;
mod held;
mod memory;
mod options;
mod random;
mod spec;
mod tls;
mod wire;

pub use memory::{Memory, MemoryKey};
pub use options::{Options, Owner};
pub use tallylock_core::counter::Expiry;
pub use tallylock_core::error::{Applied, Code, Error, Reason};
