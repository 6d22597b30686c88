//! A meter whose every answer may be lost, which may die at any moment, and whose server refuses some of it: nothing is lost,
//! nothing is counted twice.

mod meter_world;

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use meter_world::{Fate, TIMEOUT, World, settings, tally, ttl};
use proptest::prelude::*;
use tallylock_core::counter::{Entry, MOST};
use tallylock_core::error::{Applied, Code, Error};
use tallylock_core::id::Id;
use tallylock_core::key::Key;
use tallylock_core::meter::{MeterSettings, Segment, Settled, Tally, Terms};
use tallylock_core::token::Seed;

const HOUR: u64 = 3_600_000;

#[derive(Clone, Debug)]
enum Action {
    Add(usize, i64),
    Flush(Vec<Fate>),
    Die,
    /// The pass begins, its marks are written, some of its requests are applied, and the process dies.
    DieInFlight(Vec<Fate>),
    Take,
}

const KEYS: [&str; 4] = ["a", "b", "c{t}", "wrong"];

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::AppliedAndLost),
        1 => Just(Fate::LostOnTheWay),
        1 => Just(Fate::NeverSent),
        1 => Just(Fate::OutOfMemory),
        1 => Just(Fate::Forbidden),
    ];
    prop::collection::vec(fate, 1..6)
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..KEYS.len(), -5_i64..50).prop_map(|(key, amount)| Action::Add(key, amount)),
        3 => fates().prop_map(Action::Flush),
        1 => Just(Action::Die),
        1 => fates().prop_map(Action::DieInFlight),
        1 => Just(Action::Take),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_was_added_is_counted_once_or_handed_out(actions in prop::collection::vec(action(), 1..60)) {
        let mut world = World::default();
        world.wrong.insert(Key::new("wrong").unwrap());
        let mut meter = tally(settings());
        let mut added: BTreeMap<&str, i64> = BTreeMap::new();
        let mut refused = Vec::new();
        for (step, action) in actions.into_iter().enumerate() {
            // An hour or so passes in all: ids are remembered throughout.
            let now = HOUR + step as u64 * 60_000;
            match action {
                Action::Add(key, amount) => {
                    world.add(&mut meter, KEYS[key], amount).unwrap();
                    *added.entry(KEYS[key]).or_default() += amount;
                }
                Action::Flush(fates) => {
                    world.flush(&mut meter, now, &fates);
                }
                Action::Die => meter = world.restart(),
                Action::DieInFlight(fates) => {
                    let mut pass = meter.begin();
                    if let Some(mut batch) = meter.next_batch(&mut pass, now) {
                        world.mark(&batch, now);
                        for (add, fate) in batch.take_adds().into_iter().zip(fates) {
                            drop(world.send(add, fate));
                        }
                    }
                    meter = world.restart();
                }
                Action::Take => refused.extend(world.take(&mut meter)),
            }
        }
        let (flushed, error) = world.flush(&mut meter, 2 * HOUR, &[Fate::Answered]);
        prop_assert_eq!(flushed.waiting, 0);
        prop_assert_eq!(error, None);
        refused.extend(world.take(&mut meter));
        prop_assert_eq!(meter.held(), 0);
        prop_assert!(world.journal.iter().all(|written| written.sums.is_empty()));
        for key in KEYS {
            let handed_out = refused.iter().filter(|refused| refused.key == key.as_bytes());
            let handed_out: i64 = handed_out.map(|refused| refused.amount).sum();
            prop_assert_eq!(world.total(key) + handed_out, added.get(key).copied().unwrap_or_default());
            // The server of this test remembers for ever, and counts nothing under a wrong type.
            prop_assert!(handed_out == 0 || key == "wrong");
        }
    }
}

