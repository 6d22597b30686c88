//! Taking a lock over several nodes: silence, failures, contention, and what is left behind.

mod nodes;

use nodes::{KEY, Manner, NODE_TIMEOUT, World, code, said};
use tallylock_core::time::Instant;

use Manner::{Answers, Down, Hung, LosesReplies};

/// What is left of the TTL after the drift.
const VALID: u64 = 9_898;

#[test]
fn a_quorum_grants_and_the_time_counts_from_the_first_request() {
    let mut world = World::new([Answers(1); 5]);
    let ended = world.acquire(0, 1);
    let grant = ended.output.unwrap();
    assert_eq!(
        ended.at, 4,
        "one round trip for the votes, one for the fence"
    );
    assert_eq!(grant.valid_until, Instant::from_millis(VALID));
    // Also where the answer came after the quorum, from nodes that did not know the scripts.
    world.settle(0);
    let token = String::from_utf8(grant.token.as_bytes().to_vec()).unwrap();
    assert_eq!(world.texts(KEY), vec![Some(token); 5]);
}

#[test]
fn neither_hung_nor_slow_nor_dead_nodes_delay_what_a_quorum_decides() {
    for manners in [
        [Answers(1), Hung, Answers(1), Hung, Answers(2)],
        [Answers(1), Down, Answers(2), Down, Answers(1)],
        [Answers(1), Answers(2), Answers(1), Hung, Answers(300)],
        [LosesReplies, Answers(1), Answers(1), Hung, Answers(2)],
    ] {
        let mut world = World::new(manners);
        let ended = world.acquire(0, 1);
        let grant = ended.output.unwrap();
        assert_eq!(ended.at, 8, "{manners:?}");
        assert_eq!(grant.valid_until, Instant::from_millis(VALID));
        assert!(world.held() >= 3);
    }
}

#[test]
fn without_a_quorum_that_answers_nothing_is_granted_and_nothing_is_left() {
    for (others, wanted, words) in [
        (
            Down,
            "unavailable",
            "granted by 2, unreachable 3 of 5 nodes",
        ),
        (Hung, "timeout", "granted by 2, unreachable 3 of 5 nodes"),
        (
            LosesReplies,
            "unavailable",
            "granted by 2, unreachable 3 of 5 nodes",
        ),
    ] {
        let mut world = World::new([Answers(1), others, others, Answers(1), others]);
        let ended = world.acquire(0, 1);
        assert_eq!(code(&ended.output), wanted);
        assert!(
            said(&ended.output).contains(words),
            "{}",
            said(&ended.output)
        );
        assert_eq!(ended.at, 2_000, "as long as a call may take");
        world.settle(0);
        assert_eq!(world.held(), 0, "{others:?}");
    }
}

#[test]
fn what_most_nodes_refuse_is_refused_at_once() {
    let mut world = World::new([Answers(1), Hung, Answers(1), Answers(1), Answers(1)]);
    for node in [0, 2, 4] {
        world.nodes[node].put_other_type(KEY.as_bytes(), None);
    }
    let ended = world.acquire(10_000, 1);
    assert_eq!(code(&ended.output), "wrong_type");
    assert!(said(&ended.output).contains("refused by 3 of 5 nodes"));
    assert_eq!(ended.at, 2);
    world.settle(0);
    assert_eq!(world.held(), 0, "keys of another type have no text");
}

#[test]
fn what_a_minority_refuses_is_not_in_the_way() {
    let mut world = World::new([Answers(1); 5]);
    for node in [0, 4] {
        world.nodes[node].put_other_type(KEY.as_bytes(), None);
    }
    world.acquire(0, 1).output.unwrap();
}

#[test]
fn a_lock_that_others_hold_is_busy_with_the_nodes_counted() {
    let mut world = World::new([Answers(1), Answers(1), Answers(1), Down, Answers(1)]);
    world.take([0, 1]);
    let ended = world.acquire(0, 1);
    assert_eq!(code(&ended.output), "busy");
    let words = "granted by 2, held by another on 2, unreachable 1 of 5 nodes";
    assert!(
        said(&ended.output).contains(words),
        "{}",
        said(&ended.output)
    );
    assert_eq!(
        ended.at, NODE_TIMEOUT,
        "the node that is away might have granted it"
    );
    world.settle(0);
    assert_eq!(world.held(), 2, "those of the other");
}

#[test]
fn a_lock_that_a_quorum_holds_is_busy_whatever_the_others_say() {
    let mut world = World::new([Answers(1), Answers(1), Answers(1), Hung, Hung]);
    world.take([0, 1, 2]);
    let ended = world.acquire(0, 1);
    assert_eq!((code(&ended.output), ended.at), ("busy", 2));
    world.settle(0);
    assert_eq!(world.held(), 3);
}

#[test]
fn a_wait_is_over_on_time_however_slow_the_nodes_are() {
    for manners in [
        [Answers(1), Answers(1), Answers(1), Hung, Hung],
        [Answers(1), Answers(1), Answers(40), Hung, Hung],
        [Hung, Hung, Hung, Answers(1), Hung],
        [Hung; 5],
        [Answers(200); 5],
    ] {
        for wait in [100, 777, 3_000] {
            let mut world = World::new(manners);
            world.take([0, 1, 2]);
            let ended = world.acquire(wait, 1);
            assert!(ended.output.is_err());
            assert_eq!(ended.at, u64::from(wait), "{manners:?}");
            world.settle(0);
            assert_eq!(world.held(), 3, "{manners:?}");
        }
    }
}

