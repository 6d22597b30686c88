//! What an operator can do to a lock: look at its holder, and take it away.

mod scenario;

use std::time::Duration;

use scenario::{Fate, World, code, lock, seed, settings};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Acquire, Grant, Holder, Inspect, Release, Steal, Stolen};
use tallylock_core::request::{Request, Single};
use tallylock_core::settings::Settings;
use tallylock_core::time::Wait;
use tallylock_core::token::Label;

const TTL: i64 = 30_000;
const FENCE: &str = "invoice:42{invoice:42}:tlu1:fence";

fn run<R: Request>(world: &mut World, request: R) -> Result<R::Output, Error> {
    let started = Single::start(request, &settings(), seed(1), world.memory.now());
    world.run(started, None)
}

fn acquire(world: &mut World, n: u8) -> Grant {
    let settings = Settings {
        label: Some(Label::new("biller-7").unwrap()),
        ..settings()
    };
    let now = world.memory.now();
    let started = Acquire::start(lock(TTL), Wait::NONE, &settings, seed(n), now);
    world.run(started, None).unwrap()
}

fn inspect(world: &mut World) -> Option<Holder> {
    run(world, Inspect { lock: lock(TTL) }).unwrap()
}

fn steal(world: &mut World, token: &[u8]) -> Option<Stolen> {
    run(world, Steal::new(lock(TTL), token, "it hangs").unwrap()).unwrap()
}

#[test]
fn a_holder_is_seen_with_label_time_and_fence() {
    let mut world = World::new([]);
    assert_eq!(inspect(&mut world), None);
    let grant = acquire(&mut world, 1);
    world.memory.advance(10_000);
    let holder = inspect(&mut world).unwrap();
    assert_eq!(holder.token, grant.token.as_bytes());
    assert_eq!(
        (holder.label().as_deref(), holder.is_ours()),
        (Some("biller-7"), true)
    );
    assert_eq!(
        (holder.remaining, holder.fence),
        (Some(Duration::from_secs(20)), Some(grant.fence))
    );
    assert!(
        !format!("{holder:?}").contains("0101"),
        "the token is a right"
    );
    world.memory.advance(20_001);
    assert_eq!(inspect(&mut world), None);
}

#[test]
fn a_holder_of_another_library_is_seen_too() {
    let mut world = World::new([]);
    world.memory.put(b"invoice:42", b"\xfftheirs", None);
    let holder = inspect(&mut world).unwrap();
    assert_eq!(
        (
            holder.label(),
            holder.is_ours(),
            holder.remaining,
            holder.fence
        ),
        (None, false, None, None)
    );
    // A fence that is spoiled hides no holder.
    world.memory.put_other_type(FENCE.as_bytes(), None);
    assert_eq!(inspect(&mut world), Some(holder));
    world.memory.put(FENCE.as_bytes(), b"hello", None);
    assert_eq!(inspect(&mut world).unwrap().fence, None);
    world.memory.put_other_type(b"invoice:42", None);
    let refused = run(&mut world, Inspect { lock: lock(TTL) });
    assert_eq!(code(refused), "wrong_type");
}

#[test]
fn the_fence_of_a_stolen_lock_lies_between_its_holders_and_the_next() {
    for is_fence_lost in [false, true] {
        let mut world = World::new([]);
        // The clock stands still: it alone would raise nothing.
        let stolen_from = acquire(&mut world, 1);
        let before = stolen_from.fence;
        if is_fence_lost {
            world.memory.remove(FENCE.as_bytes());
            world.memory.advance(1);
        }
        let stolen = steal(&mut world, stolen_from.token.as_bytes()).unwrap();
        let next = acquire(&mut world, 2);
        assert!(before < stolen.fence && stolen.fence < next.fence);
    }
}

#[test]
fn what_was_stolen_is_told_without_the_token() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, 1);
    let steal = Steal::new(lock(TTL), grant.token.as_bytes(), "it hangs\nfor hours").unwrap();
    assert!(!format!("{steal:?}").contains("0101"));
    let Stolen { fence, message } = run(&mut world, steal).unwrap().unwrap();
    for part in ["invoice:42", "biller-7", "it hangs", &fence.to_string()] {
        assert!(message.contains(part), "{message}");
    }
    assert!(
        !message.contains("0101") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn only_the_lock_of_the_expected_token_is_stolen() {
    let mut world = World::new([]);
    let first = acquire(&mut world, 1);
    assert!(steal(&mut world, first.token.as_bytes()).is_some());
    assert_eq!(
        steal(&mut world, first.token.as_bytes()),
        None,
        "nobody holds it"
    );
    let second = acquire(&mut world, 2);
    let fence = world.text(FENCE);
    assert_eq!(steal(&mut world, first.token.as_bytes()), None);
    assert_eq!(inspect(&mut world).unwrap().token, second.token.as_bytes());
    assert_eq!(world.text(FENCE), fence);
    world.memory.put(b"invoice:42", b"theirs", None);
    assert!(
        steal(&mut world, b"theirs")
            .unwrap()
            .message
            .contains("another library")
    );
    assert_eq!(inspect(&mut world), None);
}

#[test]
fn a_stolen_holder_learns_it_once_another_has_the_lock() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, 1);
    steal(&mut world, grant.token.as_bytes()).unwrap();
    acquire(&mut world, 2);
    let now = world.memory.now();
    let released = Release::start(
        lock(TTL),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(3),
        now,
    );
    let error = world.run(released, None).unwrap_err();
    assert_eq!(error.code(), Code::Lost(Reason::TakenOver));
}

#[test]
fn a_steal_is_not_repeated_since_it_would_deny_its_own_success() {
    let mut world = World::new([]);
    let warm = acquire(&mut world, 1);
    steal(&mut world, warm.token.as_bytes()).unwrap();
    let grant = acquire(&mut world, 2);
    world.sent.clear();
    world.fates.extend([Fate::ReplyLost]);
    let lost = run(
        &mut world,
        Steal::new(lock(TTL), grant.token.as_bytes(), "it hangs").unwrap(),
    );
    assert_eq!(code(lost), "outcome_unknown");
    assert_eq!(world.commands(), ["EVALSHA"]);
    assert_eq!(inspect(&mut world), None);
}

#[test]
fn a_fence_with_more_time_keeps_it() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, 1);
    let (long, text) = (
        scenario::ttl(90 * 24 * 3_600_000),
        world.text(FENCE).unwrap(),
    );
    world
        .memory
        .put(FENCE.as_bytes(), text.as_bytes(), Some(long));
    steal(&mut world, grant.token.as_bytes()).unwrap();
    assert_eq!(world.ttl(FENCE), Some(long.as_millis()));
}

#[test]
fn a_reason_says_something() {
    for blank in ["", " \n"] {
        let error = Steal::new(lock(TTL), b"token", blank).unwrap_err();
        assert_eq!(
            (error.code(), error.key()),
            (Code::InvalidArgument, Some("invoice:42"))
        );
    }
}
