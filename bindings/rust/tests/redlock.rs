//! Locks over five real servers of two kinds, of which some hang, are slow, away, or forbid scripts.

mod fleet;

use std::time::{Duration, Instant};

use fleet::{PROMPT, assert_free, five, held_on, on_each, promptly, proxies, until, urls, urls_of};
use redis::Commands as _;
use tallylock::{Client, Code, Error, Redlock, RedlockOptions, blocking};
use tallylock_testkit::{Kind, Proxy, Server};

const TTL: Duration = Duration::from_secs(60);
/// What is waited for a node that the others can do without, with this TTL.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);
const WAIT: Duration = Duration::from_secs(5);

#[test]
fn two_hung_and_a_slow_server_delay_nothing_but_the_release() {
    let servers = five();
    let slow = Proxy::before(servers[2].address().parse().unwrap()).unwrap();
    let mut urls = urls(&servers);
    urls[2] = slow.url();
    // Nothing is given up: what the hung ones are sent is in the order in which it was meant.
    let options = RedlockOptions::new(&urls).unwrap().timeout(TTL).unwrap();
    let redlock = blocking::Redlock::connect_with(options).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    lock.acquire(Duration::ZERO).unwrap().release().unwrap();
    servers[1].pause();
    servers[3].pause();
    slow.delay(Duration::from_millis(20));
    let mut releases = Vec::new();
    for _ in 0..3 {
        let acquire = || lock.acquire(Duration::from_secs(5)).unwrap();
        let lease = promptly(PROMPT, acquire, |late| late.release().unwrap());
        promptly(PROMPT, || lease.extend(TTL).unwrap(), drop);
        promptly(PROMPT, || lease.verify(TTL / 2).unwrap(), drop);
        assert!(lease.remaining() > TTL * 9 / 10);
        let begun = Instant::now();
        lease.release().unwrap();
        releases.push(begun.elapsed());
    }
    let fastest = releases.iter().min().unwrap();
    assert!(*fastest < NODE_TIMEOUT + PROMPT, "{releases:?}");
    servers[1].resume();
    servers[3].resume();
    assert_free(&servers);
}

#[test]
fn three_hung_servers_are_told_with_their_number_and_leave_nothing() {
    let servers = five();
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let lease = lock.acquire(Duration::ZERO).unwrap();
    let three = &servers[..3];
    three.iter().for_each(Server::pause);
    let extended = lease.extend(TTL).unwrap_err();
    assert_eq!(extended.code(), Code::OutcomeUnknown);
    assert!(
        extended
            .to_string()
            .contains("extended on 2, unreachable 3 of 5 nodes"),
        "{extended}"
    );
    let released = lease.release().unwrap_err();
    assert!(
        released.to_string().contains("unreachable 3 of 5 nodes"),
        "{released}"
    );
    let wait = Duration::from_secs(1);
    let refused = promptly(wait + PROMPT, || lock.acquire(wait).unwrap_err(), drop);
    assert!(
        refused.to_string().contains("unreachable 3 of 5 nodes"),
        "{refused}"
    );
    three.iter().for_each(Server::resume);
    // What the hung ones could not be told the holder says again.
    lease.release().unwrap();
    assert_free(&servers);
    lock.acquire(Duration::from_secs(5))
        .unwrap()
        .release()
        .unwrap();
}

#[test]
fn a_minority_that_is_away_when_the_client_connects_is_used_once_it_is_there() {
    let mut servers = five();
    let urls = urls(&servers);
    servers[4].pause();
    let connect = || blocking::Redlock::connect(&urls).unwrap();
    let redlock = promptly(Duration::from_secs(1), connect, drop);
    servers[4].resume();
    servers[0].restart();
    let lock = redlock.lock("l", TTL).unwrap();
    let lease = lock.acquire(Duration::from_secs(5)).unwrap();
    assert!(held_on(&servers) >= 3);
    lease.release().unwrap();
    assert_free(&servers);
    servers[..3].iter().for_each(Server::pause);
    let options = RedlockOptions::new(&urls)
        .unwrap()
        .timeout(NODE_TIMEOUT)
        .unwrap();
    let error = blocking::Redlock::connect_with(options).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(
        error.to_string().contains("unreachable 3 of 5 nodes"),
        "{error}"
    );
}

