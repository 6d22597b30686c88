//! Taking a lock: waiting, lost replies, silence, cancelling.

mod scenario;

use scenario::{Fate, World, code, lock, seed, settings, ttl};
use tallylock_core::error::Error;
use tallylock_core::lock::{Acquire, Extend, Grant, Release};
use tallylock_core::step::Operation;
use tallylock_core::time::{Instant, Wait};

const KEY: &str = "invoice:42";

fn wait(millis: u32) -> Wait {
    Wait::from_millis_f64(f64::from(millis)).unwrap()
}

fn acquire(world: &mut World, wait: Wait, n: u8, stop_at: Option<Instant>) -> Result<Grant, Error> {
    let started = Acquire::start(lock(30_000), wait, &settings(), seed(n), world.memory.now());
    world.run(started, stop_at)
}

#[test]
fn a_free_lock_is_granted_with_its_drift_taken_off() {
    let mut world = World::new([Fate::Answered(10), Fate::Answered(7)]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    assert_eq!(world.text(KEY).unwrap().as_bytes(), grant.token.as_bytes());
    assert_eq!(world.ttl(KEY), Some(30_000 - 7));
    assert_eq!(
        grant.valid_until,
        Instant::from_millis(10 + 30_000 - 302),
        "counted from the second request"
    );
    assert_eq!(
        world.ttl("invoice:42{invoice:42}:tlu1:fence"),
        Some(24 * 3600 * 1000 - 7)
    );
}

#[test]
fn fences_grow_over_releases_and_lost_fence_keys() {
    let mut world = World::new([]);
    let mut last = 0;
    for n in 0..20 {
        let grant = acquire(&mut world, Wait::NONE, n, None).unwrap();
        assert!(grant.fence > last, "{} after {last}", grant.fence);
        last = grant.fence;
        let now = world.memory.now();
        let release = Release::start(
            lock(30_000),
            &grant.token,
            grant.valid_until,
            &settings(),
            seed(n),
            now,
        );
        world.run(release, None).unwrap();
        if n % 5 == 4 {
            world.memory.remove(b"invoice:42{invoice:42}:tlu1:fence");
            world.memory.advance(1);
        }
    }
}

#[test]
fn a_held_lock_is_busy_at_once_or_after_the_wait() {
    let mut world = World::new([]);
    acquire(&mut world, Wait::NONE, 1, None).unwrap();
    let begun = world.memory.now();
    let error = acquire(&mut world, wait(500), 2, None).unwrap_err();
    assert_eq!(error.code().as_str(), "busy");
    assert_eq!(error.key(), Some(KEY));
    assert_eq!(world.memory.now().since(begun), 500);
}

#[test]
fn without_a_wait_a_held_lock_is_asked_for_once() {
    let mut world = World::new([]);
    acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world.sent.clear();
    let begun = world.memory.now();
    assert_eq!(code(acquire(&mut world, Wait::NONE, 2, None)), "busy");
    assert_eq!(world.memory.now(), begun);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_wait_that_ends_while_the_last_answer_is_on_its_way_is_busy_and_undone() {
    let mut world = World::new([Fate::Answered(0), Fate::Answered(0), Fate::Late]);
    world
        .memory
        .put(KEY.as_bytes(), b"another's", Some(ttl(300)));
    assert_eq!(code(acquire(&mut world, wait(60), 1, None)), "busy");
    let last = world.sent.last().unwrap();
    assert_eq!(
        last.commands[0].len(),
        6,
        "the last thing sent is the release"
    );
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_expires() {
    let mut world = World::new([]);
    world
        .memory
        .put(KEY.as_bytes(), b"another library's token", Some(ttl(300)));
    let begun = world.memory.now();
    let grant = acquire(&mut world, wait(5_000), 1, None).unwrap();
    assert!((301..=400).contains(&world.memory.now().since(begun)));
    assert_eq!(world.text(KEY).unwrap().as_bytes(), grant.token.as_bytes());
}

#[test]
fn a_lost_reply_finds_its_own_lock() {
    let mut world = World::new([Fate::Answered(0), Fate::ReplyLost, Fate::ReplyLost]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    assert_eq!(world.text(KEY).unwrap().as_bytes(), grant.token.as_bytes());
    let last = world.sent.len();
    assert!(last >= 4);
}

#[test]
fn a_silent_server_is_a_timeout_and_the_release_follows() {
    let mut world = World::new([Fate::Late]);
    let started = Acquire::start(
        lock(30_000),
        wait(400),
        &settings(),
        seed(1),
        world.memory.now(),
    );
    let deadline = world.memory.now().plus(400);
    let (mut operation, _) = started.clone();
    let undo = operation.handle(deadline, tallylock_core::step::Event::Woke);
    assert_eq!(
        undo.calls.len(),
        1,
        "the release travels behind the acquire"
    );
    assert_eq!(
        operation.refusal().unwrap().code().as_str(),
        "timeout",
        "the caller is told at its deadline"
    );
    assert_eq!(code(world.run(started, None)), "timeout");
}

#[test]
fn cancelling_undoes_a_lock_that_was_taken() {
    let mut world = World::new([Fate::Answered(0), Fate::Answered(50)]);
    let stop_at = world.memory.now().plus(10);
    assert_eq!(
        code(acquire(&mut world, wait(5_000), 1, Some(stop_at))),
        "cancelled"
    );
    assert_eq!(world.text(KEY), None);
}

#[test]
fn cancelling_a_waiter_sends_nothing_more() {
    let mut world = World::new([]);
    acquire(&mut world, Wait::NONE, 1, None).unwrap();
    let holder = world.text(KEY);
    let stop_at = world.memory.now().plus(5);
    assert_eq!(
        code(acquire(&mut world, wait(5_000), 2, Some(stop_at))),
        "cancelled"
    );
    assert_eq!(world.text(KEY), holder);
    assert_eq!(world.memory.now(), stop_at);
}

#[test]
fn a_grant_that_comes_too_late_is_given_back_and_tried_again_with_a_new_token() {
    let mut world = World::new([Fate::Answered(0), Fate::Answered(40_000)]);
    let grant = acquire(&mut world, wait(100_000), 1, None).unwrap();
    assert!(world.memory.now() < grant.valid_until);
    let first = &world.sent[1].commands[0][5];
    assert_ne!(
        first.as_ref(),
        grant.token.as_bytes(),
        "a released token is never used again"
    );
}

#[test]
fn an_account_that_is_refused_after_a_lost_reply_still_undoes() {
    let mut world = World::new([Fate::Answered(0), Fate::ReplyLost]);
    let started = Acquire::start(
        lock(30_000),
        wait(1_000),
        &settings(),
        seed(1),
        world.memory.now(),
    );
    let stop_at = world.memory.now().plus(3);
    assert_eq!(code(world.run(started, Some(stop_at))), "cancelled");
    assert_eq!(
        world.text(KEY),
        None,
        "stopped while pausing after a lost reply"
    );
}

#[test]
fn only_the_owner_extends_and_releases() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world
        .memory
        .put(KEY.as_bytes(), b"someone else", Some(ttl(10_000)));
    let now = world.memory.now();
    let extend = Extend::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    let error = world.run(extend, None).unwrap_err();
    assert_eq!(error.code().reason().unwrap().as_str(), "taken_over");
    let release = Release::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    let error = world.run(release, None).unwrap_err();
    assert_eq!(error.code().reason().unwrap().as_str(), "taken_over");
    assert_eq!(world.text(KEY).as_deref(), Some("someone else"));
    assert_eq!(world.ttl(KEY), Some(10_000));
}

#[test]
fn an_expired_lock_is_never_resurrected() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world.memory.advance(30_001);
    world.sent.clear();
    let now = world.memory.now();
    let extend = Extend::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    let error = world.run(extend, None).unwrap_err();
    assert_eq!(error.code().reason().unwrap().as_str(), "expired");
    assert!(world.sent.is_empty(), "our own clock knows it already");
    // The same even if our clock had not known.
    let extend = Extend::start(
        lock(30_000),
        &grant.token,
        now.plus(1_000),
        &settings(),
        seed(1),
        now,
    );
    assert_eq!(code(world.run(extend, None)), "lost");
    assert_eq!(world.text(KEY), None);
}

#[test]
fn a_release_is_repeated_and_ends_as_released() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world.fates.extend([Fate::Answered(0), Fate::ReplyLost]);
    let now = world.memory.now();
    let release = Release::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    world.run(release, None).unwrap();
    // A second release, of what is gone, tells the truth.
    let now = world.memory.now();
    let release = Release::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    assert_eq!(code(world.run(release, None)), "lost");
}

#[test]
fn a_repeated_release_after_our_deadline_does_not_claim_success() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world.memory.advance(30_001);
    world.fates.extend([Fate::Answered(0), Fate::ReplyLost]);
    let now = world.memory.now();
    let release = Release::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    assert_eq!(code(world.run(release, None)), "lost");
}

