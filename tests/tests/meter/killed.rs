//! A process that adds through a journal, killed at any moment, again and again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tallylock::{MeterOptions, blocking};
use tallylock_testkit::{Server, on_each_server};
use tempfile::TempDir;

use crate::{TTL, by_hand, total};

const URL: &str = "TALLYLOCK_TEST_METER_URL";
const JOURNAL: &str = "TALLYLOCK_TEST_METER_JOURNAL";

/// After how many adds that it told of a process is killed; it may do more until it is dead.
const KILLED_AFTER: [usize; 16] = [
    1, 0, 2, 10, 30, 100, 5, 300, 0, 1_000, 3_000, 40, 700, 2_000, 1, 500,
];

type Sums = BTreeMap<String, i64>;

on_each_server! {
    /// Each process takes up what the one before left. After every second one, the sums are looked at: they hold each add that
    /// returned, and of the one in progress when the process died, all or nothing.
    fn what_add_returned_for_is_counted_once_however_often_the_process_is_killed(server: Server) {
        let folder = TempDir::new().unwrap();
        let mut returned = Sums::new();
        for pair in KILLED_AFTER.chunks(2) {
            let mut possible = vec![Sums::new()];
            for adds in pair {
                let told = killed(&server, folder.path(), *adds);
                for n in 0..told {
                    add(&mut returned, n);
                }
                let with_one_more = possible.clone().into_iter().map(|mut sums| {
                    add(&mut sums, told);
                    sums
                });
                possible.extend(with_one_more.collect::<Vec<_>>());
            }
            let client = blocking::Client::connect(&server.url()).unwrap();
            client.meter(by_hand().journal(folder.path())).unwrap().close().unwrap();
            let counted: Sums = (0..7)
                .map(key)
                .filter_map(|key| Some((key.clone(), total(&server, &key)?)))
                .collect();
            let matching = possible.into_iter().map(|more| sum(&returned, &more)).find(|sums| *sums == counted);
            returned = matching.unwrap_or_else(|| panic!("{counted:?} was counted, {returned:?} or one more a process were added"));
        }
    }
}

/// Starts a process that adds, kills it once it told of so many adds, and gives of how many it told in the end.
fn killed(server: &Server, journal: &Path, adds: usize) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "killed::a_process_that_adds_until_it_is_killed",
        ])
        .env(URL, server.url())
        .env(JOURNAL, journal)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .skip_while(|line| line != "begun");
    assert!(lines.next().is_some(), "the process opens its meter");
    let mut told = lines.by_ref().take(adds).count();
    assert_eq!(told, adds);
    child.kill().unwrap();
    told += lines.filter(|line| line == "added").count();
    assert!(!child.wait().unwrap().success());
    told
}

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "started by what_add_returned_for_is_counted_once_however_often_the_process_is_killed"]
fn a_process_that_adds_until_it_is_killed() {
    let client = blocking::Client::connect(&std::env::var(URL).unwrap()).unwrap();
    let options = MeterOptions::new(TTL).unwrap();
    let options = options.interval(Duration::from_millis(1)).unwrap();
    let meter = client
        .meter(options.journal(std::env::var(JOURNAL).unwrap()))
        .unwrap();
    let mut out = std::io::stdout().lock();
    out.write_all(b"\nbegun\n").unwrap();
    out.flush().unwrap();
    for n in 0.. {
        meter.add(key(n), amount(n)).unwrap();
        out.write_all(b"added\n").unwrap();
        out.flush().unwrap();
    }
}

fn key(n: usize) -> String {
    format!("k{}", n % 7)
}

fn amount(n: usize) -> i64 {
    i64::try_from(n % 100).unwrap() + 1
}

fn add(sums: &mut Sums, n: usize) {
    *sums.entry(key(n)).or_default() += amount(n);
}

fn sum(one: &Sums, other: &Sums) -> Sums {
    let mut sum = one.clone();
    for (key, amount) in other {
        *sum.entry(key.clone()).or_default() += amount;
    }
    sum
}
