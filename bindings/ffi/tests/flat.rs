//! The flat functions as a wrapper calls them: ids, tickets, records and the bell.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tallylock_ffi::client::{close, connect, open, submit_connect};
use tallylock_ffi::completion::{
    cancel, completions_socket, completions_take, completions_wait, ticket_wait,
};
use tallylock_ffi::counter::{check_counter, counter_add, submit_counter_add, submit_counter_read};
use tallylock_ffi::error::CallError;
use tallylock_ffi::lease::{lease_abandon, lease_fence, lease_free, lease_release, leases_count};
use tallylock_ffi::lock::{lock_acquire, submit_lock_acquire};
use tallylock_ffi::memory::{memory_keys, memory_put};
use tallylock_ffi::packed::{packed_counter_add, packed_leases_free, packed_lock_acquire};

const KEY: &[u8] = b"session:42:billableSecondsPending";
const MINUTE: i64 = 60_000_000;
const PATIENCE: u64 = 10_000;

fn memory() -> u64 {
    connect("memory://".into(), None, None, false).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    let CallError::Failed { code, .. } = result.unwrap_err();
    code
}

fn record(ticket: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    [&ticket.to_le_bytes(), [kind].as_slice(), payload].concat()
}

fn packed(client: u64, rest: &[u8]) -> Vec<u8> {
    [client.to_le_bytes().as_slice(), &MINUTE.to_le_bytes(), rest].concat()
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
        code(submit_lock_acquire(client, 1, KEY, MINUTE, -1)),
        "invalid_argument"
    );
    assert_eq!(
        code(open("nonsense".into(), None, None, false)),
        "invalid_argument"
    );
    assert!(memory_keys(client).unwrap().is_empty());
}

#[test]
fn results_come_as_packed_records() {
    let client = open("memory://".into(), None, None, true).unwrap();
    submit_connect(client, 1).unwrap();
    assert_eq!(ticket_wait(client, 1, PATIENCE).unwrap(), record(1, 0, &[]));
    submit_counter_add(client, 2, KEY, MINUTE, false, i64::MIN).unwrap();
    assert_eq!(
        ticket_wait(client, 2, PATIENCE).unwrap(),
        record(2, 1, &i64::MIN.to_le_bytes())
    );
    submit_counter_add(client, 3, KEY, MINUTE, false, -1).unwrap();
    let failed = completions_wait(client, PATIENCE).unwrap();
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
    for ticket in 1..=3 {
        submit_counter_add(client, ticket, KEY, MINUTE, true, 1).unwrap();
    }
    let mut records = Vec::new();
    while records.len() < 3 * 17 {
        records.extend(completions_wait(client, PATIENCE).unwrap());
    }
    close(client);
    let mut rings = Vec::new();
    bell.set_nonblocking(false).unwrap();
    bell.read_to_end(&mut rings).unwrap();
    assert!((1..=3).contains(&rings.len()), "{rings:?}");
}

#[test]
fn a_ticket_that_is_given_up_leaves_no_lock() {
    let client = memory();
    for ticket in 1..=50 {
        submit_lock_acquire(client, ticket, b"lock", MINUTE, 0).unwrap();
        if ticket % 2 == 0 {
            // Granted already, but nobody has seen it.
            while !is_there(client, b"lock") {
                std::thread::yield_now();
            }
        }
        cancel(client, ticket).unwrap();
        await_gone(client, b"lock");
        assert!(completions_take(client).unwrap().is_empty());
    }
}

#[test]
fn a_lease_under_a_chosen_id_can_be_abandoned() {
    let client = memory();
    let chosen = 1 << 63;
    packed_lock_acquire(&packed(client, b"lock"), chosen).unwrap();
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
    packed_lock_acquire(&packed(client, b"one"), ids[0]).unwrap();
    packed_lock_acquire(&packed(client, b"two"), ids[1]).unwrap();
    packed_leases_free(&ids.map(u64::to_le_bytes).concat());
    assert_eq!(ids.map(|id| code(lease_fence(id))), ["closed", "closed"]);
}

#[test]
fn a_freed_lease_is_not_released() {
    let client = memory();
    let lease = lock_acquire(client, b"lock", MINUTE).unwrap();
    assert!(leases_count() > 0);
    lease_free(lease);
    assert!(is_there(client, b"lock"));
    assert_eq!(code(lock_acquire(client, b"lock", MINUTE)), "busy");
}

#[test]
fn closing_wakes_who_waits() {
    let client = memory();
    memory_put(client, b"lock", b"of another", None).unwrap();
    let waiting = std::thread::spawn(move || completions_wait(client, 60_000));
    let deadline = Instant::now() + Duration::from_secs(10);
    while !waiting.is_finished() {
        // It may not have begun to wait yet; then it finds the client closed.
        close(client);
        assert!(Instant::now() < deadline, "it still waits");
        std::thread::yield_now();
    }
    assert_eq!(code(waiting.join().unwrap()), "closed");
}
