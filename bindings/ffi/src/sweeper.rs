//! Sweeping: a pass under a lock, which hands out one claim at a time.
//!
//! The id of a pass is there before the pass, so that a caller who is interrupted while it begins can give it up. Results come as
//! bytes, little-endian:
//!
//! | result | bytes |
//! | --- | --- |
//! | to bill | `[0 u8][length u32][key][length u32][claim id][amount i64][resumed u8]` |
//! | unusable | `[1 u8][length u32][key]` and an error, packed as in [`completion`](crate::completion) |
//! | nothing more | empty |
//! | totals | `[offered u64][resumed u64][committed u64][committed units i128][aborted u64][aborted units i128][left open u64][unusable u64]` |

use std::future::Future;
use std::sync::Arc;

use tallylock::sweeper::{Due, Met, Totals};
use tallylock::{Code, Error, Sweep, SweepOptions};
use tokio::sync::OwnedMutexGuard;

use crate::completion::{AtClose, Outcome, pack_bytes, pack_error, submit};
use crate::error::CallError;
use crate::{argument, registry};

/// What a sweeper is to do; durations are microseconds.
#[derive(uniffi::Record)]
pub struct SweepArguments {
    /// The pattern of the counters' keys.
    pub pattern: Vec<u8>,
    /// Within what time they end.
    pub within_us: Option<i64>,
    /// How much they hold at least.
    pub at_least: Option<i64>,
    /// The TTL for a counter that is gone or has lost its own.
    pub ttl_us: i64,
    /// The key of the lock, in UTF-8.
    pub lock: Vec<u8>,
    /// How long the lock lasts.
    pub lock_ttl_us: i64,
    /// How long to wait for it.
    pub wait_us: i64,
}

/// Says whether a sweeper could be told this, without any I/O.
///
/// Fails with `invalid_argument`.
#[uniffi::export]
pub fn check_sweeper(arguments: SweepArguments) -> Result<(), CallError> {
    Ok(SweepOptions::try_from(arguments)?.check()?)
}

/// An id for one pass, to be given to `sweep_abandon` in the end, whatever becomes of it.
#[uniffi::export]
pub fn sweep_id() -> u64 {
    registry::next()
}

/// Begins a pass in the background: takes the lock. Under `ticket` comes the id of the pass, an integer.
///
/// The error is `busy` if another sweeper is at work, `invalid_argument`, or one of `lock_acquire`.
#[uniffi::export]
pub fn submit_sweep_begin(
    client: u64,
    ticket: u64,
    sweep: u64,
    arguments: SweepArguments,
) -> Result<(), CallError> {
    let key: Arc<[u8]> = arguments.lock.as_slice().into();
    let options = SweepOptions::try_from(arguments)?;
    submit(client, ticket, key, AtClose::Ends, move |here| async move {
        let sweeper = here.background().sweeper(options)?;
        Ok(Outcome::Sweep(Box::new(sweeper.begin().await?), sweep))
    })
}

/// Looks for what is to be billed next, in the background; `to bill`, `unusable` or `nothing more` comes under `ticket`. A claim
/// that is still in the caller's hand is left open.
///
/// The error is `lost` if the lock is no longer ours, or one of what any call that writes may, and ends the pass.
#[uniffi::export]
pub fn submit_sweep_next(client: u64, ticket: u64, sweep: u64) -> Result<(), CallError> {
    submit_in_pass(client, ticket, sweep, |mut pass| async move {
        let met = pass.next().await?;
        Ok(Outcome::Bytes(met.map_or_else(Vec::new, pack)))
    })
}

/// Ends the claim in the caller's hand as billed, in the background; nothing comes under `ticket`.
///
/// The error is one of `counter_commit`.
#[uniffi::export]
pub fn submit_sweep_commit(client: u64, ticket: u64, sweep: u64) -> Result<(), CallError> {
    submit_in_pass(client, ticket, sweep, |mut pass| async move {
        pass.commit().await?;
        Ok(Outcome::Nothing)
    })
}

