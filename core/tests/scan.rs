//! Looking through keys.

mod scenario;

use scenario::{Fate, World, key, seed, settings, ttl};
use tallylock_core::heal::Heal;
use tallylock_core::request::Single;
use tallylock_core::scan::{Cursor, Page, Scan};

fn scan(world: &mut World, pattern: &str) -> Page {
    let started = Scan::start(
        pattern.as_bytes(),
        None,
        &settings(),
        seed(1),
        world.memory.now(),
    );
    world.run(started, None).unwrap()
}

#[test]
fn a_page_has_types_times_and_texts() {
    let mut world = World::new([
        Fate::ReplyLost,
        Fate::NoConnection,
        Fate::Answered(0),
        Fate::ReplyLost,
    ]);
    world.memory.put(b"session:1", b"30", Some(ttl(5_000)));
    world.memory.put(b"session:2", b"text", None);
    world.memory.put_other_type(b"session:3", None);
    world.memory.put(b"invoice:1", b"1", None);
    let page = scan(&mut world, "session:*");
    let seen: Vec<_> = page
        .found
        .iter()
        .map(|found| (found.counter(), found.text.is_some(), found.ttl))
        .collect();
    assert_eq!(seen.len(), 3);
    assert!(matches!(seen[0], (Some(30), true, Some(4_900..=5_000))));
    assert_eq!(seen[1..], [(None, true, None), (None, false, None)]);
    assert_eq!(page.next, None);
}

#[test]
fn side_keys_are_known_by_their_owner() {
    let mut world = World::new([]);
    let side = key("session:1").side(tallylock_core::key::Part::Guard);
    world.memory.put(&side, b"7", Some(ttl(5_000)));
    let page = scan(&mut world, "session:*");
    let side = page.found[0].side().unwrap();
    assert_eq!(
        (side.owner, side.part),
        (b"session:1".as_slice(), b"guard".as_slice())
    );
}

#[test]
fn only_a_key_without_a_ttl_is_healed() {
    let mut world = World::new([]);
    world.memory.put(b"dead", b"1", None);
    world.memory.put(b"live", b"1", Some(ttl(5_000)));
    let mut heal = |key: &str| {
        let heal = Heal {
            key: key.into(),
            ttl: ttl(60_000),
        };
        let started = Single::start(heal, &settings(), seed(1), world.memory.now());
        world.run(started, None).unwrap()
    };
    assert!(heal("dead"));
    assert!(!heal("live"));
    assert!(!heal("absent"));
    assert_eq!(
        (world.ttl("dead"), world.ttl("live")),
        (Some(60_000), Some(5_000))
    );
}

#[test]
fn a_cursor_is_what_a_page_gave() {
    assert!(Cursor::new(b"1234").is_ok());
    for bad in ["", "12a", "123456789012345678901"] {
        assert!(Cursor::new(bad.as_bytes()).is_err());
    }
}
