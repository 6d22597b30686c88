//! Meters as a wrapper calls them: the bytes of their results, and what becomes of their ids.

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use tallylock_ffi::client::{close, connect};
use tallylock_ffi::completion::{cancel, ticket_wait};
use tallylock_ffi::counter::counter_read;
use tallylock_ffi::error::CallError;
use tallylock_ffi::memory::memory_put_other_type;
use tallylock_ffi::meter::{
    MeterSettings, meter_add, meter_close, meter_free, meter_take_refused, meter_trouble,
    submit_meter_close, submit_meter_flush, submit_meter_open,
};

const KEY: &[u8] = b"session:42:billableSecondsPending";
const MINUTE: i64 = 60_000_000;
const PATIENCE: u64 = 10_000;
const CHOSEN: u64 = 1 << 63;

fn memory() -> u64 {
    connect("memory://".into(), None, None, false, false).unwrap()
}

fn settings() -> MeterSettings {
    MeterSettings {
        ttl_us: MINUTE,
        fixed: false,
        interval_us: Some(60 * MINUTE),
        max_units: None,
        max_counters: None,
        remember_us: None,
        journal: None,
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    let CallError::Failed { code, .. } = result.unwrap_err();
    code
}

/// The kind of a record, and what follows it.
fn outcome(client: u64, ticket: u64) -> (u8, Vec<u8>) {
    let record = ticket_wait(client, ticket, PATIENCE).unwrap();
    assert_eq!(record[..8], ticket.to_le_bytes());
    (record[8], record[9..].to_vec())
}

fn opened(client: u64, settings: MeterSettings) -> u64 {
    submit_meter_open(client, 1, None, settings).unwrap();
    let (kind, id) = outcome(client, 1);
    assert_eq!(kind, 1);
    u64::from_le_bytes(id.try_into().unwrap())
}

fn numbers(numbers: [u64; 4]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    [&32_u32.to_le_bytes(), bytes.as_slice()].concat()
}

#[test]
fn what_is_added_is_flushed_and_told_of_in_four_numbers() {
    let client = memory();
    let meter = opened(client, settings());
    memory_put_other_type(client, b"list", None).unwrap();
    meter_add(meter, KEY, 30).unwrap();
    meter_add(meter, KEY, -5).unwrap();
    meter_add(meter, b"list", 7).unwrap();
    assert_eq!(counter_read(client, KEY, MINUTE).unwrap(), None);
    submit_meter_flush(client, 2, meter).unwrap();
    assert_eq!(outcome(client, 2), (2, numbers([1, 25, 0, 1])));
    assert_eq!(counter_read(client, KEY, MINUTE).unwrap(), Some(25));
    let refused = meter_take_refused(meter).unwrap();
    let expected = [
        &[4, 0, 0, 0],
        b"list".as_slice(),
        &7_i64.to_le_bytes(),
        &[10, 0, 0, 0],
        b"wrong_type",
    ]
    .concat();
    assert_eq!(refused[..expected.len()], expected);
    assert!(meter_take_refused(meter).unwrap().is_empty());
    assert!(meter_trouble(meter).unwrap().is_empty());
    submit_meter_close(client, 3, meter).unwrap();
    assert_eq!(outcome(client, 3), (2, numbers([0; 4])));
    assert_eq!(code(meter_add(meter, KEY, 1)), "closed");
    meter_free(meter);
    meter_free(meter);
    assert_eq!(code(meter_take_refused(meter)), "closed");
}

#[test]
fn what_is_out_of_bounds_is_refused_before_anything_else() {
    let client = memory();
    let with = |change: fn(&mut MeterSettings)| {
        let mut settings = settings();
        change(&mut settings);
        let CallError::Failed { code, detail, .. } =
            submit_meter_open(client, 1, None, settings).unwrap_err();
        assert_eq!(code, "invalid_argument");
        detail
    };
    assert!(with(|settings| settings.ttl_us = 0).contains("ttl must"));
    assert!(with(|settings| settings.interval_us = Some(-1)).contains("interval must"));
    assert!(with(|settings| settings.remember_us = Some(0)).contains("remember must"));
    assert!(with(|settings| settings.max_units = Some(0)).contains("max_units must"));
    assert!(with(|settings| settings.max_units = Some(-7)).contains("not -7"));
    assert!(with(|settings| settings.max_counters = Some(0)).contains("max_counters must"));
    let too_short = MeterSettings {
        remember_us: Some(1_000_000),
        ..settings()
    };
    submit_meter_open(client, 2, None, too_short).unwrap();
    let (kind, error) = outcome(client, 2);
    assert_eq!(kind, 5);
    assert!(String::from_utf8_lossy(&error).contains("invalid_argument"));
}

#[test]
fn a_meter_whose_opening_was_given_up_leaves_its_journal_free() {
    let folder = tempfile::TempDir::new().unwrap();
    let journal = Some(folder.path().as_os_str().as_bytes().to_vec());
    let with_journal = MeterSettings {
        journal,
        ..settings()
    };
    let client = memory();
    let meter = opened(client, with_journal.clone());
    meter_add(meter, KEY, 1).unwrap();
    submit_meter_open(client, 2, Some(CHOSEN), with_journal.clone()).unwrap();
    let (kind, error) = outcome(client, 2);
    assert_eq!(kind, 5);
    assert!(String::from_utf8_lossy(&error).contains("busy"));
    meter_free(meter);
    submit_meter_open(client, 3, Some(CHOSEN), with_journal.clone()).unwrap();
    cancel(client, 3);
    assert_eq!(code(meter_add(CHOSEN, KEY, 1)), "closed");
    // Wherever it was given up, in the end nothing holds the journal any more.
    let begun = Instant::now();
    let kind = (4..).map(|ticket| {
        submit_meter_open(client, ticket, Some(CHOSEN + 1), with_journal.clone()).unwrap();
        outcome(client, ticket).0
    });
    let kind = kind.inspect(|_| assert!(begun.elapsed() < Duration::from_secs(10)));
    assert!(kind.into_iter().any(|kind| kind == 1));
    submit_meter_flush(client, 2, CHOSEN + 1).unwrap();
    assert_eq!(outcome(client, 2), (2, numbers([1, 1, 0, 0])));
    meter_free(CHOSEN + 1);
}

/// Whoever waited is interrupted and goes on to close the client, as `with` and `use` do.
#[test]
fn a_flush_that_is_given_up_keeps_the_connection_of_a_closed_client_until_its_end() {
    let url = "memory://given-up";
    let other = connect(url.into(), None, None, false, false).unwrap();
    let mut expected = 0;
    for submit in [submit_meter_flush, submit_meter_close].repeat(10) {
        let client = connect(url.into(), None, None, false, false).unwrap();
        let meter = opened(client, settings());
        meter_add(meter, KEY, 30).unwrap();
        submit(client, 2, meter).unwrap();
        cancel(client, 2);
        close(client);
        meter_free(meter);
        // Nobody is told what it has come to; this is its end.
        assert_eq!(code(ticket_wait(client, 2, PATIENCE)), "closed");
        expected += 30;
        assert_eq!(counter_read(other, KEY, MINUTE).unwrap(), Some(expected));
    }
}

#[test]
fn a_meter_whose_client_is_closed_says_what_is_lost() {
    let client = memory();
    let meter = opened(client, settings());
    meter_add(meter, KEY, 30).unwrap();
    close(client);
    assert_eq!(code(submit_meter_close(client, 2, meter)), "closed");
    let CallError::Failed { code, detail, .. } = meter_close(meter).unwrap_err();
    assert_eq!(code, "closed");
    assert!(
        detail.contains("30 units over 1 counters are not on the server"),
        "{detail}"
    );
    meter_free(meter);
}
