//! The blocking client: a call writes its request and reads the reply on the calling thread, without any runtime.
//!
//! ```
//! use std::time::Duration;
//! use tallylock::blocking::Client;
//!
//! let client = Client::connect("memory://")?;
//! let seconds = client.counter("session:42:billableSecondsPending", Duration::from_secs(900))?;
//! seconds.add(30)?;
//! let lock = client.lock("invoice:42", Duration::from_secs(30))?;
//! let billed = lock.with_lock(Duration::from_secs(5), |lease| {
//!     lease.ensure(Duration::from_secs(2))?;
//!     seconds.drain()
//! })?;
//! assert_eq!(billed, Some(30));
//! # Ok::<(), tallylock::Error>(())
//! ```

mod acquire;
mod background;
mod client;
mod connection;
mod counter;
mod deadline;
mod guarded;
mod lane;
mod lease;
mod listener;
mod lock;
mod meter;
mod nodes;
mod plain;
mod pool;
mod redlock;
mod renewer;
mod scan;
mod stream;
mod undo;
mod value;

pub use client::Client;
pub use counter::Counter;
pub use guarded::Guarded;
pub use lease::Lease;
pub use lock::Lock;
pub use meter::Meter;
pub use plain::PlainConnection;
pub use redlock::Redlock;
pub use scan::Scan;
pub use value::Value;
