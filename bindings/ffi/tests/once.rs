//! Keyed adds, claims, batches, scans and updates as a wrapper calls them: the bytes of their results.

use tallylock_ffi::batch::{client_add_many, submit_client_add_many};
use tallylock_ffi::claim::{
    counter_abort, counter_add_once, counter_claim, counter_claims, counter_commit,
    counter_drain_fenced, submit_counter_claim,
};
use tallylock_ffi::client::connect;
use tallylock_ffi::completion::{cancel, ticket_wait};
use tallylock_ffi::counter::counter_add;
use tallylock_ffi::error::CallError;
use tallylock_ffi::memory::memory_put;
use tallylock_ffi::scan::client_scan;
use tallylock_ffi::update::{
    submit_update_begin_as, submit_update_offer, update_begin, update_begin_as, update_free,
    update_offer, update_present,
};

const KEY: &[u8] = b"session:42:billableSecondsPending";
const MINUTE: i64 = 60_000_000;
const PATIENCE: u64 = 10_000;

fn memory() -> u64 {
    connect("memory://".into(), None, None, false, false).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    let CallError::Failed { code, .. } = result.unwrap_err();
    code
}

/// A kind or a state, and a number.
fn record(kind: u8, number: i64) -> Vec<u8> {
    [[kind].as_slice(), &number.to_le_bytes()].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [length.to_le_bytes().as_slice(), bytes].concat()
}

fn entry(key: &[u8], amount: i64, id: &[u8]) -> Vec<u8> {
    let handle = [MINUTE.to_le_bytes().as_slice(), &[0], &text(key)].concat();
    let kind = u8::from(!id.is_empty());
    let id = if id.is_empty() { Vec::new() } else { text(id) };
    [handle, amount.to_le_bytes().to_vec(), vec![kind], id].concat()
}

#[test]
fn a_keyed_add_counts_once() {
    let client = memory();
    let add = |amount| counter_add_once(client, KEY, MINUTE, false, amount, b"evt-1", 0);
    assert_eq!(add(30).unwrap(), record(1, 30));
    assert_eq!(add(30).unwrap(), record(0, 30));
    assert_eq!(code(add(31)), "conflict");
}

#[test]
fn a_claim_is_its_state_and_amount() {
    let client = memory();
    let claim = || counter_claim(client, KEY, MINUTE, b"run-1", None).unwrap();
    assert_eq!(claim(), Vec::<u8>::new());
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    assert_eq!(claim(), record(0, 30));
    let open = counter_claims(client, KEY, MINUTE).unwrap();
    let (listed, remaining) = open.split_at(open.len() - 8);
    assert_eq!(
        listed,
        [text(b"run-1"), 30_i64.to_le_bytes().to_vec()].concat()
    );
    assert_eq!(
        i64::from_le_bytes(remaining.try_into().unwrap()),
        7 * 24 * 60 * MINUTE
    );
    counter_commit(client, KEY, MINUTE, b"run-1", 30).unwrap();
    assert_eq!(claim(), record(1, 30));
    counter_add(client, KEY, MINUTE, false, 5).unwrap();
    submit_counter_claim(client, 7, KEY, MINUTE, b"run-2", Some(8)).unwrap();
    let completed = ticket_wait(client, 7, PATIENCE).unwrap();
    assert!(completed.ends_with(&record(0, 5)), "{completed:?}");
    assert_eq!(
        counter_abort(client, KEY, MINUTE, b"run-2", Some(8)).unwrap(),
        5
    );
    assert_eq!(
        counter_claim(client, KEY, MINUTE, b"run-2", None).unwrap(),
        record(2, 5)
    );
    assert_eq!(
        code(counter_drain_fenced(client, KEY, MINUTE, 7)),
        "fenced_off"
    );
    assert_eq!(
        counter_drain_fenced(client, KEY, MINUTE, 8).unwrap(),
        Some(5)
    );
}

