//! Fences over several nodes, whose clocks agree on nothing: what is granted later has the larger one.

mod nodes;

use nodes::{FENCE, KEY, Manner, World, code, lock, said};
use tallylock_core::lock::{Grant, Release};
use tallylock_core::token::Seed;

use Manner::{Answers, Down, Hung};

/// How far the nodes' clocks are apart in [`World::with_clocks`], in milliseconds.
const HOUR: u64 = 3_600_000;

impl World {
    /// Nodes whose clocks are so many hours ahead.
    fn with_clocks<const N: usize>(hours: [u64; N]) -> Self {
        let mut world = Self::new([Answers(1); N]);
        for (node, hours) in world.nodes.iter_mut().zip(hours) {
            node.advance(hours * HOUR);
        }
        world
    }

    /// Takes the lock while these nodes are away, and releases it; gives the fence.
    fn fence_without(&mut self, away: &[usize], seed: u8) -> u64 {
        let all: Vec<_> = self.manners.clone();
        for node in away {
            self.manners[*node] = Down;
        }
        let grant = self.acquire(0, seed).output.unwrap();
        self.release(&grant).unwrap();
        self.manners = all;
        grant.fence
    }

    fn release(&mut self, grant: &Grant) -> Result<(), tallylock_core::error::Error> {
        let (token, until) = (&grant.token, grant.valid_until);
        let seed = Seed::new([9; 16]);
        let started = Release::start(
            lock(nodes::TTL),
            token,
            until,
            &self.settings,
            seed,
            self.now,
        );
        self.run_one(started).output
    }

    fn fences(&self) -> Vec<u64> {
        let texts = self.texts(FENCE).into_iter();
        texts
            .map(|text| text.map_or(0, |text| text.parse().unwrap()))
            .collect()
    }
}

#[test]
fn the_highest_fence_of_the_voters_is_granted_and_written_back_to_a_quorum() {
    let mut world = World::with_clocks([3, 1, 4, 1, 5]);
    world.manners[3] = Hung;
    let grant = world.acquire(0, 1).output.unwrap();
    let back = world
        .fences()
        .iter()
        .filter(|fence| **fence >= grant.fence)
        .count();
    assert!(back >= 3, "{:?} for {}", world.fences(), grant.fence);
}

#[test]
fn a_later_grant_has_the_larger_fence_whichever_quorum_gives_it() {
    let pairs = [
        [0, 1],
        [0, 2],
        [0, 3],
        [0, 4],
        [1, 2],
        [1, 3],
        [1, 4],
        [2, 3],
        [2, 4],
        [3, 4],
    ];
    for first in pairs {
        for then in pairs {
            let mut world = World::with_clocks([0, 7, 0, 3, 1]);
            let mut last = 0;
            for (seed, away) in [(1, first), (2, then), (3, first)] {
                let fence = world.fence_without(&away, seed);
                assert!(
                    fence > last,
                    "{fence} after {last}, without {first:?}, then {then:?}"
                );
                last = fence;
            }
        }
    }
}

#[test]
fn a_minority_that_lost_its_fences_does_not_lower_what_is_granted() {
    for lost in [[0, 1], [1, 2], [2, 4], [3, 4]] {
        let mut world = World::with_clocks([0, 7, 2, 3, 1]);
        let first = world.fence_without(&[], 1);
        for node in lost {
            world.nodes[node].remove(FENCE.as_bytes());
        }
        let then = world.fence_without(&[], 2);
        assert!(then > first, "{then} after {first}, lost by {lost:?}");
    }
}

#[test]
fn a_node_that_outbids_the_quorum_raises_the_fence() {
    // The votes of 0 and 1 are a quorum; then 1 is away, and 2, whose clock is far ahead, is needed.
    let mut world = World::with_clocks([0, 1, 9]);
    world.manners[2] = Answers(3);
    world.at(2, |world| world.manners[1] = Down);
    let ended = world.acquire(0, 1);
    let grant = ended.output.unwrap();
    world.settle(0);
    assert!(
        grant.fence >= 1_700_000_000_000_000 + 9 * HOUR * 1000,
        "{}",
        grant.fence
    );
    assert!(
        world
            .fences()
            .iter()
            .filter(|fence| **fence >= grant.fence)
            .count()
            >= 2
    );
    assert!(ended.at < nodes::NODE_TIMEOUT + 20, "{}", ended.at);
}

#[test]
fn a_lock_that_is_lost_before_its_fence_is_written_back_is_not_granted() {
    let mut world = World::new([Answers(1); 3]);
    // The votes have been sent back; the write-back finds two nodes that have restarted.
    world.at(2, |world| {
        for node in [0, 2] {
            world.nodes[node].remove(KEY.as_bytes());
        }
        world.nodes[0].put(KEY.as_bytes(), b"another's", None);
        world.nodes[2].put(KEY.as_bytes(), b"another's", None);
    });
    let ended = world.acquire(100, 1);
    assert_eq!((code(&ended.output), ended.at), ("busy", 100));
    assert!(said(&ended.output).contains("held by another on 2"));
    world.settle(0);
    assert_eq!(world.texts(KEY)[1], None);
}

#[test]
fn a_fence_that_is_no_number_is_that_nodes_refusal_alone() {
    let mut world = World::new([Answers(1); 3]);
    world.nodes[1].put(FENCE.as_bytes(), b"hello", None);
    let grant = world.acquire(0, 1).output.unwrap();
    world.release(&grant).unwrap();
    world.nodes[2].put(FENCE.as_bytes(), b"9223372036854775807", None);
    let ended = world.acquire(0, 2);
    let refused = said(&ended.output);
    assert!(
        refused.contains("granted by 1, refused by 2 of 3 nodes"),
        "{refused}"
    );
    world.settle(0);
    assert_eq!(world.held(), 0);
}
