//! Leases that renew themselves, on servers that fail, and how their holders learn that they are lost.

mod in_time;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use in_time::Timer;
use redis::Commands as _;
use tallylock::{Client, Code, Error, Lease, Options, Reason, blocking};
use tallylock_testkit::{Proxy, Server, on_each_server};

/// Short enough to be outlived in a test, long enough for a busy machine.
const TTL: Duration = Duration::from_millis(1_500);
const LONG: Duration = Duration::from_secs(60);
/// For leases that are not to be lost although connections are: on a machine with much else to do, making one takes long.
const CALM: Duration = Duration::from_secs(8);
/// How late a busy machine may tell what it knew in time.
const LATE: Duration = Duration::from_secs(2);

const EXPIRED: Code = Code::Lost(Reason::Expired);
const TAKEN: Code = Code::Lost(Reason::TakenOver);
const UNREACHABLE: Code = Code::Lost(Reason::Unreachable);

on_each_server! {
    fn a_lease_outlives_its_ttl_and_ends_with_its_release(server: Server) {
        let client = connect(&server.url());
        let lease = client.lock("l", CALM).unwrap().acquire(Duration::ZERO).unwrap();
        assert_eq!(lease.wait_until_lost(CALM * 3 / 2), None);
        lease.ensure(Duration::ZERO).unwrap();
        lease.verify(Duration::ZERO).unwrap();
        lease.release().unwrap();
        assert_free(&server);
        assert_eq!(lease.wait_until_lost(LONG), None, "it was let go of");
    }

    fn a_lease_outlives_its_ttl_in_futures(server: Server) {
        in_futures(&server.url(), async |client| {
            let lease = client.lock("l", CALM).unwrap().acquire(Duration::ZERO).await.unwrap();
            assert_eq!(lost_within(&lease, CALM * 3 / 2).await, None);
            lease.verify(Duration::ZERO).await.unwrap();
            lease.release().await.unwrap();
            assert_eq!(lease.lost().await, None, "it was let go of");
        });
        assert_free(&server);
    }

    fn a_silent_server_is_told_at_the_deadline(server: Server) {
        let proxy = proxy_before(&server);
        let client = connect(&proxy.url());
        let lease = client.lock("l", 2 * TTL).unwrap().acquire(Duration::ZERO).unwrap();
        let (tell, told) = mpsc::channel();
        lease.on_lost(move |error| tell.send(error).unwrap()).unwrap();
        proxy.hold();
        let deadline = Timer::start(lease.remaining());
        assert_eq!(told.recv_timeout(LONG).unwrap().code(), UNREACHABLE);
        assert!(deadline.lateness().unwrap() < LATE);
        assert_eq!(lease.ensure(Duration::ZERO).unwrap_err().code(), UNREACHABLE);
        let begun = Instant::now();
        assert_eq!(lease.release().unwrap_err().code(), UNREACHABLE);
        assert!(begun.elapsed() < LONG / 2, "nobody is waited for");
    }

    fn a_silent_server_is_told_at_the_deadline_in_futures(server: Server) {
        let proxy = proxy_before(&server);
        in_futures(&proxy.url(), async |client| {
            let lease = client.lock("l", 2 * TTL).unwrap().acquire(Duration::ZERO).await.unwrap();
            proxy.hold();
            let deadline = Timer::start(lease.remaining());
            assert_eq!(lease.lost().await.unwrap().code(), UNREACHABLE);
            assert!(deadline.lateness().unwrap() < LATE);
            let begun = Instant::now();
            assert_eq!(lease.release().await.unwrap_err().code(), UNREACHABLE);
            assert!(begun.elapsed() < LONG / 2, "nobody is waited for");
        });
    }

    fn a_key_that_a_lost_lease_left_is_removed_when_the_server_is_back(server: Server) {
        let proxy = proxy_before(&server);
        let client = connect(&proxy.url());
        let lease = client.lock("l", 2 * TTL).unwrap().acquire(Duration::ZERO).unwrap();
        let token: Vec<u8> = server.connection().get("l").unwrap();
        proxy.hold();
        assert_eq!(lease.wait_until_lost(LONG).unwrap().code(), UNREACHABLE);
        // Some of the held renewals were executed: it may be there for a TTL yet, and here for longer.
        let _: () = server.connection().set_ex("l", token, 60).unwrap();
        proxy.go();
        assert_eq!(lease.release().unwrap_err().code(), UNREACHABLE);
        client.lock("l", TTL).unwrap().acquire(LONG / 2).unwrap();
    }

    fn a_lost_reply_and_lost_connections_end_nothing(server: Server) {
        let proxy = proxy_before(&server);
        let client = connect(&proxy.url());
        let lease = client.lock("l", CALM).unwrap().acquire(Duration::ZERO).unwrap();
        for lost in 1..=2 {
            proxy.lose_matching("EVAL");
            proxy.await_lost(lost).unwrap();
        }
        proxy.cut();
        assert_eq!(lease.wait_until_lost(CALM * 3 / 2), None);
        lease.release().unwrap();
        assert_free(&server);
    }

    fn forgotten_scripts_and_killed_connections_end_nothing(server: Server) {
        let client = connect(&server.url());
        let futures = runtime();
        let other = futures.block_on(Client::connect_with(patient(&server.url()))).unwrap();
        let lease = client.lock("l", CALM).unwrap().acquire(Duration::ZERO).unwrap();
        let lock = other.lock("other", CALM).unwrap();
        let other = futures.block_on(lock.acquire(Duration::ZERO)).unwrap();
        let mut operator = server.connection();
        let end = Instant::now() + CALM * 3 / 2;
        while Instant::now() < end {
            let _: () = redis::cmd("SCRIPT").arg("FLUSH").query(&mut operator).unwrap();
            let _: i64 = redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal"]).query(&mut operator).unwrap();
            assert_eq!(lease.wait_until_lost(Duration::from_millis(500)), None);
            other.ensure(Duration::ZERO).unwrap();
        }
        futures.block_on(other.release()).unwrap();
        lease.release().unwrap();
        assert_free(&server);
    }

    fn another_owner_is_told_at_the_next_renewal(server: Server) {
        let client = connect(&server.url());
        let lock = client.lock("l", LONG).unwrap().renewed_every(TTL / 2).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        let _: () = server.connection().set_ex("l", "another", 60).unwrap();
        assert_eq!(lease.wait_until_lost(LONG / 2).unwrap().code(), TAKEN, "before the deadline");
        assert_eq!(lease.release().unwrap_err().code(), TAKEN);
        assert_eq!(server.connection().get::<_, String>("l").unwrap(), "another");
    }

    fn a_release_waits_for_the_renewal_under_way(server: Server) {
        let proxy = proxy_before(&server);
        let client = connect(&proxy.url());
        let lock = client.lock("l", LONG).unwrap().renewed_every(Duration::from_millis(50)).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        let (tell, told) = mpsc::channel();
        lease.on_lost(move |error| tell.send(error).unwrap()).unwrap();
        proxy.hold_matching("EVAL");
        proxy.await_held(1).unwrap();
        thread::scope(|scope| {
            let releasing = scope.spawn(|| lease.release());
            while lease.is_valid() {
                thread::yield_now();
            }
            assert_eq!(server.connection().exists("l"), Ok(true), "it has not been sent");
            proxy.go();
            releasing.join().unwrap().unwrap();
        });
        assert_free(&server);
        assert!(told.recv().is_err(), "the callback is forgotten, not called");
    }

    fn a_release_waits_for_the_renewal_under_way_in_futures(server: Server) {
        let proxy = proxy_before(&server);
        in_futures(&proxy.url(), async |client| {
            let lock = client.lock("l", LONG).unwrap().renewed_every(Duration::from_millis(50)).unwrap();
            let lease = lock.acquire(Duration::ZERO).await.unwrap();
            proxy.hold_matching("EVAL");
            let (lease, proxy) = (std::sync::Arc::new(lease), &proxy);
            tokio::task::block_in_place(|| proxy.await_held(1)).unwrap();
            let releasing = tokio::spawn({
                let lease = lease.clone();
                async move { lease.release().await }
            });
            while lease.is_valid() {
                tokio::task::yield_now().await;
            }
            assert_eq!(server.connection().exists("l"), Ok(true), "it has not been sent");
            proxy.go();
            releasing.await.unwrap().unwrap();
        });
        assert_free(&server);
    }

    /// As fast as they can be renewed, released at any moment.
    fn releases_race_with_renewals_without_a_loss_or_a_key(server: Server) {
        let client = connect(&server.url());
        let lock = client.lock("l", LONG).unwrap().renewed_every(Duration::from_millis(1)).unwrap();
        for round in 0..60 {
            let lease = lock.acquire(Duration::ZERO).unwrap();
            assert_eq!(lease.wait_until_lost(Duration::from_micros(round * 120)), None);
            lease.release().unwrap();
            assert_free(&server);
        }
        in_futures(&server.url(), async |client| {
            let lock = client.lock("l", LONG).unwrap().renewed_every(Duration::from_millis(1)).unwrap();
            for round in 0..60 {
                let lease = lock.acquire(Duration::ZERO).await.unwrap();
                assert_eq!(lost_within(&lease, Duration::from_micros(round * 120)).await, None);
                lease.release().await.unwrap();
                assert_free(&server);
            }
        });
    }

    fn who_hangs_loses_it(server: Server) {
        let client = connect(&server.url());
        // It is renewed once at the beginning: no answer is still to come at the end.
        let lock = client.lock("l", TTL).unwrap().renewed_every(TTL / 6).unwrap().held_at_most(TTL / 4).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        let deadline = Timer::start(TTL);
        assert_eq!(lease.wait_until_lost(LONG).unwrap().code(), EXPIRED);
        assert!(deadline.lateness().unwrap() < TTL + LATE);
        client.lock("l", TTL).unwrap().acquire(LONG / 2).unwrap();
    }

    fn what_is_forgotten_is_not_renewed(server: Server) {
        let client = connect(&server.url());
        drop(client.lock("l", TTL).unwrap().acquire(Duration::ZERO).unwrap());
        client.lock("l", LONG).unwrap().acquire(LONG / 2).unwrap();
        in_futures(&server.url(), async |client| {
            drop(client.lock("m", TTL).unwrap().acquire(Duration::ZERO).await.unwrap());
            client.lock("m", LONG).unwrap().acquire(LONG / 2).await.unwrap();
        });
    }

    fn a_closed_client_renews_nothing_and_tells_the_end(server: Server) {
        let client = connect(&server.url());
        let lock = client.lock("l", TTL).unwrap().renewed_every(TTL / 100).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        assert_eq!(lease.wait_until_lost(TTL / 10), None);
        client.close();
        assert_eq!(lease.wait_until_lost(LONG).unwrap().code(), EXPIRED);
        assert_eq!(connections(&server), 1, "what renewed has closed its own");
        in_futures(&server.url(), async |client| {
            let lease = client.lock("m", TTL).unwrap().acquire(Duration::ZERO).await.unwrap();
            client.close();
            assert_eq!(lease.lost().await.unwrap().code(), EXPIRED);
        });
    }

    fn without_renewal_the_end_is_told_and_nothing_sent(server: Server) {
        let proxy = proxy_before(&server);
        let client = connect(&proxy.url());
        let lock = client.lock("l", TTL).unwrap().without_renewal();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        let (tell, told) = mpsc::channel();
        lease.on_lost(move |error| tell.send(error).unwrap()).unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap().code(), EXPIRED);
        assert_eq!(proxy.stats().connections, 1, "the renewer has opened none");
    }

    fn a_lease_changes_hands(server: Server) {
        let giver = connect(&server.url());
        let taker = connect(&server.url());
        let lease = giver.lock("l", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        let token = lease.transfer().unwrap();
        let other = taker.lock("l", TTL).unwrap();
        assert_eq!(other.adopt("no token").map(drop).unwrap_err().code(), Code::InvalidArgument);
        let adopted = other.adopt(&token).unwrap();
        assert_eq!(adopted.fence(), lease.fence());
        lease.release().unwrap();
        assert_eq!(lease.extend(TTL).unwrap_err().code(), EXPIRED);
        assert_eq!(adopted.wait_until_lost(2 * TTL), None, "the taker renews it");
        adopted.release().unwrap();
        assert_free(&server);
        assert_eq!(other.adopt(&token).map(drop).unwrap_err().code(), EXPIRED);
        in_futures(&server.url(), async |client| {
            let lock = client.lock("l", TTL).unwrap();
            let lease = lock.acquire(Duration::ZERO).await.unwrap();
            let token = lease.transfer().await.unwrap();
            assert_eq!(lease.lost().await, None);
            let adopted = lock.adopt(&token).await.unwrap();
            assert_eq!(lock.adopt(&token).await.map(drop).unwrap_err().code(), Code::AlreadyHeld);
            assert_eq!(adopted.fence(), lease.fence());
            adopted.release().await.unwrap();
        });
    }

    fn a_handle_that_holds_the_lock_does_not_wait_for_itself(server: Server) {
        let client = connect(&server.url());
        let lock = client.lock("l", LONG).unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        assert_eq!(lock.acquire(LONG).map(drop).unwrap_err().code(), Code::AlreadyHeld);
        let clone = lock.clone();
        assert_eq!(clone.acquire(Duration::ZERO).map(drop).unwrap_err().code(), Code::Busy);
        lease.release().unwrap();
        lock.acquire(Duration::ZERO).unwrap().release().unwrap();
        in_futures(&server.url(), async |client| {
            let lock = client.lock("l", LONG).unwrap();
            let nested = lock.with_lock(Duration::ZERO, async |_| {
                lock.with_lock(LONG, async |_| Ok::<_, Error>(())).await
            });
            assert_eq!(nested.await.unwrap_err().code(), Code::AlreadyHeld);
            lock.acquire(Duration::ZERO).await.unwrap();
        });
    }

    fn a_lost_lease_is_told_after_the_body_unless_that_failed(server: Server) {
        let client = connect(&server.url());
        let lock = client.lock("l", TTL).unwrap();
        let take_over = |lease: &blocking::Lease| {
            let _: () = server.connection().set_ex("l", "another", 60).unwrap();
            lease.wait_until_lost(LONG).unwrap();
            let _: () = server.connection().del("l").unwrap();
        };
        let ended = lock.with_lock(Duration::ZERO, |lease| {
            take_over(lease);
            Ok::<_, Error>(())
        });
        assert_eq!(ended.unwrap_err().code(), TAKEN, "the reason is the first one");
        let own = Error::new(Code::Conflict, "the body's own");
        let ended = lock.with_lock(Duration::ZERO, |lease| {
            take_over(lease);
            Err::<(), _>(own.clone())
        });
        assert_eq!(ended.unwrap_err(), own);
    }
}

