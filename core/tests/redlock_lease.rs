//! Extending and releasing a lease over several nodes: a quorum decides, either way.

mod nodes;

use nodes::{KEY, Manner, NODE_TIMEOUT, TTL, World, code, lock, said};
use tallylock_core::error::Error;
use tallylock_core::lock::{Extend, Grant, Release};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;

use Manner::{Answers, Down, Hung, LosesReplies};

/// What is left of the TTL after the drift.
const VALID: u64 = 9_898;

/// A world of five nodes in which the lock is held since 0, at this time.
fn held_until(millis: u64) -> (World, Grant) {
    let mut world = World::new([Answers(0); 5]);
    let grant = world.acquire(0, 1).output.unwrap();
    world.settle(millis);
    (world, grant)
}

impl World {
    fn extend(&mut self, grant: &Grant) -> (u64, Result<Instant, Error>) {
        let (token, until, seed) = (&grant.token, grant.valid_until, Seed::new([2; 16]));
        let started = Extend::start(lock(TTL), token, until, &self.settings, seed, self.now);
        let begun = self.now.as_millis();
        let ended = self.run_one(started);
        (ended.at - begun, ended.output)
    }

    fn release(&mut self, grant: &Grant) -> (u64, Result<(), Error>) {
        let (token, until, seed) = (&grant.token, grant.valid_until, Seed::new([3; 16]));
        let started = Release::start(lock(TTL), token, until, &self.settings, seed, self.now);
        let begun = self.now.as_millis();
        let ended = self.run_one(started);
        (ended.at - begun, ended.output)
    }

    fn lose(&mut self, nodes: &[usize]) {
        for node in nodes {
            self.nodes[*node].remove(KEY.as_bytes());
        }
    }
}

fn reason<T: std::fmt::Debug>(result: &Result<T, Error>) -> &'static str {
    result
        .as_ref()
        .unwrap_err()
        .code()
        .reason()
        .expect("lost")
        .as_str()
}

#[test]
fn a_quorum_extends_whatever_the_others_do() {
    for others in [Answers(400), Down, Hung, LosesReplies] {
        let (mut world, grant) = held_until(5_000);
        world.manners = vec![Answers(1), others, Answers(2), others, Answers(1)];
        let (took, extended) = world.extend(&grant);
        assert_eq!(extended.unwrap(), Instant::from_millis(5_000 + VALID));
        assert_eq!(took, 4, "{others:?}");
    }
    let (mut world, grant) = held_until(5_000);
    world.lose(&[0]);
    world.take([1]);
    world.extend(&grant).1.unwrap();
    assert_eq!(
        world.texts(KEY)[0],
        None,
        "what a node has lost it is not given again"
    );
}

#[test]
fn the_time_counts_from_the_earliest_request_of_the_quorum() {
    let (mut world, grant) = held_until(5_000);
    // One of the three is asked again, and again, and answers the last.
    world.manners = vec![Answers(1), Down, Hung, Hung, Answers(1)];
    world.at(5_100, |world| world.manners[1] = Answers(1));
    let (took, extended) = world.extend(&grant);
    assert!(took > 100);
    assert_eq!(extended.unwrap(), Instant::from_millis(5_000 + VALID));
}

#[test]
fn a_quorum_that_says_no_ends_the_lease_at_once() {
    let (mut world, grant) = held_until(5_000);
    world.manners = vec![Answers(1), Hung, Answers(1), Hung, Answers(1)];
    world.lose(&[0, 2]);
    world.take([4]);
    let (took, extended) = world.extend(&grant);
    assert_eq!((took, reason(&extended)), (2, "expired"));
    let (mut world, grant) = held_until(5_000);
    world.manners = vec![Answers(1), Hung, Answers(1), Hung, Answers(1)];
    world.lose(&[0]);
    world.take([2, 4]);
    let (took, extended) = world.extend(&grant);
    assert_eq!((took, reason(&extended)), (2, "taken_over"));
    assert!(said(&extended).contains("held by another on 2, gone from 1 of 5 nodes"));
}

