//! A lease that is renewed: when, how often it is tried, and when it is over.

mod scenario;

use scenario::Fate::{self, Answered, NoConnection, Refused, ReplyLost, Silence};
use scenario::{World, lock, seed, settings, ttl};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Acquire, Extend, Extending, Keeping, Lease, LeaseTtl, Renewal};
use tallylock_core::step::{Call, Event, Next, Operation, Outcome, Reply, Step, Undelivered};
use tallylock_core::time::{Instant, Wait};

const EXPIRED: Code = Code::Lost(Reason::Expired);
const TAKEN: Code = Code::Lost(Reason::TakenOver);
const UNREACHABLE: Code = Code::Lost(Reason::Unreachable);

/// When a lease of 60 s that was acquired at 0 is over.
const DEADLINE: u64 = 60_000 - 602;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A lease of 60 s that was acquired at 0, with the world that it is in; the script of an extend is known there.
fn held(keeping: Keeping, fates: impl IntoIterator<Item = Fate>) -> (World, Renewal) {
    let mut world = World::new([]);
    let started = Acquire::start(lock(60_000), Wait::NONE, &settings(), seed(7), at(0));
    let grant = world.run(started, None).unwrap();
    let mut renewal = Renewal::new(lock(60_000), grant, keeping, &settings(), seed(1), at(0));
    let lease = renewal.lease();
    let (started, extending) = extend(lease, 60_000, 0);
    let extended = world.run(started, None);
    lease.extended(extending, extended).unwrap();
    world.sent.clear();
    world.fates.extend(fates);
    (world, renewal)
}

fn extend(
    lease: &mut Lease,
    millis: i64,
    now: u64,
) -> ((Extend, Step<Result<Instant, Error>>), Extending) {
    let ttl = LeaseTtl::new(ttl(millis)).unwrap();
    lease.extend(ttl, &settings(), seed(1), at(now)).unwrap()
}

/// Lets the lease be renewed until `stop_at`, or until it is lost.
fn run(world: &mut World, mut renewal: Renewal, stop_at: Option<u64>) -> Result<(), Code> {
    let step = renewal.handle(world.memory.now(), Event::Woke);
    let ended = world.run((renewal, step), stop_at.map(at));
    ended.map_err(|error| error.code())
}

fn woken(renewal: &mut Renewal, now: u64) -> Step<Result<(), Error>> {
    renewal.handle(at(now), Event::Woke)
}

/// The one call that a step sends.
fn call(step: Step<Result<(), Error>>) -> Call {
    let [call] = step.calls.try_into().expect("one call");
    call
}

fn replied(call: &Call, outcome: Outcome) -> Event {
    Event::Replied {
        call: call.id,
        outcome,
    }
}

fn word(word: &str) -> Vec<Reply> {
    vec![Reply::Text(word.into())]
}

fn waits_until(step: &Step<Result<(), Error>>, until: u64) {
    assert!(step.calls.is_empty(), "{step:?}");
    assert_eq!(step.next, Next::WaitUntil(at(until)));
}

fn is_over(step: &Step<Result<(), Error>>) -> Result<(), Code> {
    assert!(step.calls.is_empty(), "{step:?}");
    match &step.next {
        Next::Done(ended) => ended.as_ref().map(|&()| ()).map_err(Error::code),
        Next::WaitUntil(until) => panic!("it waits until {until:?}"),
    }
}

fn every(millis: i64) -> Keeping {
    let ttl_of_lock = LeaseTtl::new(ttl(60_000)).unwrap();
    Keeping::default().every(ttl(millis), ttl_of_lock).unwrap()
}

#[test]
fn it_is_renewed_each_third_of_its_ttl() {
    let (mut world, renewal) = held(Keeping::default(), []);
    assert_eq!(run(&mut world, renewal, Some(95_000)), Ok(()));
    assert_eq!(world.sent.len(), 4, "at 20, 40, 60 and 80 s");
    assert_eq!(world.ttl("invoice:42"), Some(45_000));
}