#[test]
fn a_wait_that_ends_while_answers_are_on_their_way_is_busy() {
    for wait in 500..800 {
        let mut world = World::new([Answers(20), Answers(20), Answers(20), Down, Answers(20)]);
        world.take([0, 1, 2]);
        let ended = world.acquire(wait, 1);
        assert_eq!((code(&ended.output), ended.at), ("busy", u64::from(wait)));
    }
}

#[test]
fn the_time_counts_from_the_first_request_where_a_node_was_asked_again() {
    let mut world = World::new([LosesReplies, Answers(1), Answers(1), Hung, Hung]);
    world.at(5, |world| world.manners[0] = Answers(1));
    let ended = world.acquire(0, 1);
    assert!(ended.at > 8, "{}", ended.at);
    assert_eq!(
        ended.output.unwrap().valid_until,
        Instant::from_millis(VALID)
    );
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_has_released_it() {
    let mut world = World::new([Answers(1), Answers(1), Answers(1), Hung, Answers(1)]);
    world.take([0, 1, 2]);
    world.at(1_000, |world| {
        for node in [0, 1, 2] {
            world.nodes[node].remove(KEY.as_bytes());
        }
    });
    let ended = world.acquire(5_000, 1);
    ended.output.unwrap();
    assert!((1_000..1_300).contains(&ended.at), "{}", ended.at);
}

#[test]
fn a_grant_that_arrives_after_the_undo_was_sent_is_undone() {
    // Two nodes are so far away that the attempt is over before the first request is there.
    let mut world = World::new([
        Answers(900),
        Answers(900),
        Answers(1),
        Answers(1),
        Answers(900),
    ]);
    let ended = world.acquire(400, 1);
    assert_eq!((code(&ended.output), ended.at), ("timeout", 400));
    world.settle(5_000);
    assert_eq!(world.held(), 0);
}

#[test]
fn of_two_that_split_the_votes_one_gets_it_and_then_the_other() {
    for callers in [[1, 2], [3, 4], [5, 6]] {
        let mut world = World::new([Answers(1), Answers(9), Answers(5), Hung, Answers(7)]);
        // Each has two of the four that answer.
        let first = callers.map(|seed| (5_000, seed));
        let ended = world.acquire_at_once(&first);
        let granted: Vec<_> = ended.iter().filter(|one| one.output.is_ok()).collect();
        assert_eq!(granted.len(), 1, "nobody released it");
        assert!(granted[0].at < 1_500, "{}", granted[0].at);
        let refused = ended.iter().find(|one| one.output.is_err()).unwrap();
        assert_eq!((code(&refused.output), refused.at), ("busy", 5_000));
    }
}

#[test]
fn votes_that_are_split_for_good_are_busy_and_leave_nothing() {
    let mut world = World::new([Answers(1); 3]);
    world.take([0]);
    world.manners[1] = Down;
    let ended = world.acquire(0, 1);
    assert_eq!(code(&ended.output), "busy");
    world.settle(0);
    assert_eq!(world.texts(KEY), [Some("another's".to_owned()), None, None]);
}

#[test]
fn a_caller_who_stops_at_any_moment_leaves_nothing() {
    let manners = [Answers(3), Answers(5), LosesReplies, Hung, Answers(12)];
    for stop_at in 0..60 {
        let mut world = World::new(manners);
        // What is in the way makes attempts, undos and pauses follow each other.
        world.take([1, 4]);
        world.at(30, |world| world.nodes[4].remove(KEY.as_bytes()));
        world.stop_at(stop_at, 0);
        let ended = world.acquire(5_000, 1);
        let granted = ended.output.is_ok();
        world.settle(100);
        let ours = world
            .texts(KEY)
            .iter()
            .flatten()
            .filter(|text| *text != "another's")
            .count();
        if granted {
            assert!(ended.at <= stop_at && ours >= 3);
        } else {
            assert_eq!((code(&ended.output), ended.at), ("cancelled", stop_at));
            assert_eq!(ours, 0, "stopped at {stop_at}");
        }
    }
}

#[test]
fn a_time_that_is_used_up_by_the_votes_and_the_fence_is_no_lease() {
    // A round trip is 6,000 ms: of the 9,898 ms something is left after the votes, and nothing after the fence.
    let mut world = World::new([Answers(3_000); 3]);
    world.settings.node_timeout = Some(nodes::ttl(8_000));
    let ended = world.acquire(30_000, 1);
    assert_eq!((code(&ended.output), ended.at), ("timeout", 30_000));
    world.settle(20_000);
    assert_eq!(world.held(), 0);
    let mut world = World::new([Answers(2_000); 3]);
    world.settings.node_timeout = Some(nodes::ttl(8_000));
    let ended = world.acquire(30_000, 1);
    let valid_until = ended.output.unwrap().valid_until;
    assert_eq!(
        (ended.at, valid_until),
        (8_000, Instant::from_millis(VALID))
    );
}