#[test]
fn a_minority_that_says_no_and_another_that_is_silent_end_no_lease() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Hung, Answers(1), Hung, Answers(1)];
    world.lose(&[0]);
    let (took, extended) = world.extend(&grant);
    assert_eq!((took, code(&extended)), (2_000, "outcome_unknown"));
    let words = "extended on 2, gone from 1, unreachable 2 of 5 nodes";
    assert!(said(&extended).contains(words), "{}", said(&extended));
}

#[test]
fn nodes_that_cannot_have_been_asked_leave_the_lease_as_it_was() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Down; 5];
    let (took, extended) = world.extend(&grant);
    assert_eq!((took, code(&extended)), (2_000, "unavailable"));
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Down, Down, Down, Down];
    let (_, extended) = world.extend(&grant);
    assert_eq!(
        code(&extended),
        "outcome_unknown",
        "one of them has another time now"
    );
}

#[test]
fn a_quorum_that_is_silent_loses_the_lease_at_its_deadline() {
    let (mut world, grant) = held_until(9_000);
    world.manners = vec![Answers(1), Hung, Hung, Down, Answers(1)];
    let (took, extended) = world.extend(&grant);
    assert_eq!((took, reason(&extended)), (898, "unreachable"));
}

#[test]
fn a_release_is_on_all_nodes_and_waits_for_those_that_answer() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Answers(2), Answers(3), Answers(4), Answers(50)];
    let (took, released) = world.release(&grant);
    released.unwrap();
    assert_eq!((took, world.held()), (100, 0));
}

#[test]
fn a_release_waits_for_a_silent_node_no_longer_than_for_a_node() {
    for others in [Hung, Down] {
        let (mut world, grant) = held_until(1_000);
        world.manners = vec![Answers(1), others, Answers(1), others, Answers(1)];
        let (took, released) = world.release(&grant);
        released.unwrap();
        assert_eq!((took, world.held()), (NODE_TIMEOUT, 2));
    }
    let (mut world, grant) = held_until(1_000);
    world.manners[2] = LosesReplies;
    let (_, released) = world.release(&grant);
    released.unwrap();
    assert_eq!(world.held(), 0);
}

#[test]
fn a_release_is_not_taken_for_done_where_a_quorum_is_silent() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Hung, Hung, Hung, Answers(1)];
    let (took, released) = world.release(&grant);
    assert_eq!((took, code(&released)), (NODE_TIMEOUT, "outcome_unknown"));
    assert!(said(&released).contains("released on 2, unreachable 3 of 5 nodes"));
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Down; 5];
    assert_eq!(code(&world.release(&grant).1), "unavailable");
}

#[test]
fn a_release_says_that_the_lease_was_lost_if_a_quorum_says_so() {
    let (mut world, grant) = held_until(1_000);
    world.lose(&[0, 1]);
    world.take([2]);
    let released = world.release(&grant).1;
    assert_eq!(reason(&released), "expired");
    assert_eq!(world.held(), 1, "that of the other");
    let (mut world, grant) = held_until(1_000);
    world.lose(&[0, 1]);
    world.release(&grant).1.unwrap();
}

#[test]
fn a_release_that_no_quorum_decides_is_one_if_our_clock_says_so() {
    for (millis, is_ours) in [(1_000, true), (9_950, false)] {
        let (mut world, grant) = held_until(millis);
        world.manners = vec![Answers(1), Answers(1), Answers(1), Hung, Hung];
        world.lose(&[0]);
        let released = world.release(&grant).1;
        assert_eq!(released.is_ok(), is_ours, "{released:?}");
    }
}

#[test]
fn a_release_that_is_repeated_ends_as_released() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Hung, Hung, Hung, Answers(1)];
    world.release(&grant).1.unwrap_err();
    world.settle(0);
    assert_eq!(world.held(), 0, "the nodes that were hung have done it");
}
