//! Looking through keys.

mod scenario;

use std::time::Duration;

use scenario::{Fate, World, key, seed, settings, ttl};
use tallylock_core::claim::{Listed, State};
use tallylock_core::heal::Heal;
use tallylock_core::id::Id;
use tallylock_core::key::Part;
use tallylock_core::request::Single;
use tallylock_core::scan::{Cursor, Found, Page, Scan, claims_of, side_keys_of};

fn scan(world: &mut World, pattern: &str) -> Page {
    scan_bytes(world, pattern.as_bytes())
}

fn scan_bytes(world: &mut World, pattern: &[u8]) -> Page {
    let started = Scan::start(pattern, None, &settings(), seed(1), world.memory.now());
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
    let side = key("session:1").side(Part::Guard);
    world.memory.put(&side, b"7", Some(ttl(5_000)));
    let page = scan(&mut world, "session:*");
    let side = page.found[0].side().unwrap();
    assert_eq!(
        (side.owner, side.part),
        (b"session:1".as_slice(), b"guard".as_slice())
    );
}

#[test]
fn the_claims_of_a_counter_are_found_and_no_others() {
    let mut world = World::new([]);
    let id = Id::new("run*1").unwrap();
    for owner in ["a[1]*", "a[1]*2", "{a[1]*}"] {
        let claim = key(owner).side(Part::Claim(&id));
        world.memory.put(&claim, b"open -30", Some(ttl(5_000)));
        world
            .memory
            .put(&key(owner).side(Part::Once(&id)), b"5", Some(ttl(5_000)));
    }
    let page = scan_bytes(&mut world, &claims_of(&key("a[1]*")));
    let claims: Vec<_> = page.found.iter().map(Found::claim).collect();
    let claim = Listed {
        counter: b"a[1]*",
        id: b"run*1",
        state: State::Open,
        amount: -30,
    };
    assert_eq!(claims, [Some(claim)]);
}

#[test]
fn the_side_keys_of_a_key_are_found_and_no_others() {
    let mut world = World::new([]);
    let id = Id::new("1").unwrap();
    for owner in ["a[1]*", "{a[1]*}", "a[1]*2"] {
        world.memory.put(owner.as_bytes(), b"5", Some(ttl(5_000)));
        for part in [Part::Fence, Part::Guard, Part::Once(&id), Part::Claim(&id)] {
            world
                .memory
                .put(&key(owner).side(part), b"5", Some(ttl(5_000)));
        }
    }
    for owner in ["a[1]*", "{a[1]*}"] {
        let page = scan_bytes(&mut world, &side_keys_of(&key(owner)));
        let owners: Vec<_> = page
            .found
            .iter()
            .map(|found| found.side().unwrap().owner)
            .collect();
        assert_eq!(owners, [owner.as_bytes(); 4]);
    }
}

#[test]
fn a_counter_that_is_about_to_end_with_something_in_it_is_expiring() {
    let mut world = World::new([]);
    world.memory.put(b"c:late", b"30", Some(ttl(60_000)));
    world.memory.put(b"c:near", b"30", Some(ttl(5_000)));
    world
        .memory
        .put(b"c:near-and-empty", b"0", Some(ttl(5_000)));
    world.memory.put(b"c:without", b"-1", None);
    world.memory.put(b"c:text", b"text", Some(ttl(5_000)));
    world
        .memory
        .put(&key("c:x").side(Part::Fence), b"30", Some(ttl(5_000)));
    let page = scan(&mut world, "c:*");
    let within = Duration::from_secs(5);
    let expiring = page.found.iter().filter(|found| found.is_expiring(within));
    let keys: Vec<_> = expiring.map(|found| found.key.as_slice()).collect();
    assert_eq!(keys, [b"c:near".as_slice(), b"c:without"]);
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