/// Ends the claim in the caller's hand as not billed, in the background; its amount, an integer, comes under `ticket`.
///
/// The error is `lost` if the lock is no longer ours, or one of `counter_abort`.
#[uniffi::export]
pub fn submit_sweep_abort(client: u64, ticket: u64, sweep: u64) -> Result<(), CallError> {
    submit_in_pass(client, ticket, sweep, |mut pass| async move {
        Ok(Outcome::Integer(pass.abort().await?))
    })
}

/// Ends a pass in the background: releases its lock. Nothing comes under `ticket`; the id stays, for `sweep_totals`.
///
/// The error is one of `lease_release`.
#[uniffi::export]
pub fn submit_sweep_end(client: u64, ticket: u64, sweep: u64) -> Result<(), CallError> {
    submit_in_pass(client, ticket, sweep, |mut pass| async move {
        pass.end().await?;
        Ok(Outcome::Nothing)
    })
}

/// What a pass has done: `totals`. Nothing of it may be under way; a claim that is still in the caller's hand is left open.
///
/// Fails with `closed` if the id names no pass.
#[uniffi::export]
pub fn sweep_totals(sweep: u64) -> Result<Vec<u8>, CallError> {
    let pass = registry::sweep(sweep)?;
    let mut pass = pass.blocking_lock();
    // It is still there where the pass could not be ended.
    pass.leave_open();
    Ok(pack_totals(&pass.totals()))
}

/// Forgets a pass; its lock is released in the background, if that was not done, also after the client was closed. Nothing
/// happens if the id names none.
#[uniffi::export]
pub fn sweep_abandon(sweep: u64) {
    drop(registry::remove_sweep(sweep));
}

impl TryFrom<SweepArguments> for SweepOptions {
    type Error = Error;

    fn try_from(arguments: SweepArguments) -> Result<Self, Error> {
        Ok(Self {
            pattern: arguments.pattern,
            due: Due::new(
                arguments.within_us.map(argument::wait).transpose()?,
                arguments.at_least,
            )?,
            ttl: argument::ttl(arguments.ttl_us)?,
            lock: String::from_utf8(arguments.lock).map_err(|error| {
                let detail = "the key of a sweeper's lock is text, in UTF-8";
                Error::new(Code::InvalidArgument, detail).about(error.as_bytes())
            })?,
            lock_ttl: argument::ttl(arguments.lock_ttl_us)?,
            wait: argument::wait(arguments.wait_us)?,
        })
    }
}

/// Runs a verb of a pass in the background.
fn submit_in_pass<F>(
    client: u64,
    ticket: u64,
    sweep: u64,
    verb: impl FnOnce(OwnedMutexGuard<Sweep>) -> F + Send + 'static,
) -> Result<(), CallError>
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let pass = registry::sweep(sweep)?;
    let run = move |_here| async move { verb(pass.lock_owned().await).await };
    submit(client, ticket, Arc::default(), AtClose::RunsOn, run)
}

fn pack(met: Met) -> Vec<u8> {
    let mut packed = Vec::new();
    match met {
        Met::ToBill(claim) => {
            packed.push(0);
            pack_bytes(&mut packed, &claim.key);
            pack_bytes(&mut packed, claim.claim_id.as_bytes());
            packed.extend(claim.amount.to_le_bytes());
            packed.push(u8::from(claim.resumed));
        }
        Met::Unusable(unusable) => {
            packed.push(1);
            pack_bytes(&mut packed, &unusable.key);
            pack_error(&mut packed, unusable.error.into());
        }
    }
    packed
}

fn pack_totals(totals: &Totals) -> Vec<u8> {
    let mut packed = Vec::with_capacity(80);
    packed.extend(totals.offered.to_le_bytes());
    packed.extend(totals.resumed.to_le_bytes());
    packed.extend(totals.committed.to_le_bytes());
    packed.extend(totals.committed_units.to_le_bytes());
    packed.extend(totals.aborted.to_le_bytes());
    packed.extend(totals.aborted_units.to_le_bytes());
    packed.extend(totals.left_open.to_le_bytes());
    packed.extend(totals.unusable.to_le_bytes());
    packed
}
