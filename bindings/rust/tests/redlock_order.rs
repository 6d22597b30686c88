//! A server that hangs while it is connected to is sent what was asked of it in that order, once it goes on.

mod fleet;

use std::time::Duration;

use fleet::{held_on, on_each, until, urls};
use redis::Commands as _;
use tallylock::{Code, Lease, Redlock, RedlockOptions, blocking};
use tallylock_testkit::{Kind, Server};

const TTL: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(20);
const KEYS: [&str; 3] = ["a", "b", "c"];

#[test]
fn a_release_stays_behind_its_acquire() {
    let servers = three();
    for round in 0..10 {
        servers[0].pause();
        let redlock = blocking::Redlock::connect_with(options(&servers)).unwrap();
        for key in KEYS {
            let lease = redlock.lock(key, TTL).unwrap().acquire(WAIT).unwrap();
            while let Err(late) = lease.release() {
                assert_eq!(late.code(), Code::OutcomeUnknown, "{late}");
            }
        }
        servers[0].resume();
        let last = redlock.lock("l", TTL).unwrap().acquire(WAIT).unwrap();
        assert_nothing_else_is_left(&servers, round);
        while let Err(late) = last.release() {
            assert_eq!(late.code(), Code::OutcomeUnknown, "{late}");
        }
        until(|| held_on(&servers) == 0, || format!("round {round}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_and_an_undo_stay_behind_their_acquires_in_futures() {
    let servers = three();
    for round in 0..10 {
        servers[0].pause();
        let redlock = Redlock::connect_with(options(&servers)).await.unwrap();
        for key in KEYS {
            let lock = redlock.lock(key, TTL).unwrap();
            let dropped = tokio::spawn({
                let lock = lock.clone();
                async move { lock.acquire(WAIT).await }
            });
            tokio::time::sleep(Duration::from_micros(200 * round)).await;
            dropped.abort();
            if let Ok(lease) = dropped.await {
                release(lease.unwrap()).await;
            }
            release(lock.acquire(WAIT).await.unwrap()).await;
        }
        servers[0].resume();
        let last = redlock.lock("l", TTL).unwrap();
        let last = last.acquire(WAIT).await.unwrap();
        assert_nothing_else_is_left(&servers, round);
        release(last).await;
        until(|| held_on(&servers) == 0, || format!("round {round}"));
    }
}

/// Says it again where a busy machine has answered too late.
async fn release(lease: Lease) {
    while let Err(late) = lease.release().await {
        assert_eq!(late.code(), Code::OutcomeUnknown, "{late}");
    }
}

fn three() -> Vec<Server> {
    let kinds = [Kind::Valkey, Kind::Redis, Kind::Valkey];
    kinds.into_iter().map(|kind| kind.start(&[])).collect()
}

/// Nothing is given up that is asked of the hung server, for which a release waits only shortly.
fn options(servers: &[Server]) -> RedlockOptions {
    let options = RedlockOptions::new(urls(servers)).unwrap();
    let options = options.timeout(TTL).unwrap();
    options.node_timeout(Duration::from_millis(100)).unwrap()
}

/// What was asked last is there: so what was asked before it was executed.
fn assert_nothing_else_is_left(servers: &[Server], round: u64) {
    until(
        || held_on(servers) == servers.len(),
        || format!("round {round}: {:?}", on_each(servers, "l")),
    );
    let left: Vec<String> = servers[0].connection().keys("?").unwrap();
    assert_eq!(left, ["l"], "round {round}");
}
