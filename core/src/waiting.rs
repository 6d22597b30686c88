//! Waiting for locks together: the waiters of one client for a lock stand in a line, of which the first alone asks the server,
//! and one connection hears of all releases.
//!
//! What is heard is a hint and decides nothing: a waiter who hears nothing looks by itself.

mod line;
mod subscriptions;

pub use line::{Line, Ticket};
pub use subscriptions::{Heard, Subscriptions};

use crate::token::Seed;

/// How long a connection is kept on which nothing is subscribed any more, in milliseconds: the next waiter may come soon.
pub const KEPT_IDLE: u64 = 10_000;

/// How long after the `n`-th failure in a row the connection is opened again, in milliseconds; after none, at once.
pub fn reopened_after(seed: Seed, failures: u32) -> u64 {
    if failures == 0 {
        return 0;
    }
    let longest = (64_u64 << failures.min(16)).min(8_192);
    seed.jitter(failures, longest / 2, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_opened_again_at_once_and_then_ever_later() {
        let seed = Seed::new([7; 16]);
        assert_eq!(reopened_after(seed, 0), 0);
        let mut last = 0;
        for failures in 1..=7 {
            let after = reopened_after(seed, failures);
            assert!(after >= last && (64..=8_192).contains(&after), "{after}");
            last = after / 2;
        }
        assert!((4_096..=8_192).contains(&reopened_after(seed, u32::MAX)));
    }
}
