//! What is repeated after a lost reply, and what never is.

mod scenario;

use scenario::{Fate, World, code, key, seed, settings, ttl};
use tallylock_core::counter::{Add, Drain, Expiry, Finish, Read};
use tallylock_core::request::{Request, Single};
use tallylock_core::value::{CompareAndSet, Get, ReplaceIfPresent, Touch};

const TIMEOUT: u64 = 2_000;

fn run<R: Request>(
    world: &mut World,
    request: R,
) -> Result<R::Output, tallylock_core::error::Error> {
    let started = Single::start(request, &settings(), seed(1), world.memory.now());
    world.run(started, None)
}

fn add(amount: i64) -> Add {
    Add {
        key: key("c"),
        amount,
        ttl: ttl(900_000),
        expiry: Expiry::Sliding,
    }
}

fn world_with(fates: &[Fate]) -> World {
    let mut world = World::new([]);
    world.memory.put(b"c", b"5", Some(ttl(1_000_000)));
    run(&mut world, add(0)).unwrap();
    world.fates.extend(fates);
    world.sent.clear();
    world
}

#[test]
fn a_script_is_sent_by_name_and_by_text_only_when_the_server_does_not_know_it() {
    let mut world = World::new([]);
    assert_eq!(run(&mut world, add(30)).unwrap(), 30);
    assert_eq!(run(&mut world, add(30)).unwrap(), 60);
    assert_eq!(world.commands(), ["EVALSHA", "EVAL", "EVALSHA"]);
    world.memory.forget_scripts();
    assert_eq!(run(&mut world, add(30)).unwrap(), 90);
    assert_eq!(world.commands()[3..], ["EVALSHA", "EVAL"]);
}

#[test]
fn another_error_than_noscript_does_not_send_the_script_again() {
    let mut world = world_with(&[]);
    world.memory.put(b"c", b"9223372036854775807", None);
    assert_eq!(code(run(&mut world, add(1))), "overflow");
    assert_eq!(world.commands(), ["EVALSHA"]);
    assert_eq!(world.text("c").as_deref(), Some("9223372036854775807"));
    assert_eq!(
        world.ttl("c"),
        None,
        "a refused call leaves the TTL as it was"
    );
}

#[test]
fn an_add_whose_reply_is_lost_is_not_repeated() {
    let mut world = world_with(&[Fate::ReplyLost]);
    let error = run(&mut world, add(30)).unwrap_err();
    assert_eq!(
        (error.code().as_str(), error.applied().as_str()),
        ("outcome_unknown", "maybe")
    );
    assert_eq!(
        world.text("c").as_deref(),
        Some("35"),
        "it was applied, once"
    );
    assert_eq!(world.commands(), ["EVALSHA"]);
}

#[test]
fn what_takes_or_overwrites_is_not_repeated() {
    let drain = Drain {
        key: key("c"),
        ttl: ttl(1000),
        fence: None,
    };
    let finish = Finish { key: key("c") };
    let replace = ReplaceIfPresent {
        key: key("c"),
        value: b"new".to_vec(),
        ttl: ttl(1000),
    };
    let compare = CompareAndSet {
        key: key("c"),
        expected: b"5".to_vec(),
        value: b"6".to_vec(),
        ttl: ttl(1000),
    };
    let lost = |world: &mut World| {
        world.fates.extend([Fate::Answered(0), Fate::ReplyLost]);
        world.sent.clear();
    };
    let mut world = world_with(&[]);
    lost(&mut world);
    assert_eq!(code(run(&mut world, drain)), "outcome_unknown");
    assert_eq!(world.commands(), ["EVALSHA", "EVAL"]);
    lost(&mut world);
    assert_eq!(code(run(&mut world, replace)), "outcome_unknown");
    lost(&mut world);
    assert_eq!(code(run(&mut world, compare)), "outcome_unknown");
    world.memory.put(b"c", b"5", None);
    lost(&mut world);
    assert_eq!(code(run(&mut world, finish)), "outcome_unknown");
    assert_eq!(world.commands(), ["EVALSHA", "EVAL"]);
}