#[test]
fn the_interval_can_be_set_up_to_half_of_the_ttl() {
    let (mut world, renewal) = held(every(30_000), []);
    assert_eq!(run(&mut world, renewal, Some(95_000)), Ok(()));
    assert_eq!(
        world.ttl("invoice:42"),
        Some(55_000),
        "the last was at 90 s"
    );
    let ttl_of_lock = LeaseTtl::new(ttl(60_000)).unwrap();
    let refused = Keeping::default().every(ttl(30_001), ttl_of_lock);
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn without_renewal_its_end_is_told_all_the_same() {
    let (mut world, renewal) = held(Keeping::default().never(), []);
    assert_eq!(run(&mut world, renewal, None), Err(EXPIRED));
    assert_eq!(world.memory.now(), at(DEADLINE));
    assert!(world.sent.is_empty());
}

#[test]
fn errors_end_nothing_while_there_is_time() {
    let errors = [
        NoConnection,
        ReplyLost,
        Refused("READONLY You can't write against a read only replica."),
        Refused("LOADING Redis is loading the dataset in memory"),
        Silence,
        Silence,
        Refused("NOPERM this user has no permissions"),
        Refused("ERR what is this"),
    ];
    let (mut world, renewal) = held(Keeping::default(), errors);
    assert_eq!(run(&mut world, renewal, Some(50_000)), Ok(()));
    assert!(world.fates.is_empty(), "each of them happened");
    assert!(world.ttl("invoice:42").unwrap() > 25_000);
}

#[test]
fn what_lasts_to_the_deadline_ends_it_exactly_then() {
    for trouble in [Silence, NoConnection, Refused("READONLY no")] {
        let (mut world, renewal) = held(Keeping::default(), std::iter::repeat_n(trouble, 1_000));
        assert_eq!(
            run(&mut world, renewal, None),
            Err(UNREACHABLE),
            "{trouble:?}"
        );
        assert_eq!(world.memory.now(), at(DEADLINE), "{trouble:?}");
    }
}

#[test]
fn a_silent_connection_leaves_time_for_other_tries_also_in_a_short_lease() {
    let mut world = World::new([]);
    let started = Acquire::start(lock(1_000), Wait::NONE, &settings(), seed(7), at(0));
    let grant = world.run(started, None).unwrap();
    world.fates.extend([Silence, Silence]);
    let renewal = Renewal::new(
        lock(1_000),
        grant,
        Keeping::default(),
        &settings(),
        seed(1),
        at(0),
    );
    assert_eq!(
        run(&mut world, renewal, Some(1_500)),
        Ok(()),
        "a call may take 2 s"
    );
}

#[test]
fn a_no_of_the_server_ends_it_at_once() {
    let (mut world, renewal) = held(Keeping::default(), []);
    world
        .memory
        .put(b"invoice:42", b"another", Some(ttl(90_000)));
    assert_eq!(run(&mut world, renewal, None), Err(TAKEN));
    assert_eq!(world.memory.now(), at(20_000));
    let (mut world, renewal) = held(Keeping::default(), []);
    world.memory.remove(b"invoice:42");
    assert_eq!(run(&mut world, renewal, None), Err(EXPIRED));
    assert_eq!(world.memory.now(), at(20_000));
    let (mut world, renewal) = held(Keeping::default(), []);
    world
        .memory
        .put_other_type(b"invoice:42", Some(ttl(90_000)));
    assert_eq!(
        run(&mut world, renewal, None),
        Err(TAKEN),
        "no lock is in its place"
    );
}

#[test]
fn who_oversleeps_is_told_so_before_anything_is_sent() {
    let (_, mut renewal) = held(Keeping::default(), []);
    assert_eq!(is_over(&woken(&mut renewal, DEADLINE)), Err(EXPIRED));
    assert!(renewal.is_over());
}

#[test]
fn a_reply_that_is_read_after_the_deadline_does_not_bring_it_back() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let extend = call(woken(&mut renewal, 20_000));
    let late = renewal.handle(at(DEADLINE), replied(&extend, Ok(word("extended"))));
    assert_eq!(is_over(&late), Err(EXPIRED));
    assert_eq!(renewal.lease().remaining(at(DEADLINE)), 0);
}

#[test]
fn waking_for_no_reason_changes_nothing() {
    let (_, mut renewal) = held(Keeping::default(), []);
    for now in [0, 1, 19_999] {
        waits_until(&woken(&mut renewal, now), 20_000);
    }
    let extend = call(woken(&mut renewal, 20_000));
    for now in [20_000, 20_001, 21_999] {
        waits_until(&woken(&mut renewal, now), 22_000);
    }
    let before = renewal.clone();
    let _ = woken(&mut renewal, 21_999);
    assert_eq!(renewal, before);
    let extended = renewal.handle(at(21_999), replied(&extend, Ok(word("extended"))));
    waits_until(&extended, 40_000);
}

