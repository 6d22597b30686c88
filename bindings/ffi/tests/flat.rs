//! The flat functions as a wrapper calls them: ids, tickets, records and the bell.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tallylock_ffi::client::{close, connect, open, submit_connect};
use tallylock_ffi::completion::{
    cancel, completion_integer, completions_socket, completions_take, completions_wait_integer,
    ticket_wait,
};
use tallylock_ffi::counter::{check_counter, counter_add, submit_counter_add, submit_counter_read};
use tallylock_ffi::error::CallError;
use tallylock_ffi::lease::{
    lease_abandon, lease_ensure, lease_extend, lease_fence, lease_free, lease_release,
    leases_count, submit_lease_extend, submit_lease_release,
};
use tallylock_ffi::lock::{lock_acquire, submit_lock_acquire};
use tallylock_ffi::memory::{memory_keys, memory_put};
use tallylock_ffi::packed::{packed_counter_add, packed_leases_free, packed_lock_acquire};
use tallylock_ffi::value::value_touch;

const KEY: &[u8] = b"session:42:billableSecondsPending";
const MINUTE: i64 = 60_000_000;
const PATIENCE: u64 = 10_000;
/// After how long a lease is renewed: a third of its TTL.
const THIRD: i64 = 0;

fn memory() -> u64 {
    connect("memory://".into(), None, None, false, false).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    let CallError::Failed { code, .. } = result.unwrap_err();
    code
}

fn record(ticket: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    [&ticket.to_le_bytes(), [kind].as_slice(), payload].concat()
}

/// How the record of an error `closed` about this key begins.
fn record_of_closed(ticket: u64, key: &[u8]) -> Vec<u8> {
    let length = u32::try_from(key.len()).unwrap().to_le_bytes();
    record(
        ticket,
        5,
        &[b"\x06\0\0\0closed\0\0\0\0".as_slice(), &length, key].concat(),
    )
}

/// Waits for results, and takes all.
fn completions_wait(client: u64) -> Result<Vec<u8>, CallError> {
    completions_wait_integer(client, PATIENCE)?;
    completions_take(client)
}

fn packed(client: u64, rest: &[u8]) -> Vec<u8> {
    [client.to_le_bytes().as_slice(), &MINUTE.to_le_bytes(), rest].concat()
}

/// Renewed after a third of its TTL, for as long as it is held.
fn packed_lock(client: u64, key: &[u8]) -> Vec<u8> {
    packed(client, &[[0; 16].as_slice(), key].concat())
}

fn is_there(client: u64, key: &[u8]) -> bool {
    memory_keys(client)
        .unwrap()
        .iter()
        .any(|found| found.key == key)
}

fn await_gone(client: u64, key: &[u8]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_there(client, key) {
        assert!(Instant::now() < deadline, "it is still there");
        std::thread::yield_now();
    }
}

#[test]
fn ids_that_name_nothing_are_closed() {
    let client = memory();
    close(client);
    close(client);
    assert_eq!(code(counter_add(client, KEY, MINUTE, false, 1)), "closed");
    assert_eq!(code(submit_counter_read(client, 1, KEY, MINUTE)), "closed");
    assert_eq!(code(completions_take(client)), "closed");
    assert_eq!(code(lease_fence(0)), "closed");
    lease_free(0);
    lease_abandon(0);
}

#[test]
fn what_is_wrong_is_refused_before_it_is_submitted() {
    let client = memory();
    for (key, ttl) in [
        (KEY, 0),
        (KEY, -1),
        (KEY, 999),
        (KEY, i64::MAX),
        (b"".as_slice(), MINUTE),
        (b"a{}", MINUTE),
    ] {
        assert_eq!(code(check_counter(key, ttl)), "invalid_argument");
        assert_eq!(
            code(submit_counter_read(client, 1, key, ttl)),
            "invalid_argument"
        );
    }
    assert_eq!(
        code(submit_lock_acquire(client, 1, KEY, MINUTE, THIRD, 0, -1)),
        "invalid_argument"
    );
    assert_eq!(
        code(open("nonsense".into(), None, None, false, false)),
        "invalid_argument"
    );
    assert!(memory_keys(client).unwrap().is_empty());
}

