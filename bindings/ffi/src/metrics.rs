//! What a client has counted, in this process, with both of its connections.
//!
//! The numbers are 21 little-endian `i64` in this order, times in microseconds:
//!
//! | of | numbers |
//! | --- | --- |
//! | acquires | granted, busy, cancelled, failed, attempts, waited, longest wait |
//! | leases | adopted, released, transferred, abandoned |
//! | losses | expired, taken over, unreachable |
//! | holding | held, longest hold, renewals, failed renewals, smallest margin or -1 |
//! | others | stolen, healed |

use tallylock::Metrics;

use crate::error::CallError;
use crate::{argument, registry};

/// What this client has counted.
///
/// Fails with `closed`.
#[uniffi::export]
pub fn client_metrics(client: u64) -> Result<Vec<u8>, CallError> {
    let metrics = registry::client(client)?.metrics();
    Ok(figures(&metrics).map(i64::to_le_bytes).concat())
}

fn figures(metrics: &Metrics) -> [i64; 21] {
    let count = |number| i64::try_from(number).unwrap_or(i64::MAX);
    [
        count(metrics.granted),
        count(metrics.busy),
        count(metrics.cancelled),
        count(metrics.failed),
        count(metrics.attempts),
        argument::micros(metrics.waited),
        argument::micros(metrics.longest_wait),
        count(metrics.adopted),
        count(metrics.released),
        count(metrics.transferred),
        count(metrics.abandoned),
        count(metrics.lost.expired),
        count(metrics.lost.taken_over),
        count(metrics.lost.unreachable),
        argument::micros(metrics.held),
        argument::micros(metrics.longest_hold),
        count(metrics.renewals),
        count(metrics.failed_renewals),
        metrics.smallest_margin.map_or(-1, argument::micros),
        count(metrics.stolen),
        count(metrics.healed),
    ]
}