#[test]
fn a_late_reply_is_not_taken_for_one_to_a_later_try() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let first = call(woken(&mut renewal, 20_000));
    let paused = woken(&mut renewal, 22_000);
    let Next::WaitUntil(until) = paused.next else {
        panic!("it tries again")
    };
    let second = call(renewal.handle(until, Event::Woke));
    assert_ne!(first.id, second.id);
    let unmoved = renewal.handle(until, replied(&first, Ok(word("extended"))));
    assert!(unmoved.calls.is_empty());
    assert!(renewal.is_renewing());
    let remaining = renewal.lease().remaining(until);
    assert_eq!(remaining, DEADLINE - until.as_millis());
}

#[test]
fn after_max_hold_it_is_not_renewed_any_more() {
    let (mut world, renewal) = held(Keeping::default().at_most(ttl(50_000)), []);
    assert_eq!(run(&mut world, renewal, None), Err(EXPIRED));
    assert_eq!(world.sent.len(), 2, "at 20 and 40 s");
    assert_eq!(world.memory.now(), at(40_000 + DEADLINE));
}

#[test]
fn what_the_holder_extended_it_to_is_what_it_is_renewed_to() {
    for (millis, interval) in [(600_000, 200_000), (6_000, 2_000)] {
        let (mut world, mut renewal) = held(Keeping::default(), []);
        let (started, extending) = extend(renewal.lease(), millis, 0);
        let extended = world.run(started, None);
        renewal.lease().extended(extending, extended).unwrap();
        world.sent.clear();
        assert_eq!(run(&mut world, renewal, Some(interval * 2 + 1)), Ok(()));
        assert_eq!(world.sent.len(), 2);
        assert_eq!(world.ttl("invoice:42"), Some(interval * 3 - 1));
    }
}

#[test]
fn a_shorter_extend_whose_outcome_is_unknown_does_not_make_it_race() {
    let (mut world, mut renewal) = held(Keeping::default(), []);
    let (_, extending) = extend(renewal.lease(), 6_000, 0);
    let unknown = Error::new(Code::OutcomeUnknown, "as the test has it");
    assert!(renewal.lease().extended(extending, Err(unknown)).is_err());
    assert_eq!(run(&mut world, renewal, Some(60_000)), Ok(()));
    assert!(world.sent.len() < 30, "{}", world.sent.len());
}

#[test]
fn letting_go_of_it_ends_it_at_once_where_nothing_is_under_way() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let _ = woken(&mut renewal, 0);
    assert_eq!(is_over(&renewal.handle(at(10_000), Event::Stop)), Ok(()));
    assert!(renewal.is_over());
    assert_eq!(
        is_over(&woken(&mut renewal, 20_000)),
        Ok(()),
        "nothing is sent later"
    );
    assert_eq!(
        is_over(&woken(&mut renewal, DEADLINE)),
        Ok(()),
        "and nothing is lost"
    );
}

#[test]
fn letting_go_of_it_between_two_tries_ends_it_at_once() {
    let (_, mut renewal) = held(Keeping::default(), []);
    call(woken(&mut renewal, 20_000));
    let _ = woken(&mut renewal, 22_000);
    assert!(renewal.leave(at(22_001)));
    assert!(renewal.is_over());
}

#[test]
fn what_is_under_way_is_waited_for_and_no_more_is_sent() {
    let answers = [
        Ok(word("extended")),
        Ok(word("absent")),
        Ok(word("taken")),
        Ok(vec![Reply::Error("NOSCRIPT No matching script.".into())]),
        Ok(vec![Reply::Error("READONLY no".into())]),
        Err(Undelivered::MaybeSent("gone".into())),
        Err(Undelivered::NotSent("gone".into())),
    ];
    for answer in answers {
        let (_, mut renewal) = held(Keeping::default(), []);
        let extend = call(woken(&mut renewal, 20_000));
        waits_until(&renewal.handle(at(20_010), Event::Stop), 22_000);
        assert!(!renewal.is_over(), "a reply is to come");
        assert_eq!(
            renewal.lease().remaining(at(20_010)),
            0,
            "it is on its way out"
        );
        let step = renewal.handle(at(20_020), replied(&extend, answer.clone()));
        assert_eq!(is_over(&step), Ok(()), "{answer:?}");
        assert_eq!(renewal.lease().lost(at(DEADLINE)), None, "{answer:?}");
    }
}

