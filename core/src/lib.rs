//! The protocol of tallylock as plain data: no sockets, no clock, no randomness.
//!
//! Reading path: [`step`] is the whole vocabulary; [`counter::Add`] is one operation, with its script and the
//! script's twin; [`drive`] is the loop that connects an operation to a transport and a clock.
//!
//! An operation is a value. It is started with the time, answers with a [`step::Step`] (what to send, and until when
//! to wait), and is handed every [`step::Event`] with the time at which it happened. It never waits and never asks.
#![forbid(unsafe_code)]

pub(crate) mod aside;
pub(crate) mod ballot;
pub mod claim;
pub mod counter;
pub mod drive;
pub mod error;
pub(crate) mod guard;
pub mod heal;
pub mod id;
pub mod key;
pub mod lock;
#[cfg(feature = "memory")]
pub mod memory;
pub mod meter;
pub mod metrics;
pub mod request;
pub mod round;
pub mod scan;
pub mod script;
pub(crate) mod seat;
pub mod settings;
pub(crate) mod sha1;
pub mod step;
pub mod time;
pub mod token;
pub mod transaction;
pub mod twin;
pub mod value;
pub mod waiting;