#[test]
fn what_the_server_may_have_forgotten_is_never_sent_again() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "lost", 5).unwrap();
    world.flush(&mut meter, HOUR, &[Fate::AppliedAndLost]);
    let of_another = world.restart();
    for mut meter in [meter, of_another] {
        // 24 hours less two seconds for the call and a hundredth for the clocks.
        let latest = HOUR + 24 * HOUR - 2_000 - (24 * HOUR / 100 + 2);
        let mut pass = meter.clone().begin();
        assert!(meter.clone().next_batch(&mut pass, latest - 1).is_some());
        let mut pass = meter.begin();
        assert!(meter.next_batch(&mut pass, latest).is_none());
        let taken = meter.take(&meter.refusals().unwrap()).refused;
        assert_eq!(taken[0].amount, 5);
        assert_eq!(taken[0].error.code(), Code::OutcomeUnknown);
        assert_eq!(taken[0].error.applied(), Applied::Maybe);
        assert_eq!(meter.held(), 0);
    }
    assert_eq!(world.total("lost"), 5);
}

/// Left by a meter whose client had a shorter time-out, and whose server forgets before a call of this one is over.
#[test]
fn what_another_meter_left_is_remembered_for_as_long_as_a_call_of_this_one_takes() {
    let short = Terms {
        remember: ttl(1_000),
        ..settings().terms
    };
    let left = |sent| {
        let id = Id::new(vec![b'a'; 32]).unwrap();
        let mut meter = tally(settings());
        meter.restore(Segment::restored(
            id,
            short.clone(),
            sent,
            [(Key::new("a").unwrap(), 5)],
        ));
        meter
    };
    let mut meter = left(None);
    let mut pass = meter.begin();
    let adds = meter.next_batch(&mut pass, HOUR).unwrap().take_adds();
    let Entry::Keyed(add) = &adds[0] else {
        panic!("a meter sends keyed adds only");
    };
    assert_eq!(add.remembered, Some(settings().terms.remember));
    // What may have been sent already is remembered for no longer than was said then.
    let mut meter = left(Some(HOUR));
    let mut pass = meter.begin();
    assert!(meter.next_batch(&mut pass, HOUR + 1).is_none());
    assert_eq!(meter.refusals().unwrap().keys.len(), 1);
}

#[test]
fn a_clock_that_went_back_is_not_believed() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "lost", 5).unwrap();
    world.flush(&mut meter, 100 * HOUR, &[Fate::LostOnTheWay]);
    let mut pass = meter.begin();
    assert!(meter.next_batch(&mut pass, 99 * HOUR).is_none());
    assert_eq!(meter.refusals().unwrap().keys.len(), 1);
}

#[test]
fn what_was_certainly_never_applied_waits_for_as_long_as_it_takes() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "a", 5).unwrap();
    for day in 1..10 {
        let fate = [Fate::NeverSent, Fate::OutOfMemory][day % 2];
        let (flushed, error) = world.flush(&mut meter, day as u64 * 24 * HOUR, &[fate]);
        assert_eq!((flushed.waiting, flushed.refused), (1, 0));
        assert!(
            error
                .unwrap()
                .detail()
                .starts_with("5 units over 1 counters wait")
        );
    }
    let (flushed, _) = world.flush(&mut meter, 300 * HOUR, &[Fate::Answered]);
    assert_eq!((flushed.settled, flushed.units), (1, 5));
    assert_eq!(world.total("a"), 5);
}

/// An id that is forgotten for one counter of a segment stays so for another process, though others of it are sent later.
#[test]
fn a_later_send_makes_nothing_of_before_certain() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "a", 5).unwrap();
    world.add(&mut meter, "b", 7).unwrap();
    world.flush(&mut meter, HOUR, &[Fate::AppliedAndLost, Fate::NeverSent]);
    // `a` is given up now, `b` is sent, and the process dies.
    let mut pass = meter.begin();
    let mut batch = meter.next_batch(&mut pass, 30 * HOUR).unwrap();
    assert_eq!(batch.take_adds().len(), 1);
    world.mark(&batch, 30 * HOUR);
    let mut meter = world.restart();
    let mut pass = meter.begin();
    assert!(meter.next_batch(&mut pass, 30 * HOUR).is_none());
    assert_eq!(meter.refusals().unwrap().keys.len(), 2);
}

