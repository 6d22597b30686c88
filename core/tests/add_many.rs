//! A batch: one round trip, and each add for itself.

mod scenario;

use scenario::{Fate, World, key, seed, settings, ttl};
use tallylock_core::counter::{Add, AddMany, AddOnce, Added, Entry, Expiry, MOST};
use tallylock_core::error::Error;
use tallylock_core::id::Id;

fn plain(name: &str, amount: i64) -> Entry {
    Entry::Plain(Add {
        key: key(name),
        amount,
        ttl: ttl(900_000),
        expiry: Expiry::Sliding,
    })
}

fn keyed(name: &str, id: &str, amount: i64) -> Entry {
    Entry::Keyed(AddOnce {
        key: key(name),
        id: Id::new(id).unwrap(),
        amount,
        ttl: ttl(900_000),
        expiry: Expiry::Sliding,
        remembered: None,
    })
}

fn run(world: &mut World, entries: Vec<Entry>) -> Vec<Result<Added, Error>> {
    let started = AddMany::start(entries, &settings(), seed(1), world.memory.now()).unwrap();
    world.run(started, None)
}

fn codes(results: &[Result<Added, Error>]) -> Vec<&'static str> {
    let code = |result: &Result<Added, Error>| match result {
        Ok(Added { applied: true, .. }) => "added",
        Ok(_) => "repeated",
        Err(error) => error.code().as_str(),
    };
    results.iter().map(code).collect()
}

#[test]
fn a_batch_loads_each_script_once_and_then_needs_one_call() {
    let mut world = World::new([]);
    let batch = || {
        vec![
            plain("a", 1),
            keyed("b", "1", 2),
            plain("a", 3),
            keyed("b", "2", 4),
        ]
    };
    assert_eq!(codes(&run(&mut world, batch())), ["added"; 4]);
    assert_eq!(world.sent.len(), 2);
    assert_eq!(
        world.commands()[4..],
        ["EVAL", "EVAL", "EVALSHA", "EVALSHA"]
    );
    assert_eq!(
        codes(&run(&mut world, batch())),
        ["added", "repeated", "added", "repeated"]
    );
    assert_eq!(world.sent.len(), 3);
    assert_eq!(
        (world.text("a").as_deref(), world.text("b").as_deref()),
        (Some("8"), Some("6"))
    );
}

#[test]
fn a_bad_entry_neither_stops_nor_hides_the_others() {
    let mut world = World::new([]);
    world.memory.put(b"text", b"hello", Some(ttl(5_000)));
    world.memory.put_other_type(b"list", Some(ttl(5_000)));
    world
        .memory
        .put(b"full", b"9223372036854775807", Some(ttl(5_000)));
    let entries = vec![
        plain("a", 1),
        plain("text", 1),
        plain("list", 1),
        keyed("full", "1", 1),
        plain("a", 1),
    ];
    let results = run(&mut world, entries);
    assert_eq!(
        codes(&results),
        ["added", "not_an_integer", "wrong_type", "overflow", "added"]
    );
    assert_eq!(results[4].as_ref().unwrap().total, 2);
    assert_eq!(results[2].as_ref().unwrap_err().key(), Some("list"));
    assert_eq!(world.ttl("text"), Some(5_000));
}

#[test]
fn a_lost_reply_repeats_what_is_keyed_and_tells_the_truth_of_the_rest() {
    let mut world = World::new([]);
    run(&mut world, vec![plain("a", 0), keyed("b", "0", 0)]);
    world
        .fates
        .extend([Fate::ReplyLost, Fate::NoConnection, Fate::ReplyLost]);
    let results = run(&mut world, vec![plain("a", 5), keyed("b", "1", 7)]);
    assert_eq!(codes(&results), ["outcome_unknown", "repeated"]);
    assert_eq!(
        (world.text("a").as_deref(), world.text("b").as_deref()),
        (Some("5"), Some("7"))
    );
}

#[test]
fn at_the_deadline_each_result_says_what_is_known() {
    let mut world = World::new([]);
    run(&mut world, vec![plain("a", 0), keyed("b", "0", 0)]);
    world.fates.extend([Fate::Silence]);
    let results = run(&mut world, vec![plain("a", 5), keyed("b", "1", 7)]);
    assert_eq!(codes(&results), ["outcome_unknown", "outcome_unknown"]);
    world.fates.extend([Fate::NoConnection; 100]);
    let results = run(&mut world, vec![plain("a", 5), keyed("b", "1", 7)]);
    assert_eq!(codes(&results), ["unavailable", "unavailable"]);
}

#[test]
fn cancelling_ends_every_entry() {
    let mut world = World::new([Fate::NoConnection; 100]);
    let started = AddMany::start(
        vec![plain("a", 5); 3],
        &settings(),
        seed(1),
        world.memory.now(),
    )
    .unwrap();
    let stop_at = world.memory.now().plus(30);
    assert_eq!(codes(&world.run(started, Some(stop_at))), ["cancelled"; 3]);
}

#[test]
fn an_empty_batch_sends_nothing_and_a_huge_one_is_refused() {
    let mut world = World::new([]);
    assert!(run(&mut world, Vec::new()).is_empty());
    assert!(world.sent.is_empty());
    let huge = vec![plain("a", 1); MOST + 1];
    let error = AddMany::start(huge, &settings(), seed(1), world.memory.now()).unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_argument");
}