#[test]
fn servers_that_forbid_scripts_vote_beside_those_that_do_not() {
    let without = [
        "--rename-command",
        "EVALSHA",
        "",
        "--rename-command",
        "EVAL",
        "",
    ];
    for without_scripts in [1, 2, 3] {
        let servers: Vec<_> = (0..3)
            .map(|place| {
                Kind::Valkey.start(if place < without_scripts {
                    &without
                } else {
                    &[]
                })
            })
            .collect();
        let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
        let lock = redlock.lock("l", TTL).unwrap();
        let mut last = 0;
        for _ in 0..3 {
            let lease = lock.acquire(Duration::from_secs(5)).unwrap();
            assert!(lease.fence() > last);
            last = lease.fence();
            lease.extend(TTL).unwrap();
            let fences = on_each(&servers, "l{l}:tlu1:fence");
            let raised = fences
                .iter()
                .flatten()
                .filter(|fence| fence.parse::<u64>().unwrap() >= last);
            assert!(raised.count() >= 2, "{fences:?} for {last}");
            lease.release().unwrap();
            assert_free(&servers);
        }
    }
}

#[test]
fn one_holder_at_a_time_while_the_votes_are_split() {
    let servers = five();
    servers[1].pause();
    let counted = blocking::Client::connect(&servers[0].url()).unwrap();
    let inside = counted.counter("inside", TTL).unwrap();
    let urls = urls(&servers);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let redlock = blocking::Redlock::connect(&urls).unwrap();
                let lock = redlock.lock("l", TTL).unwrap();
                for _ in 0..2 {
                    let done: Result<i64, Error> = lock.with_lock(Duration::from_secs(60), |_| {
                        assert_eq!(inside.add(1)?, 1, "nobody else is inside");
                        inside.add(-1)
                    });
                    assert_eq!(done.unwrap(), 0);
                }
            });
        }
    });
    // What the hung one may execute yet, of acquires whose release it was never sent, is nobody's concern.
    assert_free(&servers[..1]);
    assert_free(&servers[2..]);
    servers[1].resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_acquire_leaves_nothing_on_any_server() {
    let servers = five();
    let redlock = Redlock::connect(urls(&servers)).await.unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    for micros in (0..2_000).step_by(100) {
        let acquiring = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire(Duration::ZERO).await }
        });
        tokio::time::sleep(Duration::from_micros(micros)).await;
        acquiring.abort();
        if let Ok(lease) = acquiring.await {
            lease.unwrap().release().await.unwrap();
        }
        let free = lock.acquire(Duration::from_secs(10)).await;
        free.expect("the dropped acquire to be undone")
            .release()
            .await
            .unwrap();
    }
    assert_free(&servers);
}

#[test]
fn replies_that_a_majority_loses_are_asked_for_again() {
    let servers = five();
    let proxies = proxies(&servers);
    let redlock = blocking::Redlock::connect(urls_of(&proxies)).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    lock.acquire(Duration::ZERO).unwrap().release().unwrap();
    let arm = || {
        for proxy in &proxies[..3] {
            proxy.lose_matching("EVAL");
        }
    };
    let were_lost = |each: u64| {
        for proxy in &proxies[..3] {
            proxy.await_lost(each).unwrap();
        }
    };
    arm();
    let lease = lock.acquire(Duration::from_secs(5)).unwrap();
    were_lost(1);
    until(|| held_on(&servers) == 5, || "it is on each".into());
    arm();
    lease.extend(2 * TTL).unwrap();
    were_lost(2);
    assert!(lease.remaining() > TTL + TTL / 2);
    arm();
    lease.release().unwrap();
    were_lost(3);
    assert_free(&servers);
}