#[test]
fn what_changes_nothing_more_is_repeated() {
    let mut world = world_with(&[Fate::ReplyLost, Fate::ReplyLost, Fate::NoConnection]);
    assert_eq!(run(&mut world, Read { key: key("c") }).unwrap(), Some(5));
    world.fates.extend([Fate::ReplyLost]);
    assert_eq!(
        run(&mut world, Get { key: key("c") }).unwrap().as_deref(),
        Some(b"5".as_slice())
    );
    world.fates.extend([Fate::ReplyLost, Fate::ReplyLost]);
    assert!(
        run(
            &mut world,
            Touch {
                key: key("c"),
                ttl: ttl(7_000)
            }
        )
        .unwrap()
    );
    assert_eq!(world.ttl("c"), Some(7_000));
}

#[test]
fn a_request_that_cannot_have_arrived_is_sent_again_even_if_it_counts() {
    let mut world = world_with(&[Fate::NoConnection, Fate::NoConnection]);
    assert_eq!(run(&mut world, add(30)).unwrap(), 35);
    assert_eq!(world.commands().len(), 3);
}

#[test]
fn at_the_deadline_the_error_says_what_is_known() {
    let mut world = world_with(&[Fate::Silence]);
    assert_eq!(code(run(&mut world, add(30))), "outcome_unknown");
    let mut world = world_with(&[Fate::Silence]);
    assert_eq!(code(run(&mut world, Read { key: key("c") })), "timeout");
    let mut world = world_with(&[Fate::NoConnection; 100]);
    let begun = world.memory.now();
    assert_eq!(code(run(&mut world, add(30))), "unavailable");
    assert_eq!(world.memory.now().since(begun), TIMEOUT);
    assert!(
        world.sent.len() < 40,
        "pauses grow: {} requests",
        world.sent.len()
    );
    assert_eq!(world.text("c").as_deref(), Some("5"));
}

#[test]
fn cancelling_says_whether_it_may_have_been_applied() {
    let mut world = world_with(&[Fate::Late]);
    let started = Single::start(add(30), &settings(), seed(1), world.memory.now());
    let stop_at = world.memory.now().plus(10);
    assert_eq!(code(world.run(started, Some(stop_at))), "outcome_unknown");
    let mut world = world_with(&[Fate::NoConnection; 100]);
    let started = Single::start(add(30), &settings(), seed(1), world.memory.now());
    let stop_at = world.memory.now().plus(10);
    assert_eq!(code(world.run(started, Some(stop_at))), "cancelled");
}

#[test]
fn a_refusal_after_a_lost_reply_does_not_say_that_nothing_was_applied() {
    let mut world = world_with(&[]);
    let touch = || Touch {
        key: key("c"),
        ttl: ttl(7_000),
    };
    run(&mut world, touch()).unwrap();
    world.fates.extend([
        Fate::ReplyLost,
        Fate::Refused("READONLY You can't write against a read only replica."),
    ]);
    assert_eq!(code(run(&mut world, touch())), "outcome_unknown");
    world.fates.extend([Fate::Refused(
        "READONLY You can't write against a read only replica.",
    )]);
    assert_eq!(code(run(&mut world, touch())), "read_only");
    world
        .fates
        .extend([Fate::ReplyLost, Fate::Refused("NOPERM no")]);
    assert_eq!(
        code(run(&mut world, Get { key: key("c") })),
        "forbidden",
        "a read changes nothing"
    );
}

#[test]
fn a_refusal_inside_a_script_does_not_say_that_nothing_was_applied() {
    let inside = Fate::Refused(
        "ERR ACL failure in script: User billing has no permissions to run the 'pexpire' command",
    );
    let mut world = world_with(&[inside]);
    assert_eq!(code(run(&mut world, add(1))), "outcome_unknown");
    world.fates.extend([inside]);
    assert_eq!(code(run(&mut world, Read { key: key("c") })), "forbidden");
    world.fates.extend([Fate::Refused(
        "NOPERM User billing has no permissions to access one of the keys used as arguments",
    )]);
    assert_eq!(
        code(run(&mut world, add(1))),
        "forbidden",
        "refused before the script ran"
    );
}