#[test]
fn no_answer_of_the_server_ends_a_pass_and_a_refusal_does_not() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "a", 1).unwrap();
    world.flush(&mut meter, HOUR, &[Fate::Forbidden]);
    world.add(&mut meter, "b", 1).unwrap();
    let (flushed, _) = world.flush(&mut meter, HOUR, &[Fate::Forbidden, Fate::Answered]);
    assert_eq!((flushed.settled, flushed.waiting), (1, 1));
    world.add(&mut meter, "b", 1).unwrap();
    let (flushed, _) = world.flush(&mut meter, HOUR, &[Fate::NeverSent, Fate::Answered]);
    assert_eq!((flushed.settled, flushed.waiting), (0, 2));
}

#[test]
fn a_server_that_takes_nothing_costs_two_sums_for_each_counter() {
    for fate in [Fate::OutOfMemory, Fate::NeverSent, Fate::LostOnTheWay] {
        let mut world = World::default();
        let mut meter = tally(settings());
        for _ in 0..50 {
            world.add(&mut meter, "a", 1).unwrap();
            world.add(&mut meter, "b", 1).unwrap();
            world.flush(&mut meter, HOUR, &[fate]);
        }
        assert_eq!(meter.held(), 4, "{fate:?}");
        world.flush(&mut meter, HOUR, &[Fate::Answered]);
        assert_eq!((world.total("a"), world.total("b")), (50, 50));
    }
}

#[test]
fn a_full_segment_is_followed_by_another() {
    let mut world = World::default();
    let mut meter = tally(settings());
    for counter in 0..=MOST {
        let is_due = world.add(&mut meter, &format!("c{counter}"), 1).unwrap();
        assert_eq!(is_due, counter + 1 == MOST, "{counter}");
    }
    let mut pass = meter.begin();
    let mut sizes = Vec::new();
    while let Some(mut batch) = meter.next_batch(&mut pass, HOUR) {
        let adds = batch.take_adds();
        sizes.push(adds.len());
        let results = adds.into_iter().map(|add| world.send(add, Fate::Answered));
        let results = results.collect();
        meter.settle(&mut pass, batch, Ok(results));
    }
    assert_eq!(sizes, [MOST, 1]);
    assert_eq!(meter.held(), 0);
}

#[test]
fn memory_is_bounded_and_a_known_counter_still_counts() {
    let bound = MeterSettings {
        max_counters: NonZeroUsize::new(2).unwrap(),
        ..settings()
    };
    let mut world = World::default();
    let mut meter = tally(bound);
    assert!(!world.add(&mut meter, "a", 1).unwrap());
    assert!(world.add(&mut meter, "b", 1).unwrap());
    let error = world.add(&mut meter, "c", 1).unwrap_err();
    assert_eq!(error.code(), Code::Busy);
    assert!(error.to_string().contains("2 wait"), "{error}");
    world.add(&mut meter, "a", 1).unwrap();
    world.wrong.insert(Key::new("b").unwrap());
    world.flush(&mut meter, HOUR, &[Fate::Answered]);
    world.add(&mut meter, "c", 1).unwrap();
    let error = world.add(&mut meter, "d", 1).unwrap_err();
    assert!(error.to_string().contains("1 wait"), "{error}");
    assert!(error.to_string().contains("1 were refused"), "{error}");
    assert_eq!(world.take(&mut meter).len(), 1);
    world.add(&mut meter, "d", 1).unwrap();
}

#[test]
fn so_many_units_are_a_reason_to_flush_once() {
    let units = MeterSettings {
        max_units: NonZeroU64::new(10),
        ..settings()
    };
    let mut world = World::default();
    let mut meter = tally(units);
    let due = [4, -5, 1, 1, i64::MIN].map(|n| world.add(&mut meter, &format!("c{n}"), n).unwrap());
    assert_eq!(due, [false, false, true, false, false]);
}

#[test]
fn a_bad_add_changes_nothing() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "a", i64::MAX).unwrap();
    let before = meter.clone();
    let code = |error: Error| error.code();
    assert_eq!(
        world.add(&mut meter, "a", 1).map_err(code),
        Err(Code::Overflow)
    );
    assert_eq!(
        world.add(&mut meter, "", 1).map_err(code),
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        world.add(&mut meter, "{}", 1).map_err(code),
        Err(Code::InvalidArgument)
    );
    assert_eq!(meter, before);
    world.flush(&mut meter, HOUR, &[Fate::Answered]);
    assert_eq!(world.total("a"), i64::MAX);
}

