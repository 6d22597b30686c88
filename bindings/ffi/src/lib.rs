//! tallylock for languages that reach Rust through uniffi.
//!
//! Every function is flat: numbers and byte slices in, a number or bytes out, because building objects costs more on this
//! boundary than a round to the server. Clients and leases are named by ids; an id that was closed or freed, or that never
//! was, is answered with `closed`.
//!
//! Verbs exist twice. `counter_add` and its like do their I/O on the calling thread. `submit_counter_add` and its like
//! return at once; the result comes through the client's queue ([`completion`]) under the ticket that the caller chose.
//!
//! Durations are microseconds in `i64`; what is out of bounds is refused with `invalid_argument` before any I/O.
//! A key is a borrowed byte slice: `bytes` in Python, a direct `ByteBuffer` in Kotlin (one per handle is enough).

mod argument;
pub mod batch;
mod bell;
pub mod claim;
pub mod client;
#[cfg(feature = "command")]
pub mod command;
pub mod completion;
pub mod counter;
pub mod error;
mod fork;
pub mod guarded;
pub mod lease;
pub mod lock;
pub mod memory;
pub mod meter;
pub mod metrics;
pub mod operator;
pub mod packed;
pub mod redlock;
mod registry;
mod runtime;
pub mod scan;
pub mod sweeper;
pub mod update;
pub mod value;

uniffi::setup_scaffolding!("tallylock_ffi");
