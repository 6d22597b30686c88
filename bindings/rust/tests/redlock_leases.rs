//! Leases over several servers: they renew themselves, and a quorum decides whether they are lost.

mod fleet;
mod in_time;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use fleet::{assert_free, five, held_on, on_each, until, urls};
use in_time::Timer;
use redis::Commands as _;
use tallylock::{Code, Error, Lease, Reason, Redlock, RedlockOptions, blocking};
use tallylock_testkit::Server;

/// Short enough to be outlived in a test, long enough for a busy machine.
const TTL: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(60);
/// How late a busy machine may tell what it knew in time.
const LATE: Duration = Duration::from_secs(2);

const EXPIRED: Code = Code::Lost(Reason::Expired);
const TAKEN: Code = Code::Lost(Reason::TakenOver);
const UNREACHABLE: Code = Code::Lost(Reason::Unreachable);

fn acquire(servers: &[Server], ttl: Duration) -> blocking::Lease {
    // So that a call that waits for the servers stands out, and one on a busy machine is not given up.
    let patient = RedlockOptions::new(urls(servers)).unwrap().timeout(LONG);
    let redlock = blocking::Redlock::connect_with(patient.unwrap()).unwrap();
    let lock = redlock.lock("l", ttl).unwrap();
    let lease = lock.acquire(LONG / 2).unwrap();
    // The quorum was enough for us; the others have it soon.
    until(
        || held_on(servers) == servers.len(),
        || format!("{:?}", on_each(servers, "l")),
    );
    lease
}