#[test]
fn a_batch_is_one_buffer_each_way() {
    let client = memory();
    memory_put(client, b"text", b"text", None).unwrap();
    let entries = [
        entry(KEY, 30, b""),
        entry(b"text", 1, b""),
        entry(KEY, 5, b"evt-1"),
    ]
    .concat();
    let results = client_add_many(client, &entries).unwrap();
    assert!(results.starts_with(&record(1, 30)));
    assert_eq!(results[9..10], [2]);
    assert_eq!(results[10..10 + 18], text(b"not_an_integer"));
    assert!(results.ends_with(&record(1, 35)));
    submit_client_add_many(client, 7, &entry(KEY, 5, b"evt-1")).unwrap();
    let completed = ticket_wait(client, 7, PATIENCE).unwrap();
    assert!(completed.ends_with(&record(0, 35)), "{completed:?}");
    for short in 1..entries.len() {
        let cut = &entries[..short];
        let ends_between = [
            entry(KEY, 30, b"").len(),
            entry(KEY, 30, b"").len() + entry(b"text", 1, b"").len(),
        ];
        if !ends_between.contains(&short) {
            assert_eq!(
                code(client_add_many(client, cut)),
                "invalid_argument",
                "{short}"
            );
        }
    }
}

#[test]
fn a_page_of_a_scan_is_a_cursor_and_counters() {
    let client = memory();
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    let counter = [
        text(KEY),
        30_i64.to_le_bytes().to_vec(),
        MINUTE.to_le_bytes().to_vec(),
    ]
    .concat();
    let page = [text(b""), counter].concat();
    assert_eq!(client_scan(client, b"session:*", b"", -1).unwrap(), page);
    assert_eq!(
        client_scan(client, b"session:*", b"", MINUTE).unwrap(),
        page
    );
    assert_eq!(
        client_scan(client, b"session:*", b"", MINUTE - 1_000).unwrap(),
        text(b"")
    );
    assert_eq!(
        code(client_scan(client, b"*", b"x", -1)),
        "invalid_argument"
    );
}

#[test]
fn an_update_lives_until_it_is_written_or_freed() {
    let client = memory();
    assert_eq!(update_begin(client, KEY).unwrap(), 0);
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    let update = update_begin(client, KEY).unwrap();
    assert_eq!(update_present(update).unwrap(), b"30");
    counter_add(client, KEY, MINUTE, false, 1).unwrap();
    assert_eq!(
        update_offer(client, KEY, update, b"mine", MINUTE).unwrap(),
        2
    );
    assert_eq!(update_present(update).unwrap(), b"31");
    assert_eq!(
        update_offer(client, KEY, update, b"mine", MINUTE).unwrap(),
        1
    );
    assert_eq!(code(update_present(update)), "closed");
    let given_up = update_begin(client, KEY).unwrap();
    update_free(given_up);
    update_free(given_up);
    assert_eq!(
        code(update_offer(client, KEY, given_up, b"x", MINUTE)),
        "closed"
    );
}

#[test]
fn an_update_has_the_id_that_its_owner_chose() {
    let client = memory();
    let chosen = 1 << 63;
    assert_eq!(update_begin_as(client, KEY, chosen).unwrap(), 0);
    assert_eq!(code(update_present(chosen)), "closed");
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    assert_eq!(update_begin_as(client, KEY, chosen).unwrap(), chosen);
    assert_eq!(update_present(chosen).unwrap(), b"30");
    submit_update_offer(client, 1, KEY, chosen, b"mine", MINUTE).unwrap();
    assert!(
        ticket_wait(client, 1, PATIENCE)
            .unwrap()
            .ends_with(&1_i64.to_le_bytes())
    );
    assert_eq!(code(update_present(chosen)), "closed");
}

#[test]
fn what_nobody_took_keeps_no_update() {
    let client = memory();
    let (begun, overtaken) = (1 << 63, (1 << 63) + 1);
    counter_add(client, KEY, MINUTE, false, 30).unwrap();
    update_begin_as(client, KEY, overtaken).unwrap();
    counter_add(client, KEY, MINUTE, false, 1).unwrap();
    submit_update_begin_as(client, 1, begun, KEY).unwrap();
    submit_update_offer(client, 2, KEY, overtaken, b"mine", MINUTE).unwrap();
    submit_update_begin_as(client, 3, begun + 2, KEY).unwrap();
    ticket_wait(client, 3, PATIENCE).unwrap();
    cancel(client, 1);
    cancel(client, 2);
    assert_eq!(code(update_present(begun)), "closed");
    assert_eq!(code(update_present(overtaken)), "closed");
    assert_eq!(update_present(begun + 2).unwrap(), b"31");
}
