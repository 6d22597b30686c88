//! Changing a value that others change too.

mod scenario;

use scenario::{Fate, World, code, key, seed, settings, ttl};
use tallylock_core::error::Error;
use tallylock_core::step::{Event, Next, Operation};
use tallylock_core::value::{Offered, Update};

fn world(fates: impl IntoIterator<Item = Fate>) -> World {
    let mut world = World::new(fates);
    world.memory.put(b"v", b"1", Some(ttl(5_000)));
    world
}

fn offer(world: &mut World, update: Update, value: &[u8]) -> Result<Offered, Error> {
    let now = world.memory.now();
    let started = update.offer(value.to_vec(), ttl(60_000), &settings(), seed(1), now);
    world.run(started, None)
}

fn update(world: &World, present: &[u8]) -> Update {
    Update::new(key("v"), present.to_vec(), &settings(), world.memory.now())
}

#[test]
fn what_nobody_changed_is_written_with_its_ttl() {
    let mut world = world([]);
    let update = update(&world, b"1");
    assert_eq!(offer(&mut world, update, b"2"), Ok(Offered::Written));
    assert_eq!(world.text("v").as_deref(), Some("2"));
    assert_eq!(world.ttl("v"), Some(60_000));
}

#[test]
fn who_is_overtaken_sees_what_is_there_now_after_a_pause() {
    let mut world = world([]);
    let update = update(&world, b"0");
    let Ok(Offered::Overtaken(update)) = offer(&mut world, update, b"2") else {
        panic!("it must not be written");
    };
    assert_eq!(update.present(), b"1");
    assert!((8..=16).contains(&world.memory.now().as_millis()));
    assert_eq!(
        world.ttl("v").map(|ttl| ttl > 4_000 && ttl < 5_000),
        Some(true)
    );
    assert_eq!(offer(&mut world, update, b"2"), Ok(Offered::Written));
}

#[test]
fn a_key_that_is_gone_is_not_made_again() {
    let mut world = world([]);
    world.memory.put(b"v", b"1", Some(ttl(100)));
    let update = update(&world, b"1");
    world.memory.advance(101);
    assert_eq!(offer(&mut world, update, b"2"), Ok(Offered::Gone));
    assert_eq!(world.text("v"), None);
}

#[test]
fn who_is_overtaken_until_the_deadline_has_a_conflict() {
    let mut world = world([]);
    let mut update = update(&world, b"0");
    let mut tries = 0;
    let error = loop {
        match offer(&mut world, update, b"mine") {
            Ok(Offered::Overtaken(overtaken)) => update = overtaken,
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
        tries += 1;
        // Another writes between the read and the write, each time.
        world
            .memory
            .put(b"v", format!("other {tries}").as_bytes(), Some(ttl(60_000)));
    };
    assert_eq!(error.code().as_str(), "conflict");
    assert_eq!(error.key(), Some("v"));
    assert!((8..100).contains(&tries), "{tries}");
    assert_eq!(world.memory.now().as_millis(), 2_000);
    assert_eq!(world.text("v"), Some(format!("other {tries}")));
}

#[test]
fn a_write_whose_reply_is_lost_is_not_repeated() {
    let mut world = world([Fate::ReplyLost]);
    let update = update(&world, b"1");
    assert_eq!(code(offer(&mut world, update, b"2")), "outcome_unknown");
    assert_eq!(world.commands(), ["EVALSHA"]);
}

#[test]
fn an_update_can_be_stopped_in_its_pause() {
    let mut world = world([]);
    let now = world.memory.now();
    let (mut offer, mut step) =
        update(&world, b"0").offer(b"2".to_vec(), ttl(60_000), &settings(), seed(1), now);
    while let Some(call) = step.calls.pop() {
        let outcome = world.memory.execute(&call);
        let replied = Event::Replied {
            call: call.id,
            outcome,
        };
        step = offer.handle(now, replied);
    }
    let step = offer.handle(now, Event::Stop);
    let Next::Done(result) = step.next else {
        panic!("it goes on");
    };
    assert_eq!(code(result), "cancelled");
}
