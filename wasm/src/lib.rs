//! tallylock's core for JavaScript: classes over [`tallylock_core::drive`], whose transport and clock are JavaScript's.
//!
//! Reading path: [`host`] is what JavaScript gives, `client` what it gets, `ask` how a verb runs; `slots` is how an answer
//! finds the call that waits for it. Nothing here keeps a `&mut` across an await, so that calls on one client may overlap,
//! and nothing panics on what comes from outside: one panic would end every later call of the instance.

#![allow(
    // JavaScript's only number: milliseconds and call numbers cross as one, whole and below 2^53.
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    // Call numbers are whole, so that equal is equal.
    clippy::float_cmp,
    // wasm-bindgen hands over owned values.
    clippy::needless_pass_by_value
)]

#[cfg(target_arch = "wasm32")]
mod allocator;
mod ask;
mod batch;
mod client;
mod counter;
mod duration;
mod executor;
mod hearing;
mod held;
pub mod host;
mod lease;
mod link;
mod lock;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "nodes")]
mod nodes;
mod reply;
mod scan;
mod slots;
mod stop;
mod task;
mod value;
mod waiters;

pub use client::{Client, refuse_options};
pub use counter::Counter;
pub use lock::{Acquiring, Lock};
#[cfg(feature = "memory")]
pub use memory::MemoryFace;
pub use value::{Updating, Value};
