//! Asking several nodes whether a lease is ours, and taking one over: a quorum decides.

mod nodes;

use nodes::{KEY, Manner, NODE_TIMEOUT, TTL, World, code, lock, said, ttl};
use tallylock_core::error::Error;
use tallylock_core::lock::{Grant, Keeping, Lease, Renewal, Transferred, Verify};
use tallylock_core::time::Instant;
use tallylock_core::token::Seed;

use Manner::{Answers, Down, Hung, LosesReplies};

/// Until when nodes leave us a lock that they have since 0. The time that the question takes to them is taken off.
const SERVERS: Instant = Instant::from_millis(10_000);

/// A world of five nodes in which the lock is held since 0, at this time.
fn held_until(millis: u64) -> (World, Grant) {
    let mut world = World::new([Answers(0); 5]);
    let grant = world.acquire(0, 1).output.unwrap();
    world.settle(millis);
    (world, grant)
}

impl World {
    fn verify(&mut self, grant: &Grant) -> (u64, Result<Instant, Error>) {
        let (token, seed) = (grant.token.clone(), Seed::new([2; 16]));
        let believed = grant.valid_until;
        let started = Verify::start(lock(TTL), token, believed, &self.settings, seed, self.now);
        let begun = self.now.as_millis();
        let ended = self.run_one(started);
        (ended.at - begun, ended.output)
    }

    /// Has these nodes hold it for so many milliseconds from now.
    fn leave(&mut self, nodes: &[usize], grant: &Grant, millis: i64) {
        for node in nodes {
            let token = grant.token.as_bytes();
            self.nodes[*node].put(KEY.as_bytes(), token, Some(ttl(millis)));
        }
    }

    fn lose(&mut self, nodes: &[usize]) {
        for node in nodes {
            self.nodes[*node].remove(KEY.as_bytes());
        }
    }
}

fn reason<T: std::fmt::Debug>(result: &Result<T, Error>) -> &'static str {
    let code = result.as_ref().unwrap_err().code();
    code.reason().expect("lost").as_str()
}

#[test]
fn a_quorum_that_holds_it_is_enough_whatever_the_others_do() {
    for others in [Answers(400), Down, Hung, LosesReplies] {
        let (mut world, grant) = held_until(1_000);
        world.manners = vec![Answers(1), others, Answers(2), others, Answers(1)];
        let (took, ours_until) = world.verify(&grant);
        assert_eq!(
            (took, ours_until.unwrap()),
            (4, SERVERS.minus(2)),
            "{others:?}"
        );
    }
    let (mut world, grant) = held_until(1_000);
    world.lose(&[0]);
    world.take([1]);
    assert_eq!(world.verify(&grant).1.unwrap(), SERVERS);
}

#[test]
fn a_quorum_that_does_not_hold_it_is_believed_at_once() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Hung, Answers(1), Hung, Answers(1)];
    world.lose(&[0, 2]);
    world.take([4]);
    let (took, verified) = world.verify(&grant);
    assert_eq!((took, reason(&verified)), (2, "expired"));
    assert!(said(&verified).contains("held by another on 1, gone from 2 of 5 nodes"));
    let (mut world, grant) = held_until(1_000);
    world.lose(&[1]);
    world.take([0]);
    // Something that is no lock is in its place.
    world.nodes[2].put_other_type(KEY.as_bytes(), None);
    assert_eq!(reason(&world.verify(&grant).1), "taken_over");
}

#[test]
fn its_time_is_that_of_the_quorum_that_holds_it_the_longest() {
    let (mut world, grant) = held_until(1_000);
    world.leave(&[0, 1], &grant, 100);
    world.manners = vec![Answers(1), Answers(1), Answers(1), Answers(30), Answers(40)];
    let (took, ours_until) = world.verify(&grant);
    assert_eq!((took, ours_until.unwrap()), (80, SERVERS.minus(40)));
    let (mut world, grant) = held_until(1_000);
    world.leave(&[0, 1, 2], &grant, 700);
    let ours_until = world.verify(&grant).1.unwrap();
    assert_eq!(ours_until, Instant::from_millis(1_700));
}

#[test]
fn those_that_may_hold_it_longer_are_waited_for_no_longer_than_a_node_is() {
    for silent in [Hung, Down] {
        let (mut world, grant) = held_until(1_000);
        world.leave(&[0, 1], &grant, 700);
        world.manners = vec![Answers(1), Answers(1), Answers(1), silent, silent];
        let (took, ours_until) = world.verify(&grant);
        assert_eq!(ours_until.unwrap(), Instant::from_millis(1_699));
        assert_eq!(took, NODE_TIMEOUT, "{silent:?}");
    }
}

#[test]
fn where_no_quorum_answers_the_nodes_are_counted() {
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Answers(1), Hung, Hung, Hung, Answers(1)];
    let (took, verified) = world.verify(&grant);
    assert_eq!((took, code(&verified)), (2_000, "timeout"));
    assert!(said(&verified).contains("held on 2, unreachable 3 of 5 nodes"));
    let (mut world, grant) = held_until(1_000);
    world.manners = vec![Down; 5];
    assert_eq!(code(&world.verify(&grant).1), "unavailable");
}

#[test]
fn it_changes_hands_by_a_quorum() {
    for (away, is_taken_over) in [(2, true), (3, false)] {
        let (mut world, grant) = held_until(1_000);
        let fence = grant.fence;
        let (settings, keeping) = (world.settings.clone(), Keeping::default());
        let seed = Seed::new([3; 16]);
        let mut giver = Renewal::new(lock(TTL), grant, keeping, &settings, seed, world.now);
        let text = giver.transfer(world.now).unwrap().text();
        for node in 0..away {
            world.manners[node] = Hung;
        }
        let transferred = Transferred::read(&text).unwrap();
        let adopted = transferred.adopt(lock(TTL), &settings, seed, world.now);
        let adopted = world.run_one(adopted).output;
        if is_taken_over {
            let mut lease = Lease::new(lock(TTL), adopted.unwrap());
            assert_eq!(lease.fence(), fence);
            assert!(lease.remaining(world.now) > 9_000);
        } else {
            assert_eq!(code(&adopted), "outcome_unknown");
            assert!(said(&adopted).contains("extended on 2, unreachable 3 of 5 nodes"));
        }
    }
    let (mut world, grant) = held_until(1_000);
    let mut lease = Lease::new(lock(TTL), grant.clone());
    world.lose(&[0, 1, 2]);
    let started = lease.verify(&world.settings, Seed::new([4; 16]), world.now);
    let result = world.run_one(started.unwrap()).output;
    let margin = tallylock_core::time::Wait::NONE;
    let verified = lease.verified(result, world.now, margin);
    assert_eq!(reason(&verified), "expired");
    assert!(
        lease.lost(world.now).is_some(),
        "and it is known from now on"
    );
}
