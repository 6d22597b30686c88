//! Guarded writes: what a holder who was overtaken can still do, and for how long he is known.

mod scenario;

use scenario::{Fate, World, code, key, seed, settings, ttl};
use tallylock_core::error::Error;
use tallylock_core::request::{Request, Single};
use tallylock_core::value::{GuardedDelete, GuardedSet};

const DAY: u64 = 24 * 3600 * 1000;

fn run<R: Request>(world: &mut World, request: R) -> Result<R::Output, Error> {
    let started = Single::start(request, &settings(), seed(1), world.memory.now());
    world.run(started, None)
}

fn set(world: &mut World, value: &str, fence: u64) -> Result<(), Error> {
    let request = GuardedSet {
        key: key("v"),
        value: value.into(),
        fence,
        ttl: ttl(60_000),
    };
    run(world, request)
}

fn delete(world: &mut World, fence: u64) -> Result<bool, Error> {
    run(
        world,
        GuardedDelete {
            key: key("v"),
            fence,
        },
    )
}

#[test]
fn an_overtaken_holder_neither_writes_nor_deletes() {
    let mut world = World::new([]);
    set(&mut world, "of the first", 9).unwrap();
    set(&mut world, "of the second", 10).unwrap();
    let ttl = world.ttl("v");
    let error = set(&mut world, "late", 9).unwrap_err();
    assert_eq!(
        (error.code().as_str(), error.key()),
        ("fenced_off", Some("v"))
    );
    assert!(error.detail().contains("10"), "{error}");
    assert_eq!(code(delete(&mut world, 9)), "fenced_off");
    assert_eq!(world.text("v").as_deref(), Some("of the second"));
    assert_eq!(world.ttl("v"), ttl);
    // The holder himself goes on.
    set(&mut world, "again", 10).unwrap();
    assert!(delete(&mut world, 10).unwrap());
    assert!(!delete(&mut world, 10).unwrap());
}

#[test]
fn the_guard_outlives_what_it_guards() {
    let mut world = World::new([]);
    set(&mut world, "first", 7).unwrap();
    assert!(delete(&mut world, 8).unwrap());
    assert_eq!(world.text("v"), None);
    assert_eq!(code(set(&mut world, "late", 7)), "fenced_off");
    assert_eq!(world.text("v"), None, "a refused write makes no key");
    // The text ends by its TTL, the guard does not.
    set(&mut world, "short", 8).unwrap();
    world.memory.advance(DAY);
    assert_eq!(world.text("v"), None);
    assert_eq!(code(set(&mut world, "late", 7)), "fenced_off");
}

#[test]
fn the_guard_ends_a_week_after_its_last_use() {
    let mut world = World::new([]);
    set(&mut world, "first", 8).unwrap();
    world.memory.advance(6 * DAY);
    assert!(!delete(&mut world, 8).unwrap(), "its use keeps the guard");
    world.memory.advance(6 * DAY);
    assert_eq!(code(set(&mut world, "late", 7)), "fenced_off");
    // A refusal is no use.
    world.memory.advance(DAY + 1);
    set(&mut world, "late", 7).unwrap();
}

/// Between the lost reply and a repeat the same holder may write again, with the same fence: nothing would refuse the repeat.
#[test]
fn what_may_overwrite_a_later_write_of_the_same_holder_is_not_repeated() {
    let mut world = World::new([]);
    set(&mut world, "warm", 7).unwrap();
    delete(&mut world, 7).unwrap();
    world.sent.clear();
    world.fates.extend([Fate::ReplyLost]);
    let error = set(&mut world, "first", 7).unwrap_err();
    assert_eq!(
        (error.code().as_str(), error.applied().as_str()),
        ("outcome_unknown", "maybe")
    );
    set(&mut world, "second", 7).unwrap();
    assert_eq!(world.text("v").as_deref(), Some("second"));
    world.fates.extend([Fate::ReplyLost]);
    assert_eq!(code(delete(&mut world, 7)), "outcome_unknown");
    assert_eq!(world.commands(), ["EVALSHA", "EVALSHA", "EVALSHA"]);
}

#[test]
fn another_type_is_neither_overwritten_nor_deleted() {
    let mut world = World::new([]);
    world.memory.put_other_type(b"v", None);
    assert_eq!(code(set(&mut world, "text", 7)), "wrong_type");
    assert_eq!(code(delete(&mut world, 7)), "wrong_type");
    assert_eq!(world.memory.keys().count(), 1, "no guard was written");
}
