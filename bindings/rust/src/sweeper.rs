//! Billing what nobody else bills: counters that are about to end with something in them, or that hold much.
//!
//! A [`Sweeper`] is a plan. [`begin`](Sweeper::begin) takes its lock for one pass, a [`Sweep`], which hands out one claim at
//! a time; whoever is given it bills it and says what became of it. What it promises is told in `docs/billing.md`.
//!
//! ```
//! use std::time::Duration;
//! use tallylock::sweeper::{Due, Met};
//! use tallylock::{Client, SweepOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tallylock::Error> {
//! let client = Client::connect("memory://").await?;
//! client.counter("session:42:pending", Duration::from_secs(60))?.add(30).await?;
//! let sweeper = client.sweeper(SweepOptions {
//!     pattern: b"session:*:pending".to_vec(),
//!     due: Due::Within(Duration::from_secs(120)),
//!     ttl: Duration::from_secs(60),
//!     lock: "session:sweeper".to_owned(),
//!     lock_ttl: Duration::from_secs(30),
//!     wait: Duration::ZERO,
//! })?;
//! let mut pass = sweeper.begin().await?;
//! while let Some(met) = pass.next().await? {
//!     match met {
//!         // It may be given again after a crash: the invoice's primary key is the claim's id.
//!         Met::ToBill(claim) => {
//!             println!("invoice {}: {}", claim.claim_id, claim.amount);
//!             pass.commit().await?;
//!         }
//!         Met::Unusable(found) => eprintln!("{}", found.error),
//!     }
//! }
//! pass.end().await?;
//! assert_eq!(pass.totals().committed_units, 30);
//! # Ok(())
//! # }
//! ```

mod claims;
mod pass;
mod plan;

pub use pass::{Met, Sweep, ToBill, Totals, Unusable};
pub use plan::{Due, SweepOptions, Sweeper};