#[test]
fn results_come_as_packed_records() {
    let client = open("memory://".into(), None, None, true, false).unwrap();
    submit_connect(client, 1).unwrap();
    assert_eq!(ticket_wait(client, 1, PATIENCE).unwrap(), record(1, 0, &[]));
    submit_counter_add(client, 2, KEY, MINUTE, false, i64::MIN).unwrap();
    assert_eq!(
        ticket_wait(client, 2, PATIENCE).unwrap(),
        record(2, 1, &i64::MIN.to_le_bytes())
    );
    submit_counter_add(client, 3, KEY, MINUTE, false, -1).unwrap();
    let failed = completions_wait(client).unwrap();
    assert!(
        failed.starts_with(&record(
            3,
            5,
            b"\x08\0\0\0overflow\0\0\0\0\x21\0\0\0session:42"
        )),
        "{failed:?}"
    );
    assert!(completions_take(client).unwrap().is_empty());
}

#[test]
fn the_bell_rings_once_until_the_queue_is_taken() {
    let client = memory();
    let descriptor = completions_socket(client).unwrap();
    // SAFETY: the descriptor was made for this test, which owns it.
    let mut bell = UnixStream::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    bell.set_nonblocking(false).unwrap();
    bell.set_read_timeout(Some(Duration::from_millis(PATIENCE)))
        .unwrap();
    let mut await_ring = || bell.read_exact(&mut [0]).unwrap();
    let add = |ticket| submit_counter_add(client, ticket, KEY, MINUTE, true, 1).unwrap();
    add(1);
    await_ring();
    for ticket in 2..=3 {
        add(ticket);
        // The first result is still in the queue.
        assert!(!ticket_wait(client, ticket, PATIENCE).unwrap().is_empty());
    }
    assert!(!completions_take(client).unwrap().is_empty());
    add(4);
    await_ring();
    completions_take(client).unwrap();
    close(client);
    let mut rings = Vec::new();
    bell.read_to_end(&mut rings).unwrap();
    assert!(rings.is_empty(), "{} too many", rings.len());
}

#[test]
fn a_ticket_that_is_given_up_leaves_no_lock() {
    let client = memory();
    for ticket in 1..=50 {
        submit_lock_acquire(client, ticket, b"lock", MINUTE, THIRD, 0, 0).unwrap();
        if ticket % 2 == 0 {
            // Granted already, but nobody has seen it.
            while !is_there(client, b"lock") {
                std::thread::yield_now();
            }
        }
        cancel(client, ticket);
        await_gone(client, b"lock");
        assert!(completions_take(client).unwrap().is_empty());
    }
}

#[test]
fn a_lease_under_a_chosen_id_can_be_abandoned() {
    let client = memory();
    let chosen = 1 << 63;
    packed_lock_acquire(&packed_lock(client, b"lock"), chosen).unwrap();
    assert!(lease_fence(chosen).unwrap() > 0);
    lease_abandon(chosen);
    await_gone(client, b"lock");
    assert_eq!(code(lease_release(chosen)), "closed");
}

#[test]
fn a_packed_handle_means_the_same() {
    let client = memory();
    let counter = packed(client, &[b"\0", KEY].concat());
    assert_eq!(packed_counter_add(&counter, i64::MIN).unwrap(), i64::MIN);
    assert_eq!(
        counter_add(client, KEY, MINUTE, false, i64::MAX).unwrap(),
        -1
    );
    assert_eq!(
        code(packed_counter_add(&counter[..15], 1)),
        "invalid_argument"
    );
    assert_eq!(
        code(packed_counter_add(&counter[..16], 1)),
        "invalid_argument"
    );
    assert_eq!(
        code(packed_counter_add(&packed(0, &[b"\0", KEY].concat()), 1)),
        "closed"
    );
    let ids = [(1 << 63) + 1, (1 << 63) + 2_u64];
    packed_lock_acquire(&packed_lock(client, b"one"), ids[0]).unwrap();
    packed_lock_acquire(&packed_lock(client, b"two"), ids[1]).unwrap();
    packed_leases_free(&ids.map(u64::to_le_bytes).concat());
    assert_eq!(ids.map(|id| code(lease_fence(id))), ["closed", "closed"]);
}

