//! Claims and keyed adds: no unit lost or counted twice, whatever is lost, late, repeated or killed.

mod scenario;

use std::collections::BTreeMap;

use scenario::{Fate, World, code, key, seed, settings, ttl};
use tallylock_core::claim::{Abort, Claimed, Commit, Open, State};
use tallylock_core::counter::{Add, AddOnce, Added, Expiry, Read};
use tallylock_core::error::Error;
use tallylock_core::id::Id;
use tallylock_core::request::{Request, Single};

const CLAIM: &str = "c{c}:tlu1:claim:run-1";

fn run<R: Request>(world: &mut World, request: R) -> Result<R::Output, Error> {
    let started = Single::start(request, &settings(), seed(1), world.memory.now());
    world.run(started, None)
}

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn add(world: &mut World, amount: i64) {
    let add = Add {
        key: key("c"),
        amount,
        ttl: ttl(900_000),
        expiry: Expiry::Sliding,
    };
    run(world, add).unwrap();
}

fn add_once(world: &mut World, name: &str, amount: i64) -> Result<Added, Error> {
    let ttl = ttl(900_000);
    let expiry = Expiry::Sliding;
    run(
        world,
        AddOnce {
            key: key("c"),
            id: id(name),
            amount,
            ttl,
            expiry,
            remembered: None,
        },
    )
}

fn open(world: &mut World, name: &str) -> Result<Option<Claimed>, Error> {
    run(
        world,
        Open {
            key: key("c"),
            id: id(name),
            ttl: ttl(900_000),
            fence: None,
        },
    )
}

fn commit(world: &mut World, name: &str, amount: i64) -> Result<(), Error> {
    run(
        world,
        Commit {
            key: key("c"),
            id: id(name),
            amount,
        },
    )
}

fn abort(world: &mut World, name: &str) -> Result<i64, Error> {
    run(
        world,
        Abort {
            key: key("c"),
            id: id(name),
            ttl: ttl(900_000),
            fence: None,
        },
    )
}

fn read(world: &mut World) -> Option<i64> {
    run(world, Read { key: key("c") }).unwrap()
}

#[test]
fn a_keyed_add_counts_once() {
    let mut world = World::new([]);
    assert_eq!(
        add_once(&mut world, "evt-1", 30).unwrap(),
        Added {
            total: 30,
            applied: true
        }
    );
    assert_eq!(
        add_once(&mut world, "evt-1", 30).unwrap(),
        Added {
            total: 30,
            applied: false
        }
    );
    assert_eq!(
        add_once(&mut world, "evt-2", -5).unwrap(),
        Added {
            total: 25,
            applied: true
        }
    );
    assert_eq!(code(add_once(&mut world, "evt-1", 31)), "conflict");
    assert_eq!(read(&mut world), Some(25));
    assert_eq!(world.ttl("c{c}:tlu1:once:evt-1"), Some(86_400_000));
}

#[test]
fn a_keyed_add_whose_reply_is_lost_is_repeated_and_counts_once() {
    let mut world = World::new([Fate::Answered(0), Fate::ReplyLost, Fate::ReplyLost]);
    assert_eq!(
        add_once(&mut world, "evt-1", 30).unwrap(),
        Added {
            total: 30,
            applied: false
        }
    );
    assert_eq!(read(&mut world), Some(30));
}

#[test]
fn a_repeated_add_to_a_counter_that_is_gone_does_not_bring_it_back() {
    let mut world = World::new([]);
    add_once(&mut world, "evt-1", 30).unwrap();
    world.memory.remove(b"c");
    assert_eq!(
        add_once(&mut world, "evt-1", 30).unwrap(),
        Added {
            total: 0,
            applied: false
        }
    );
    assert_eq!(read(&mut world), None);
}

#[test]
fn a_claim_gets_the_same_answer_in_each_state() {
    let mut world = World::new([]);
    add(&mut world, 40);
    let taken = |state| {
        Some(Claimed {
            amount: 40,
            state,
            healed: false,
        })
    };
    assert_eq!(open(&mut world, "run-1").unwrap(), taken(State::Open));
    assert_eq!(world.ttl(CLAIM), Some(7 * 24 * 3600 * 1000));
    add(&mut world, 2);
    assert_eq!(open(&mut world, "run-1").unwrap(), taken(State::Open));
    commit(&mut world, "run-1", 40).unwrap();
    commit(&mut world, "run-1", 40).unwrap();
    assert_eq!(world.ttl(CLAIM), Some(24 * 3600 * 1000));
    assert_eq!(open(&mut world, "run-1").unwrap(), taken(State::Committed));
    assert_eq!(code(abort(&mut world, "run-1")), "conflict");
    assert_eq!(
        read(&mut world),
        Some(2),
        "a late copy of a claim takes nothing"
    );
}

#[test]
fn a_claim_of_nothing_writes_nothing() {
    let mut world = World::new([]);
    assert_eq!(open(&mut world, "run-1").unwrap(), None);
    add(&mut world, 0);
    assert_eq!(open(&mut world, "run-1").unwrap(), None);
    assert_eq!(world.text(CLAIM), None);
    assert_eq!(code(commit(&mut world, "run-1", 0)), "conflict");
}

