//! What tallylock's tests share: [real servers](server) that end with the test, a [fault proxy](proxy) between a client and such a
//! server, and the conformance cases in `cases/` that each language runs.
//!
//! The proxy is also a program, `tallylock-fault-proxy`, for the tests of the other languages.

#![forbid(unsafe_code)]

pub mod proxy;
pub mod server;

pub use proxy::Proxy;
pub use server::{Kind, Server};