#[test]
fn a_freed_lease_is_not_released() {
    let client = memory();
    let lease = lock_acquire(client, b"lock", MINUTE, THIRD, 0).unwrap();
    assert!(leases_count() > 0);
    lease_free(lease);
    assert!(is_there(client, b"lock"));
    assert_eq!(
        code(lock_acquire(client, b"lock", MINUTE, THIRD, 0)),
        "busy"
    );
}

#[test]
fn an_integer_that_has_come_alone_is_taken_without_a_record() {
    let client = memory();
    submit_counter_add(client, 1, KEY, MINUTE, false, 5).unwrap();
    assert_eq!(completions_wait_integer(client, PATIENCE).unwrap(), 1);
    assert_eq!(completion_integer(client, 1).unwrap(), 5);
    assert_eq!(completions_wait_integer(client, 0).unwrap(), 0);
    // Given up after its ticket was told.
    submit_counter_add(client, 2, KEY, MINUTE, false, 1).unwrap();
    assert_eq!(completions_wait_integer(client, PATIENCE).unwrap(), 2);
    cancel(client, 2);
    assert_eq!(completion_integer(client, 2).unwrap(), 0);
    // Two are taken together.
    for ticket in 3..=4 {
        submit_counter_add(client, ticket, KEY, MINUTE, false, 1).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while completions_wait_integer(client, PATIENCE).unwrap() != 0 {
        assert!(Instant::now() < deadline, "the second has not come");
        std::thread::yield_now();
    }
    assert_eq!(completions_take(client).unwrap().len(), 2 * 17);
    // What is no integer, too.
    submit_connect(client, 5).unwrap();
    assert_eq!(completions_wait_integer(client, PATIENCE).unwrap(), 0);
    assert_eq!(completion_integer(client, 5).unwrap(), 0);
    assert_eq!(completions_take(client).unwrap(), record(5, 0, &[]));
    // The last of a client that is closed.
    submit_counter_add(client, 6, KEY, MINUTE, false, 1).unwrap();
    close(client);
    assert_eq!(completions_wait_integer(client, PATIENCE).unwrap(), 6);
    assert_eq!(completion_integer(client, 6).unwrap(), 9);
    assert_eq!(code(completions_wait_integer(client, PATIENCE)), "closed");
    assert_eq!(code(completion_integer(client, 6)), "closed");
}

#[test]
fn calls_under_way_at_the_closing_run_to_their_end() {
    let other = connect("memory://run-on".into(), None, None, false, false).unwrap();
    let client = connect("memory://run-on".into(), None, None, false, false).unwrap();
    for ticket in 1..=200 {
        submit_counter_add(client, ticket, KEY, MINUTE, true, 1).unwrap();
    }
    close(client);
    assert_eq!(
        code(submit_counter_add(client, 201, KEY, MINUTE, true, 1)),
        "closed"
    );
    let mut records = Vec::new();
    while records.len() < 200 * 17 {
        records.extend(completions_wait(client).unwrap());
    }
    let kinds: Vec<u8> = records.chunks(17).map(|record| record[8]).collect();
    assert_eq!(kinds, [1; 200], "each is told the total that it made");
    assert_eq!(counter_add(other, KEY, MINUTE, true, 0).unwrap(), 200);
    assert_eq!(code(completions_wait(client)), "closed");
}

#[test]
fn acquires_under_way_at_the_closing_leave_no_lock() {
    let other = connect("memory://ended".into(), None, None, false, false).unwrap();
    for round in 0..50 {
        let client = connect("memory://ended".into(), None, None, false, false).unwrap();
        submit_lock_acquire(client, 1, b"lock", MINUTE, THIRD, 0, 0).unwrap();
        if round % 2 == 0 {
            // Granted already, but nobody has seen it.
            while !is_there(other, b"lock") {
                std::thread::yield_now();
            }
        }
        close(client);
        let record = ticket_wait(client, 1, PATIENCE).unwrap();
        assert!(
            record.starts_with(&record_of_closed(1, b"lock")),
            "{record:?}"
        );
        await_gone(other, b"lock");
    }
}

#[test]
fn a_lease_is_abandoned_after_the_closing_too() {
    let other = connect("memory://abandoned".into(), None, None, false, false).unwrap();
    let client = connect("memory://abandoned".into(), None, None, false, false).unwrap();
    let at_once = lock_acquire(client, b"lock", MINUTE, THIRD, 0).unwrap();
    submit_lock_acquire(client, 1, b"other", MINUTE, THIRD, 0, 0).unwrap();
    let record = ticket_wait(client, 1, PATIENCE).unwrap();
    let waited = u64::from_le_bytes(record[9..].try_into().unwrap());
    close(client);
    for (lease, key) in [(at_once, "lock"), (waited, "other")] {
        let CallError::Failed {
            code, key: about, ..
        } = lease_release(lease).unwrap_err();
        assert_eq!((code.as_str(), about.as_deref()), ("closed", Some(key)));
        assert!(is_there(other, key.as_bytes()));
        lease_abandon(lease);
        await_gone(other, key.as_bytes());
    }
}

#[test]
fn a_refusal_names_the_key() {
    let client = memory();
    let lease = lock_acquire(client, b"lock", MINUTE, THIRD, 0).unwrap();
    let refused = [
        counter_add(client, b"lock", 0, false, 1).map(drop),
        submit_counter_read(client, 1, b"lock", 0),
        value_touch(client, b"lock", 0).map(drop),
        lock_acquire(client, b"lock", 0, THIRD, 0).map(drop),
        submit_lock_acquire(client, 1, b"lock", MINUTE, THIRD, 0, -1),
        lease_ensure(lease, -1),
        lease_extend(lease, 0),
        submit_lease_extend(client, 1, lease, 0),
    ];
    close(client);
    let closed = [
        counter_add(client, b"lock", MINUTE, false, 1).map(drop),
        submit_counter_read(client, 1, b"lock", MINUTE),
        value_touch(client, b"lock", MINUTE).map(drop),
        lock_acquire(client, b"lock", MINUTE, THIRD, 0).map(drop),
        submit_lock_acquire(client, 1, b"lock", MINUTE, THIRD, 0, 0),
        lease_extend(lease, MINUTE),
        submit_lease_release(client, 1, lease),
    ];
    for (expected, results) in [
        ("invalid_argument", refused.as_slice()),
        ("closed", closed.as_slice()),
    ] {
        for (place, result) in results.iter().enumerate() {
            let CallError::Failed { code, key, .. } = result.clone().unwrap_err();
            assert_eq!(
                (code.as_str(), key.as_deref()),
                (expected, Some("lock")),
                "{place}"
            );
        }
    }
}

#[test]
fn closing_wakes_who_waits() {
    let client = memory();
    memory_put(client, b"lock", b"of another", None).unwrap();
    let waiting = std::thread::spawn(move || completions_wait_integer(client, 60_000));
    let deadline = Instant::now() + Duration::from_secs(10);
    while !waiting.is_finished() {
        // It may not have begun to wait yet; then it finds the client closed.
        close(client);
        assert!(Instant::now() < deadline, "it still waits");
        std::thread::yield_now();
    }
    assert_eq!(code(waiting.join().unwrap()), "closed");
}