#[test]
fn a_commit_of_another_amount_is_a_conflict_and_changes_nothing() {
    let mut world = World::new([]);
    add(&mut world, 40);
    open(&mut world, "run-1").unwrap();
    assert_eq!(code(commit(&mut world, "run-1", 41)), "conflict");
    assert_eq!(world.text(CLAIM).as_deref(), Some("open 40"));
}

#[test]
fn an_abort_gives_back_what_was_taken_once() {
    let mut world = World::new([]);
    add(&mut world, 40);
    open(&mut world, "run-1").unwrap();
    add(&mut world, 2);
    world.memory.advance(1_000);
    assert_eq!(abort(&mut world, "run-1").unwrap(), 40);
    assert_eq!(
        world.ttl("c"),
        Some(899_000),
        "a counter that is there keeps its TTL"
    );
    assert_eq!(abort(&mut world, "run-1").unwrap(), 40);
    assert_eq!(read(&mut world), Some(42));
    assert_eq!(code(commit(&mut world, "run-1", 40)), "conflict");
}

#[test]
fn an_abort_makes_a_counter_that_is_gone_again_with_a_ttl() {
    let mut world = World::new([]);
    add(&mut world, 40);
    open(&mut world, "run-1").unwrap();
    world.memory.advance(900_001);
    assert_eq!(read(&mut world), None);
    assert_eq!(abort(&mut world, "run-1").unwrap(), 40);
    assert_eq!(
        (read(&mut world), world.ttl("c")),
        (Some(40), Some(900_000))
    );
}

#[test]
fn an_abort_that_would_overflow_leaves_the_claim_open() {
    let mut world = World::new([]);
    add(&mut world, 40);
    open(&mut world, "run-1").unwrap();
    add(&mut world, i64::MAX);
    assert_eq!(code(abort(&mut world, "run-1")), "overflow");
    assert_eq!(world.text(CLAIM).as_deref(), Some("open 40"));
    assert_eq!(read(&mut world), Some(i64::MAX));
}

#[test]
fn a_claim_heals_a_counter_without_a_ttl() {
    let mut world = World::new([]);
    world.memory.put(b"c", b"7", None);
    assert!(open(&mut world, "run-1").unwrap().unwrap().healed);
    assert_eq!(world.ttl("c"), Some(900_000));
}

/// A billing job and its database: what survives when the job dies.
#[derive(Default)]
struct Books {
    pending: Option<String>,
    invoices: BTreeMap<String, i64>,
    runs: u32,
}

/// The steps of the claim pattern; `die_before` is the step before which the job is killed.
fn bill(world: &mut World, books: &mut Books, die_before: usize) -> Result<(), Error> {
    let mut steps = 0..;
    let mut dies = || steps.next() == Some(die_before);
    if books.pending.is_none() {
        if dies() {
            return Ok(());
        }
        books.runs += 1;
        books.pending = Some(format!("run-{}", books.runs));
    }
    let name = books.pending.clone().expect("it was just written");
    if dies() {
        return Ok(());
    }
    if let Some(claimed) = open(world, &name)? {
        if dies() {
            return Ok(());
        }
        books.invoices.insert(name.clone(), claimed.amount);
        if dies() {
            return Ok(());
        }
        commit(world, &name, claimed.amount)?;
    }
    if dies() {
        return Ok(());
    }
    books.pending = None;
    Ok(())
}

#[test]
fn a_biller_killed_before_every_step_with_every_reply_lost_balances() {
    for die_before in 0..6 {
        for lost in 0..6 {
            let mut world = World::new([]);
            let mut books = Books::default();
            let mut used = 0;
            for seconds in [30, 12, 7] {
                add(&mut world, seconds);
                used += seconds;
                world.fates.extend(vec![Fate::Answered(0); lost]);
                world.fates.push_back(Fate::ReplyLost);
                bill(&mut world, &mut books, die_before).unwrap();
                world.fates.clear();
            }
            // The next job, which nobody kills, ends what was begun and takes what is left.
            bill(&mut world, &mut books, usize::MAX).unwrap();
            bill(&mut world, &mut books, usize::MAX).unwrap();
            let billed: i64 = books.invoices.values().sum();
            assert_eq!(
                billed, used,
                "killed before step {die_before}, reply {lost} lost"
            );
            assert_eq!(read(&mut world), Some(0));
        }
    }
}

#[test]
fn a_late_copy_of_every_claim_takes_nothing() {
    let mut world = World::new([]);
    let mut books = Books::default();
    for _ in 0..5 {
        add(&mut world, 10);
        bill(&mut world, &mut books, usize::MAX).unwrap();
        let copies: Vec<_> = world.sent.clone();
        add(&mut world, 1);
        let held = read(&mut world);
        for copy in copies {
            let command = &copy.commands[0];
            let claims = command
                .iter()
                .any(|word| word.windows(7).any(|part| part == b":claim:"));
            if claims {
                world.memory.execute(&copy).unwrap();
            }
        }
        assert_eq!(read(&mut world), held);
    }
}