#[test]
fn what_is_left_is_said_with_its_reason() {
    let mut world = World::default();
    let mut meter = tally(settings());
    assert_eq!(meter.left(None), None);
    world.wrong.insert(Key::new("wrong").unwrap());
    world.add(&mut meter, "wrong", 3).unwrap();
    world.flush(&mut meter, HOUR, &[Fate::Answered]);
    let error = meter.left(None).unwrap();
    assert_eq!(error.code(), Code::WrongType);
    assert!(
        error
            .detail()
            .starts_with("3 units over 1 counters were refused"),
        "{error}"
    );
    world.add(&mut meter, "a", -4).unwrap();
    let (_, trouble) = world.flush(&mut meter, HOUR, &[Fate::NeverSent]);
    let error = meter.left(trouble.as_ref()).unwrap();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(
        error
            .detail()
            .starts_with("4 units over 1 counters are not on the server"),
        "{error}"
    );
}

#[test]
fn ids_must_be_remembered_for_longer_than_a_call_takes() {
    let mut short = settings();
    short.terms.remember = ttl(4_080);
    let refused = Tally::new(short.clone(), ttl(TIMEOUT)).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    Tally::new(short, ttl(1_000)).unwrap();
}

#[test]
fn what_is_forgotten_while_it_is_under_way_is_settled_without_a_word() {
    let mut world = World::default();
    let mut meter = tally(settings());
    world.add(&mut meter, "a", 5).unwrap();
    let mut pass = meter.begin();
    let mut batch = meter.next_batch(&mut pass, HOUR).unwrap();
    let results = batch.take_adds().into_iter();
    let results = results.map(|add| world.send(add, Fate::Answered)).collect();
    meter.forget();
    let settled = meter.settle(&mut pass, batch, Ok(results));
    assert_eq!(settled, Settled::default());
    assert_eq!(meter.held(), 0);
}

#[test]
fn a_segment_into_which_nothing_could_be_written_stays_for_the_next_add() {
    let mut world = World::default();
    let mut meter = tally(settings());
    for _ in 0..3 {
        // The journal refuses it: the add is given up before it counts.
        let admitted = meter.admit(b"a", 5, || {
            world.seeds += 1;
            Ok(Seed::new([world.seeds; 16]))
        });
        drop(admitted.unwrap());
        world.flush(&mut meter, HOUR, &[Fate::Answered]);
    }
    assert_eq!(world.seeds, 1);
    world.add(&mut meter, "a", 5).unwrap();
    world.flush(&mut meter, HOUR, &[Fate::Answered]);
    assert_eq!((world.seeds, world.total("a")), (1, 5));
}

/// A server so slow, or so far away, that it does no more than 100 adds while a call may last.
#[test]
fn what_takes_longer_than_a_call_may_is_sent_in_smaller_batches() {
    let mut world = World::default();
    let mut meter = tally(settings());
    for n in 0..MOST {
        world.add(&mut meter, &format!("c{n}"), 1).unwrap();
    }
    let (mut sizes, mut passes) = (Vec::new(), 0);
    while meter.held() > 0 {
        passes += 1;
        assert!(passes < 200, "it makes no headway: {sizes:?}");
        let mut pass = meter.begin();
        while let Some(mut batch) = meter.next_batch(&mut pass, HOUR) {
            world.mark(&batch, HOUR);
            let adds = batch.take_adds();
            sizes.push(adds.len());
            let fate = if adds.len() > 100 {
                Fate::AppliedAndLost
            } else {
                Fate::Answered
            };
            let results = adds.into_iter().map(|add| world.send(add, fate)).collect();
            let settled = meter.settle(&mut pass, batch, Ok(results));
            world.note(settled);
        }
    }
    assert_eq!(world.totals.len(), MOST);
    assert!(world.totals.values().all(|total| *total == 1));
    assert!(world.journal.is_empty());
    // Whatever is in time makes the next one larger.
    for n in 0..MOST {
        world.add(&mut meter, &format!("c{n}"), 1).unwrap();
    }
    world.flush(&mut meter, HOUR, &[Fate::Answered]);
    assert_eq!(meter.held(), 0);
    assert!(world.totals.values().all(|total| *total == 2));
}