#[test]
fn a_lease_outlives_its_ttl_while_one_server_dies_and_another_hangs() {
    let mut servers = five();
    let lease = acquire(&servers, TTL);
    drop(servers.pop());
    servers[1].pause();
    assert_eq!(lease.wait_until_lost(3 * TTL), None);
    lease.verify(Duration::ZERO).unwrap();
    lease.release().unwrap();
    servers[1].resume();
    assert_free(&servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_its_ttl_in_futures() {
    let mut servers = five();
    let redlock = Redlock::connect(urls(&servers)).await.unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let lease = lock.acquire(LONG / 2).await.unwrap();
    servers[0].restart();
    servers[1].pause();
    assert_eq!(lost_within(&lease, 3 * TTL).await, None);
    lease.release().await.unwrap();
    assert_eq!(lease.lost().await, None, "it was let go of");
    servers[1].resume();
    assert_free(&servers);
}

#[test]
fn a_silent_majority_is_told_at_the_deadline() {
    let servers = five();
    let lease = acquire(&servers, TTL);
    let (tell, told) = mpsc::channel();
    lease
        .on_lost(move |error| tell.send(error).unwrap())
        .unwrap();
    servers[..3].iter().for_each(Server::pause);
    let lost = told.recv_timeout(LONG).unwrap();
    let late = Instant::now();
    assert_eq!(lost.code(), UNREACHABLE);
    assert!(
        lost.to_string().contains("unreachable 3 of 5 nodes"),
        "{lost}"
    );
    assert_eq!(lease.remaining(), Duration::ZERO);
    assert_eq!(lease.release().unwrap_err().code(), UNREACHABLE);
    assert!(late.elapsed() < LONG / 2, "nobody is waited for");
    servers[..3].iter().for_each(Server::resume);
    assert_free(&servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_majority_is_told_at_the_deadline_in_futures() {
    let servers = five();
    let redlock = Redlock::connect(urls(&servers)).await.unwrap();
    let lock = redlock.lock("l", TTL).unwrap().without_renewal();
    let lease = lock.acquire(LONG / 2).await.unwrap();
    servers[..3].iter().for_each(Server::pause);
    let deadline = Timer::start(lease.remaining());
    assert_eq!(lease.lost().await.unwrap().code(), EXPIRED);
    assert!(deadline.lateness().unwrap() < LATE);
}

#[test]
fn a_majority_that_lost_it_is_told_at_the_next_renewal() {
    let mut servers = five();
    let lease = acquire(&servers, LONG / 4);
    let begun = Instant::now();
    servers[..3].iter_mut().for_each(Server::restart);
    let lost = lease.wait_until_lost(LONG).unwrap();
    assert_eq!(lost.code(), EXPIRED);
    assert!(lost.to_string().contains("gone from 3"), "{lost}");
    assert!(begun.elapsed() < LONG / 4, "before the deadline");
    assert_eq!(lease.release().unwrap_err().code(), EXPIRED);
    assert_free(&servers);
}

#[test]
fn another_owner_of_a_majority_is_told_at_the_next_renewal() {
    let servers = five();
    let lease = acquire(&servers, TTL);
    let set = |server: &Server| {
        let _: () = server.connection().set_ex("l", "another", 60).unwrap();
    };
    servers[..2].iter().for_each(set);
    assert_eq!(
        lease.wait_until_lost(2 * TTL),
        None,
        "a minority ends nothing"
    );
    set(&servers[2]);
    assert_eq!(lease.wait_until_lost(LONG).unwrap().code(), TAKEN);
    let release = lease.release().unwrap_err();
    assert_eq!(release.code(), TAKEN);
    let another = Some("another".to_owned());
    until(
        || on_each(&servers, "l")[3..] == [None, None],
        || "what was ours is removed".into(),
    );
    assert_eq!(
        on_each(&servers, "l")[..3],
        [another.clone(), another.clone(), another]
    );
}

#[test]
fn a_lease_changes_hands_while_a_minority_is_away() {
    let servers = five();
    let lease = acquire(&servers, LONG);
    let token = lease.transfer().unwrap();
    servers[..2].iter().for_each(Server::pause);
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lock = redlock.lock("l", LONG).unwrap();
    let adopted = lock.adopt(&token).unwrap();
    assert_eq!(adopted.fence(), lease.fence());
    adopted.verify(LONG / 2).unwrap();
    servers[..2].iter().for_each(Server::resume);
    adopted.release().unwrap();
    assert_free(&servers);
    let gone = lock.adopt(&token).unwrap_err();
    assert_eq!(gone.code(), EXPIRED);
}

#[test]
fn a_server_that_came_back_empty_has_it_again_if_that_was_asked_for() {
    for is_asked_for in [true, false] {
        let mut servers = five();
        let mut options = RedlockOptions::new(urls(&servers)).unwrap();
        if is_asked_for {
            options = options.rejoin();
        }
        let redlock = blocking::Redlock::connect_with(options).unwrap();
        let lock = redlock.lock("l", LONG).unwrap();
        let lease = lock.acquire(LONG / 2).unwrap();
        servers[3].restart();
        let extended = || {
            lease.extend(LONG).unwrap();
            held_on(&servers) == 5
        };
        if is_asked_for {
            // The connection to it has to be made anew first.
            until(extended, || format!("{:?}", on_each(&servers, "l")));
            let fence = on_each(&servers, "l{l}:tlu1:fence").remove(3).unwrap();
            assert!(fence.parse::<u64>().unwrap() >= lease.fence());
        } else {
            (0..3).for_each(|_| assert!(!extended()));
        }
        lease.release().unwrap();
        assert_free(&servers);
    }
}

#[test]
fn a_closed_client_renews_nothing_and_tells_the_end() {
    let servers = five();
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let lease = lock.acquire(LONG / 2).unwrap();
    redlock.close();
    assert_eq!(lease.wait_until_lost(LONG).unwrap().code(), EXPIRED);
    assert_eq!(lease.extend(TTL).unwrap_err().code(), EXPIRED);
    let closed = lock.acquire(Duration::ZERO).unwrap_err();
    assert_eq!(closed.code(), Code::Closed);
}

async fn lost_within(lease: &Lease, longest: Duration) -> Option<Error> {
    let lost = tokio::time::timeout(longest, lease.lost()).await;
    lost.unwrap_or(None)
}
