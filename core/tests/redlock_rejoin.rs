//! Nodes that have lost a lock have it again after an extend, if that was asked for.

mod nodes;

use nodes::{FENCE, KEY, Manner, NODE_TIMEOUT, TTL, World, code, lock};
use tallylock_core::error::Error;
use tallylock_core::lock::{Lease, LeaseTtl};
use tallylock_core::memory::Memory;
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;

use Manner::{Answers, Down, Hung};

/// What is left of the TTL after the drift.
const VALID: u64 = 9_898;

/// A world of nodes in which a lease is held since 0, at this time; nodes that lost a lock are to have it again.
fn held_until(millis: u64) -> (World, Lease) {
    let mut world = World::new([Answers(1); 5]);
    world.settings.rejoin = true;
    // As if their clocks were ahead of that of the first.
    for node in 1..5 {
        world.nodes[node].advance(3_600_000);
    }
    let grant = world.acquire(0, 1).output.unwrap();
    world.settle(millis - world.now.as_millis());
    world.manners = vec![Answers(1); 5];
    (world, Lease::new(lock(TTL), grant))
}

impl World {
    fn extend(&mut self, lease: &mut Lease) -> (u64, Result<(), Error>) {
        let (ttl, begun) = (LeaseTtl::new(nodes::ttl(TTL)).unwrap(), self.now);
        let seed = Seed::new([2; 16]);
        let started = lease.extend(ttl, &self.settings, seed, self.now).unwrap();
        let (started, extending) = started;
        let ended = self.run_one(started);
        let extended = lease.extended(extending, ended.output);
        (ended.at - begun.as_millis(), extended)
    }

    /// A node that has come back and knows nothing.
    fn restart(&mut self, node: usize) {
        self.nodes[node] = Memory::default();
    }

    fn knows(&self, node: usize) -> (bool, Option<u64>) {
        let fence = self.texts(FENCE).remove(node);
        let fence = fence.map(|fence| fence.parse().unwrap());
        (self.texts(KEY)[node].is_some(), fence)
    }
}

#[test]
fn a_node_that_came_back_empty_has_the_lock_and_its_fence_again() {
    let (mut world, mut lease) = held_until(1_000);
    world.restart(0);
    let (took, extended) = world.extend(&mut lease);
    extended.unwrap();
    assert!(took < NODE_TIMEOUT, "{took}");
    assert_eq!(world.knows(0), (true, Some(lease.fence())));
    assert_eq!(world.texts(KEY)[0], world.texts(KEY)[1]);
    assert_eq!(
        lease.remaining(world.now),
        VALID - took,
        "its time counts from the request"
    );
    let release = lease.release(&world.settings, Seed::new([3; 16]), world.now);
    world.run_one(release.unwrap()).output.unwrap();
    assert_eq!(world.held(), 0);
}

#[test]
fn it_is_not_given_again_unless_that_was_asked_for() {
    let (mut world, mut lease) = held_until(1_000);
    world.settings.rejoin = false;
    world.restart(0);
    let (took, extended) = world.extend(&mut lease);
    extended.unwrap();
    assert_eq!((took, world.knows(0)), (2, (false, None)));
}

#[test]
fn what_another_has_there_stays_the_others() {
    let (mut world, mut lease) = held_until(1_000);
    world.take([0]);
    world.extend(&mut lease).1.unwrap();
    assert_eq!(world.texts(KEY)[0].as_deref(), Some("another's"));
    // It is taken between the extend and what follows.
    let (mut world, mut lease) = held_until(1_000);
    world.restart(0);
    world.at(1_003, |world| world.take([0]));
    world.extend(&mut lease).1.unwrap();
    assert_eq!(world.texts(KEY)[0].as_deref(), Some("another's"));
}

#[test]
fn what_no_quorum_has_extended_is_given_to_nobody() {
    let (mut world, mut lease) = held_until(1_000);
    world.restart(0);
    world.manners = vec![Answers(1), Answers(1), Hung, Hung, Answers(1)];
    let (_, extended) = world.extend(&mut lease);
    assert_eq!(code(&extended), "outcome_unknown");
    assert_eq!(world.knows(0), (false, None));
    let (mut world, mut lease) = held_until(1_000);
    (0..3).for_each(|node| world.restart(node));
    assert_eq!(code(&world.extend(&mut lease).1), "lost");
    assert_eq!(world.held(), 2);
}

#[test]
fn silent_nodes_keep_it_from_no_other_and_delay_it_no_longer_than_a_node_may() {
    for silent in [Hung, Down] {
        let (mut world, mut lease) = held_until(1_000);
        world.restart(0);
        world.manners[1] = silent;
        let (took, extended) = world.extend(&mut lease);
        extended.unwrap();
        assert!(took < NODE_TIMEOUT, "{took}");
        assert!(world.knows(0).0, "{silent:?}");
    }
    // It says that it has lost it, and falls silent.
    let (mut world, mut lease) = held_until(1_000);
    world.restart(0);
    world.at(1_002, |world| world.manners[0] = Hung);
    let (took, extended) = world.extend(&mut lease);
    extended.unwrap();
    assert_eq!(took, NODE_TIMEOUT);
}

#[test]
fn an_extend_near_the_deadline_is_over_before_it() {
    for left in [1_u64, 2, 5, 20, 100, 400] {
        let (mut world, mut lease) = held_until(VALID - left);
        world.manners = vec![Answers(0); 5];
        world.manners[1] = Hung;
        world.restart(0);
        let (took, extended) = world.extend(&mut lease);
        extended.unwrap();
        assert!(took < left, "{took} of {left}");
        assert!(lease.lost(world.now).is_none());
    }
}

#[test]
fn a_slow_node_is_seen_to_have_lost_it() {
    let (mut world, mut lease) = held_until(1_000);
    world.restart(0);
    world.manners[0] = Answers(30);
    world.extend(&mut lease).1.unwrap();
    assert_eq!(world.knows(0), (true, Some(lease.fence())));
    assert_eq!(
        lease.remaining(world.now),
        Instant::from_millis(1_000 + VALID).since(world.now)
    );
}