#[test]
fn what_is_never_answered_is_waited_for_no_longer_than_a_call_may_take() {
    let (_, mut renewal) = held(Keeping::default(), []);
    call(woken(&mut renewal, 20_000));
    waits_until(&renewal.handle(at(20_010), Event::Stop), 22_000);
    assert_eq!(is_over(&woken(&mut renewal, 22_000)), Ok(()));
    assert!(renewal.is_over());
}

#[test]
fn a_release_after_a_renewal_leaves_no_key_and_no_loss() {
    let (mut world, mut renewal) = held(Keeping::default(), []);
    let extend = call(woken(&mut renewal, 20_000));
    assert!(renewal.leave(at(20_000)));
    let outcome = world.memory.execute(&extend);
    assert_eq!(
        is_over(&renewal.handle(at(20_001), replied(&extend, outcome))),
        Ok(())
    );
    let release = renewal.release(&settings(), seed(2), at(20_001));
    let released = world.run(release, None);
    renewal.lease().released(released).unwrap();
    assert_eq!(world.text("invoice:42"), None);
    assert!(!renewal.leave(at(20_002)), "nothing more is to be sent");
}

#[test]
fn the_first_reason_stays() {
    let (mut world, mut renewal) = held(Keeping::default(), []);
    world
        .memory
        .put(b"invoice:42", b"another", Some(ttl(90_000)));
    let extend = call(woken(&mut renewal, 20_000));
    let outcome = world.memory.execute(&extend);
    assert_eq!(
        is_over(&renewal.handle(at(20_000), replied(&extend, outcome))),
        Err(TAKEN)
    );
    for now in [20_001, DEADLINE, 2 * DEADLINE] {
        let ensured = renewal.lease().ensure(at(now), Wait::NONE);
        assert_eq!(ensured.unwrap_err().code(), TAKEN);
        assert_eq!(is_over(&woken(&mut renewal, now)), Err(TAKEN));
    }
}

#[test]
fn trouble_that_is_over_is_not_the_reason() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let first = call(woken(&mut renewal, 20_000));
    let refused = Reply::Error("READONLY no".into());
    let paused = renewal.handle(at(20_000), replied(&first, Ok(vec![refused])));
    let Next::WaitUntil(until) = paused.next else {
        panic!("it tries again")
    };
    let second = call(renewal.handle(until, Event::Woke));
    let _ = renewal.handle(until, replied(&second, Ok(word("extended"))));
    assert_eq!(is_over(&woken(&mut renewal, 200_000)), Err(EXPIRED));
}

#[test]
fn an_extend_of_the_holder_that_is_answered_after_the_deadline_fails() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let (_, extending) = extend(renewal.lease(), 60_000, DEADLINE - 1);
    assert_eq!(is_over(&woken(&mut renewal, DEADLINE)), Err(EXPIRED));
    let late = renewal.lease().extended(extending, Ok(at(2 * DEADLINE)));
    assert_eq!(late.unwrap_err().code(), EXPIRED);
    assert_eq!(renewal.lease().remaining(at(DEADLINE)), 0);
}

#[test]
fn what_the_server_says_later_is_not_the_reason() {
    let (_, mut renewal) = held(Keeping::default(), []);
    let (_, extending) = extend(renewal.lease(), 60_000, DEADLINE - 1);
    assert_eq!(is_over(&woken(&mut renewal, DEADLINE)), Err(EXPIRED));
    let taken = Error::new(TAKEN, "as the test has it");
    assert!(renewal.lease().extended(extending, Err(taken)).is_err());
    assert_eq!(is_over(&woken(&mut renewal, DEADLINE)), Err(EXPIRED));
}

#[test]
fn a_server_that_refuses_scripts_is_gone_to_without_them() {
    let refusal = Refused("NOPERM this user has no permissions to run the 'evalsha' command");
    let (mut world, renewal) = held(Keeping::default(), [refusal, Answered(0), Answered(0)]);
    assert_eq!(run(&mut world, renewal, Some(45_000)), Ok(()));
    let commands = world.commands();
    assert_eq!(
        commands.iter().filter(|name| *name == "EVALSHA").count(),
        1,
        "{commands:?}"
    );
}