#[test]
fn an_extend_that_nobody_answers_ends_at_the_lease_deadline_as_lost() {
    let mut world = World::new([]);
    let grant = acquire(&mut world, Wait::NONE, 1, None).unwrap();
    world.memory.advance(29_000);
    world.fates.extend([Fate::Silence]);
    let now = world.memory.now();
    let extend = Extend::start(
        lock(30_000),
        &grant.token,
        grant.valid_until,
        &settings(),
        seed(1),
        now,
    );
    let error = world.run(extend, None).unwrap_err();
    assert_eq!(error.code().reason().unwrap().as_str(), "unreachable");
    assert_eq!(world.memory.now(), grant.valid_until);
}

#[test]
fn a_request_that_was_lost_before_the_wait_ended_in_vain_is_undone() {
    let mut world = World::new([Fate::Answered(0), Fate::ReplyLost]);
    world
        .memory
        .put(KEY.as_bytes(), b"another's", Some(ttl(10_000)));
    assert_eq!(code(acquire(&mut world, wait(100), 1, None)), "busy");
    let last = &world.sent.last().unwrap().commands[0];
    assert_eq!(
        last.len(),
        6,
        "a copy of the lost request may come yet: the release goes after it"
    );
}

#[test]
fn a_fence_that_is_ahead_of_the_clock_is_counted_up_and_one_behind_is_left_behind() {
    let fence = "invoice:42{invoice:42}:tlu1:fence";
    for (last, granted) in [
        ("8000000000000000", 8_000_000_000_000_001),
        ("999", 1_700_000_000_000_000),
        ("-5", 1_700_000_000_000_000),
    ] {
        let mut world = World::new([]);
        world.memory.put(fence.as_bytes(), last.as_bytes(), None);
        assert_eq!(
            acquire(&mut world, Wait::NONE, 1, None).unwrap().fence,
            granted
        );
        assert_eq!(world.ttl(fence), Some(24 * 3600 * 1000));
    }
    for (bad, wanted) in [
        ("hello", "not_an_integer"),
        ("9223372036854775807", "overflow"),
    ] {
        let mut world = World::new([]);
        world.memory.put(fence.as_bytes(), bad.as_bytes(), None);
        assert_eq!(code(acquire(&mut world, Wait::NONE, 1, None)), wanted);
        assert_eq!(world.text(KEY), None);
    }
}
