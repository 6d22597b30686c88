//! Sweeps as a wrapper makes them: the bytes of their results, and what becomes of those that nobody takes.

use std::time::{Duration, Instant};

use tallylock_ffi::client::{close, connect};
use tallylock_ffi::completion::{cancel, ticket_wait};
use tallylock_ffi::counter::counter_add;
use tallylock_ffi::error::CallError;
use tallylock_ffi::memory::{memory_keys, memory_put};
use tallylock_ffi::sweeper::{
    SweepArguments, check_sweeper, submit_sweep_abort, submit_sweep_begin, submit_sweep_commit,
    submit_sweep_end, submit_sweep_next, sweep_abandon, sweep_id, sweep_totals,
};

const KEY: &[u8] = b"session:42:pending";
const MINUTE: i64 = 60_000_000;
const PATIENCE: u64 = 10_000;

fn memory(url: &str) -> u64 {
    connect(url.into(), None, None, false, false).unwrap()
}

fn arguments() -> SweepArguments {
    SweepArguments {
        pattern: b"session:*:pending".to_vec(),
        within_us: Some(2 * MINUTE),
        at_least: None,
        ttl_us: MINUTE,
        lock: b"sweeper".to_vec(),
        lock_ttl_us: MINUTE,
        wait_us: 0,
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    let CallError::Failed { code, .. } = result.unwrap_err();
    code
}

/// The kind and the payload of a ticket's record.
fn outcome(client: u64, ticket: u64) -> (u8, Vec<u8>) {
    let record = ticket_wait(client, ticket, PATIENCE).unwrap();
    (record[8], record[9..].to_vec())
}

fn begun(client: u64) -> u64 {
    let sweep = sweep_id();
    submit_sweep_begin(client, 1, sweep, arguments()).unwrap();
    assert_eq!(outcome(client, 1), (1, sweep.to_le_bytes().to_vec()));
    sweep
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [length.to_le_bytes().as_slice(), bytes].concat()
}

/// What `next` gives, without the length before it.
fn next(client: u64, sweep: u64) -> Vec<u8> {
    submit_sweep_next(client, 2, sweep).unwrap();
    let (kind, bytes) = outcome(client, 2);
    assert_eq!(kind, 2);
    bytes[4..].to_vec()
}

fn is_locked(client: u64) -> bool {
    let keys = memory_keys(client).unwrap();
    keys.iter().any(|found| found.key == b"sweeper")
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_pass_gives_claims_and_totals() {
    let client = memory("memory://");
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    memory_put(client, b"session:x:pending", b"x", Some(MINUTE)).unwrap();
    let sweep = begun(client);
    let to_bill = next(client, sweep);
    assert_eq!(to_bill[0], 0);
    let (key, rest) = to_bill[1..].split_at(4 + KEY.len());
    assert_eq!(key, text(KEY));
    let id_length = 4 + "sweep.sweeper.".len() + 32;
    assert!(rest[4..].starts_with(b"sweep.sweeper."));
    assert_eq!(
        rest[id_length..],
        [30_i64.to_le_bytes().as_slice(), &[0]].concat()
    );
    submit_sweep_abort(client, 3, sweep).unwrap();
    assert_eq!(outcome(client, 3), (1, 30_i64.to_le_bytes().to_vec()));
    let unusable = next(client, sweep);
    let begins = [
        [1].as_slice(),
        &text(b"session:x:pending"),
        &text(b"not_an_integer"),
    ]
    .concat();
    assert_eq!(unusable[..begins.len()], begins);
    assert_eq!(next(client, sweep), b"");
    submit_sweep_end(client, 4, sweep).unwrap();
    assert_eq!(outcome(client, 4), (0, vec![]));
    assert!(!is_locked(client));
    let numbers =
        |numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
    let expected = [
        numbers(&[1, 0, 0]),
        0_i128.to_le_bytes().to_vec(),
        numbers(&[1]),
        30_i128.to_le_bytes().to_vec(),
        numbers(&[0, 1]),
    ];
    assert_eq!(sweep_totals(sweep).unwrap(), expected.concat());
    sweep_abandon(sweep);
    assert_eq!(code(sweep_totals(sweep)), "closed");
    assert_eq!(code(submit_sweep_commit(client, 5, sweep)), "closed");
}

#[test]
fn a_pass_that_is_given_up_releases_its_lock() {
    let client = memory("memory://");
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    let sweep = begun(client);
    next(client, sweep);
    assert!(is_locked(client));
    sweep_abandon(sweep);
    eventually("the lock is released", || !is_locked(client));
    let again = begun(client);
    assert_eq!(next(client, again).last(), Some(&1), "the claim is resumed");
    sweep_abandon(again);
}

#[test]
fn a_pass_that_nobody_has_seen_releases_its_lock() {
    for is_closed in [false, true] {
        let url = format!("memory://unseen-sweep-{is_closed}");
        let (client, bystander) = (memory(&url), memory(&url));
        submit_sweep_begin(client, 1, sweep_id(), arguments()).unwrap();
        eventually("the lock is taken", || is_locked(bystander));
        if is_closed {
            close(client);
        } else {
            cancel(client, 1);
        }
        eventually("the lock is released", || !is_locked(bystander));
    }
}

#[test]
fn what_a_sweeper_is_told_is_checked() {
    let refused = [
        SweepArguments {
            within_us: None,
            ..arguments()
        },
        SweepArguments {
            within_us: Some(-1),
            ..arguments()
        },
        SweepArguments {
            at_least: Some(0),
            ..arguments()
        },
        SweepArguments {
            lock: vec![0xff],
            ..arguments()
        },
        SweepArguments {
            lock_ttl_us: 0,
            ..arguments()
        },
        SweepArguments {
            wait_us: -1,
            ..arguments()
        },
    ];
    for arguments in refused {
        assert_eq!(code(check_sweeper(arguments)), "invalid_argument");
    }
    check_sweeper(arguments()).unwrap();
}