#[test]
fn what_passes_in_memory_is_a_pause() {
    let client = blocking::Client::connect("memory://").unwrap();
    let memory = client.memory().unwrap();
    let lease = client.lock("l", LONG).unwrap();
    let lease = lease.acquire(Duration::ZERO).unwrap();
    let (tell, told) = mpsc::channel();
    lease
        .on_lost(move |error| tell.send(error).unwrap())
        .unwrap();
    memory.advance(LONG / 2);
    lease.ensure(LONG / 3).unwrap();
    memory.advance(LONG / 2);
    assert_eq!(told.recv_timeout(LONG).unwrap().code(), EXPIRED);
}

#[test]
fn an_interval_that_leaves_no_second_try_is_refused() {
    let client = blocking::Client::connect("memory://").unwrap();
    for interval in [TTL / 2 + Duration::from_millis(1), Duration::ZERO, LONG] {
        let refused = client.lock("l", TTL).unwrap().renewed_every(interval);
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    }
    let refused = client.lock("l", TTL).unwrap().held_at_most(Duration::ZERO);
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
}

async fn lost_within(lease: &Lease, longest: Duration) -> Option<Error> {
    let lost = tokio::time::timeout(longest, lease.lost()).await;
    lost.unwrap_or(None)
}

fn in_futures(url: &str, body: impl AsyncFnOnce(&Client)) {
    runtime().block_on(async {
        let client = Client::connect_with(patient(url)).await.unwrap();
        body(&client).await;
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// So that a call that waits for the server stands out, and one on a busy machine is not given up.
fn patient(url: &str) -> Options {
    Options::new(url).unwrap().timeout(LONG).unwrap()
}

fn connect(url: &str) -> blocking::Client {
    blocking::Client::connect_with(patient(url)).unwrap()
}

fn proxy_before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

/// How many there are, the asking one too.
fn connections(server: &Server) -> usize {
    let mut asking = server.connection();
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut asking).unwrap();
    list.lines().count()
}

fn assert_free(server: &Server) {
    assert_eq!(server.connection().exists("l"), Ok(false), "a key is left");
}