#[test]
fn a_minority_that_another_holds_keeps_nobody_out() {
    let servers = five();
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let set = |server: &Server| {
        let _: () = server.connection().set_ex("l", "another", 60).unwrap();
    };
    servers[..2].iter().for_each(set);
    let lease = lock.acquire(Duration::ZERO).unwrap();
    lease.extend(TTL).unwrap();
    lease.verify(TTL / 2).unwrap();
    set(&servers[2]);
    let lost = lease.verify(Duration::ZERO).unwrap_err();
    assert_eq!(lost.code().reason().unwrap().as_str(), "taken_over");
    assert!(
        lost.to_string().contains("held by another on 3 of 5 nodes"),
        "{lost}"
    );
    let busy = lock.acquire(Duration::ZERO).unwrap_err();
    assert!(busy.to_string().contains("held by another on 3"), "{busy}");
    assert_eq!(busy.code(), Code::Busy);
    assert_eq!(lease.release().unwrap_err().code(), lost.code());
    let ours = |text: &Option<String>| text.as_deref().is_some_and(|text| text != "another");
    until(
        || !on_each(&servers, "l").iter().any(ours),
        || format!("{:?}", on_each(&servers, "l")),
    );
}

#[test]
fn what_is_about_one_server_is_refused() {
    let redlock = blocking::Redlock::connect(["memory://", "memory://", "memory://"]).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    assert_eq!(lock.inspect().unwrap_err().code(), Code::Unsupported);
    let stolen = lock.steal("token", "it hangs");
    assert_eq!(stolen.unwrap_err().code(), Code::Unsupported);
}

#[tokio::test]
async fn servers_in_memory_are_each_looked_at_by_their_names() {
    let redlock = Redlock::connect(["memory://m1", "memory://m2", "memory://m3"])
        .await
        .unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let lease = lock.acquire(Duration::ZERO).await.unwrap();
    let one = Client::connect("memory://m2").await.unwrap();
    let held = one
        .lock("l", TTL)
        .unwrap()
        .acquire(Duration::ZERO)
        .await
        .unwrap_err();
    assert_eq!(held.code(), Code::Busy);
    let same = lock.acquire(Duration::ZERO).await.unwrap_err();
    assert_eq!(same.code(), Code::AlreadyHeld);
    let other = lock.clone();
    let busy = other.acquire(WAIT).await.unwrap_err();
    assert!(
        busy.to_string().contains("held by another on 2 of 3 nodes"),
        "{busy}"
    );
    // The wait has taken five seconds on each of the clocks.
    let left = lease.remaining();
    assert!(
        left + WAIT < TTL && left + WAIT + Duration::from_secs(2) > TTL,
        "{left:?}"
    );
    for memory in redlock.memories() {
        let lock = memory
            .keys()
            .into_iter()
            .find(|key| key.key == b"l")
            .unwrap();
        assert_eq!(lock.ttl.unwrap() + WAIT, TTL);
        memory.advance(TTL);
    }
    assert_eq!(lease.extend(TTL).await.unwrap_err().code().as_str(), "lost");
    lock.acquire(Duration::ZERO).await.unwrap();
    redlock.close();
    assert_eq!(
        lock.acquire(Duration::ZERO).await.unwrap_err().code(),
        Code::Closed
    );
}

#[tokio::test]
async fn the_blocking_face_works_inside_of_a_runtime_too() {
    let redlock = blocking::Redlock::connect(["memory://", "memory://", "memory://"]).unwrap();
    let lock = redlock.lock("l", TTL).unwrap();
    let inside = lock.with_lock(Duration::ZERO, |lease| {
        lease.ensure(Duration::from_secs(1))?;
        assert!(lease.is_valid());
        Ok::<_, Error>(lock.clone().acquire(Duration::ZERO).unwrap_err().code())
    });
    assert_eq!(inside.unwrap(), Code::Busy);
    let left = redlock.memories()[2].keys();
    assert!(left.iter().all(|key| key.key != b"l"));
    redlock.close();
    assert_eq!(
        lock.acquire(Duration::ZERO).unwrap_err().code(),
        Code::Closed
    );
}
