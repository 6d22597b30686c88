//! Keyed adds and claims: what counts once, and draining in two steps. `ttl_us` is the time to live that a write gives the
//! counter, in microseconds.
//!
//! Results with parts come as bytes, little-endian:
//!
//! | result | bytes |
//! | --- | --- |
//! | added | `[applied u8][total i64]` |
//! | claim | `[state u8][amount i64]`, the state 0 open, 1 committed, 2 aborted; empty for no claim |
//! | open claims | for each `[length u32][id][amount i64][remaining_us i64]`, -1 for one without a TTL |

use tallylock::{Added, ClaimState, Claimed, Counter, OpenClaim};

use crate::argument;
use crate::completion::Outcome;
use crate::counter::{submit_with_counter, with_counter};
use crate::error::{CallError, about};

/// Adds to a counter unless it was added under this id before; gives `added`. The id is remembered for `remember_us`
/// microseconds, as long as the shared default says if that is 0.
///
/// Fails with `conflict` if another amount was added under this id, with `invalid_argument`, and like `counter_add`.
#[uniffi::export]
pub fn counter_add_once(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    fixed: bool,
    amount: i64,
    id: &[u8],
    remember_us: i64,
) -> Result<Vec<u8>, CallError> {
    with_counter(client, key, ttl_us, |counter| {
        let counter = if fixed { counter.fixed() } else { counter };
        let counter = match argument::choice(remember_us)? {
            Some(time) => counter.remembering(time)?,
            None => counter,
        };
        counter.add_once(amount, id).map(pack_added)
    })
}

/// Drains a counter for the holder of a lock with this fence. Fails with `fenced_off` if a higher one was seen there, and like
/// `counter_drain`.
#[uniffi::export]
pub fn counter_drain_fenced(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    fence: u64,
) -> Result<Option<i64>, CallError> {
    with_counter(client, key, ttl_us, |counter| counter.fenced(fence).drain())
}

/// Takes what a counter holds for the claim of this id, for the holder of a lock if there is a fence; gives `claim`.
///
/// Fails with `fenced_off`, `wrong_type`, `not_an_integer`, `invalid_argument`, and those of every call: `timeout`, `unavailable`,
/// `read_only`, `forbidden`, `out_of_memory`, `unsupported`, `closed`, and `outcome_unknown` if all repeats go unanswered.
#[uniffi::export]
pub fn counter_claim(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    fence: Option<u64>,
) -> Result<Vec<u8>, CallError> {
    with_counter(client, key, ttl_us, |counter| {
        let counter = match fence {
            Some(fence) => counter.fenced(fence),
            None => counter,
        };
        counter.claim(id).map(pack_claim)
    })
}

/// Ends a claim as billed with this amount. Fails with `conflict`, and like `counter_claim`.
#[uniffi::export]
pub fn counter_commit(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    amount: i64,
) -> Result<(), CallError> {
    with_counter(client, key, ttl_us, |counter| counter.commit(id, amount))
}

/// Ends a claim as not billed, for the holder of a lock if there is a fence, and gives the amount that the counter got back.
/// Fails with `conflict`, `overflow`, and like `counter_claim`.
#[uniffi::export]
pub fn counter_abort(
    client: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    fence: Option<u64>,
) -> Result<i64, CallError> {
    with_counter(client, key, ttl_us, |counter| match fence {
        Some(fence) => counter.fenced(fence).abort(id),
        None => counter.abort(id),
    })
}

/// The `open claims` of a counter, looked for among all keys of the server. Fails like `counter_read`.
#[uniffi::export]
pub fn counter_claims(client: u64, key: &[u8], ttl_us: i64) -> Result<Vec<u8>, CallError> {
    with_counter(client, key, ttl_us, |counter| {
        counter.claims().map(|claims| pack_claims(&claims))
    })
}

/// `counter_add_once` in the background; bytes come under `ticket`.
#[expect(
    clippy::too_many_arguments,
    reason = "flat: see the crate's documentation"
)]
#[uniffi::export]
pub fn submit_counter_add_once(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    fixed: bool,
    amount: i64,
    id: &[u8],
    remember_us: i64,
) -> Result<(), CallError> {
    let remember = argument::choice(remember_us).map_err(about(key))?;
    let id = id.to_vec();
    submit_with_counter(client, ticket, key, ttl_us, move |counter| async move {
        let counter = if fixed { counter.fixed() } else { counter };
        let counter = match remember {
            Some(time) => counter.remembering(time)?,
            None => counter,
        };
        Ok(Outcome::Bytes(pack_added(
            counter.add_once(amount, id).await?,
        )))
    })
}

/// `counter_drain_fenced` in the background; an integer or nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_drain_fenced(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    fence: u64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, move |counter| async move {
        Ok(counter.fenced(fence).drain().await?.into())
    })
}

/// `counter_claim` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_counter_claim(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    fence: Option<u64>,
) -> Result<(), CallError> {
    let id = id.to_vec();
    submit_with_counter(
        client,
        ticket,
        key,
        ttl_us,
        move |counter: Counter| async move {
            let counter = match fence {
                Some(fence) => counter.fenced(fence),
                None => counter,
            };
            Ok(Outcome::Bytes(pack_claim(counter.claim(id).await?)))
        },
    )
}

/// `counter_commit` in the background; nothing comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_commit(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    amount: i64,
) -> Result<(), CallError> {
    let id = id.to_vec();
    submit_with_counter(client, ticket, key, ttl_us, move |counter| async move {
        counter.commit(id, amount).await?;
        Ok(Outcome::Nothing)
    })
}

/// `counter_abort` in the background; an integer comes under `ticket`.
#[uniffi::export]
pub fn submit_counter_abort(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
    id: &[u8],
    fence: Option<u64>,
) -> Result<(), CallError> {
    let id = id.to_vec();
    submit_with_counter(
        client,
        ticket,
        key,
        ttl_us,
        move |counter: Counter| async move {
            let counter = match fence {
                Some(fence) => counter.fenced(fence),
                None => counter,
            };
            Ok(Outcome::Integer(counter.abort(id).await?))
        },
    )
}

/// `counter_claims` in the background; bytes come under `ticket`.
#[uniffi::export]
pub fn submit_counter_claims(
    client: u64,
    ticket: u64,
    key: &[u8],
    ttl_us: i64,
) -> Result<(), CallError> {
    submit_with_counter(client, ticket, key, ttl_us, |counter| async move {
        Ok(Outcome::Bytes(pack_claims(&counter.claims().await?)))
    })
}

fn pack_added(added: Added) -> Vec<u8> {
    let mut packed = vec![u8::from(added.applied)];
    packed.extend(added.total.to_le_bytes());
    packed
}

fn pack_claim(claimed: Option<Claimed>) -> Vec<u8> {
    let Some(claimed) = claimed else {
        return Vec::new();
    };
    let mut packed = vec![match claimed.state {
        ClaimState::Open => 0,
        ClaimState::Committed => 1,
        ClaimState::Aborted => 2,
    }];
    packed.extend(claimed.amount.to_le_bytes());
    packed
}

fn pack_claims(claims: &[OpenClaim]) -> Vec<u8> {
    let mut packed = Vec::new();
    for claim in claims {
        crate::completion::pack_bytes(&mut packed, &claim.id);
        packed.extend(claim.amount.to_le_bytes());
        packed.extend(claim.remaining.map_or(-1, argument::micros).to_le_bytes());
    }
    packed
}
