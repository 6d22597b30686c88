//! What a client counts: exactly in memory, whose time is virtual, and on real servers what needs a renewal.

use std::thread;
use std::time::{Duration, Instant};

use tallylock::{Client, Code, Losses, Metrics, Reason, Redlock, blocking};
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);
/// What is left of it for its holder, whose clock may be another by this much.
const VALID: Duration = Duration::from_millis(60_000 - 602);
const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(120);

/// Brings each number about but those of renewals; `$wait` is `await` for the one client and nothing for the other.
macro_rules! count {
    ($client:expr $(, $wait:tt)?) => {{
        let client = $client;
        let memory = client.memory().unwrap();
        let (lock, other) = (client.lock("l", TTL).unwrap(), client.lock("l", TTL).unwrap());
        let blank = client.metrics();
        assert_eq!((blank.granted, blank.smallest_margin), (0, None));

        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        memory.advance(2 * SECOND);
        assert_eq!(other.acquire(5 * SECOND)$(.$wait)?.unwrap_err().code(), Code::Busy);
        let denied = client.metrics();
        assert_eq!((denied.granted, denied.busy, denied.released), (1, 1, 0));
        assert!(denied.attempts > 2, "it asked more than once in five seconds: {denied:?}");
        // Nothing is asked for: refused before anything is sent.
        assert_eq!(lock.acquire(Duration::ZERO)$(.$wait)?.unwrap_err().code(), Code::AlreadyHeld);
        assert_eq!(client.metrics(), denied);
        memory.advance(3 * SECOND);
        lease.release()$(.$wait)?.unwrap();
        let released = client.metrics();
        assert_eq!((released.waited, released.longest_wait), (5 * SECOND, 5 * SECOND));
        assert_eq!((released.released, released.held, released.longest_hold), (1, 10 * SECOND, 10 * SECOND));
        lease.release()$(.$wait)?.unwrap();
        drop(lease);
        assert_eq!(client.metrics(), released, "that was done already");

        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        memory.advance(SECOND);
        let right = lease.transfer()$(.$wait)?.unwrap();
        let adopted = other.adopt(&right)$(.$wait)?.unwrap();
        memory.advance(2 * TTL);
        assert_eq!(adopted.loss().unwrap().code(), Code::Lost(Reason::Expired));
        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        memory.put("l", "another's", Some(TTL)).unwrap();
        assert_eq!(lease.extend(TTL)$(.$wait)?.unwrap_err().code(), Code::Lost(Reason::TakenOver));
        // They have had their end.
        drop((lease, adopted));
        memory.remove("l");
        drop(lock.acquire(Duration::ZERO)$(.$wait)?.unwrap());
        let holder = other.inspect()$(.$wait)?.unwrap().unwrap();
        other.steal(&holder.token, "nobody has it")$(.$wait)?.unwrap().unwrap();

        memory.put_other_type("list", None).unwrap();
        let refused = client.lock("list", TTL).unwrap().acquire(SECOND)$(.$wait)?.unwrap_err();
        assert_eq!(refused.code(), Code::WrongType);
        memory.put("counter", "5", None).unwrap();
        client.counter("counter", TTL).unwrap().drain()$(.$wait)?.unwrap();

        let all = client.metrics();
        assert_eq!((all.granted, all.busy, all.cancelled, all.failed), (4, 1, 0, 1));
        assert_eq!(all.attempts, denied.attempts + 4);
        assert_eq!((all.waited, all.longest_wait), (5 * SECOND, 5 * SECOND), "in memory only the waiting takes time");
        assert_eq!((all.adopted, all.released, all.transferred, all.abandoned), (1, 1, 1, 1));
        assert_eq!(losses(&all), (1, 1, 0));
        assert_eq!((all.held, all.longest_hold), (11 * SECOND + VALID, VALID));
        assert_eq!((all.renewals, all.failed_renewals, all.smallest_margin), (0, 0, None));
        assert_eq!((all.stolen, all.healed), (1, 1));
        assert_eq!((client.stolen(), client.healed()), (1, 1));
        assert_all_are_over(&all);
        client.close();
        assert_eq!(client.metrics(), all, "also once it is closed");
    }};
}

/// Two of three servers grant it, and each attempt is one, however many servers are asked.
macro_rules! count_on_several {
    ($redlock:expr $(, $wait:tt)?) => {{
        let redlock = $redlock;
        let lock = redlock.lock("l", TTL).unwrap();
        redlock.memories()[0].put("l", "another's", Some(TTL)).unwrap();
        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        redlock.memories().iter().for_each(|memory| memory.advance(SECOND));
        let other = redlock.lock("l", TTL).unwrap();
        assert_eq!(other.acquire(Duration::ZERO)$(.$wait)?.unwrap_err().code(), Code::Busy);
        lease.release()$(.$wait)?.unwrap();
        let all = redlock.metrics();
        assert_eq!((all.granted, all.busy, all.attempts, all.released), (1, 1, 2, 1));
        assert!(all.held >= SECOND, "{all:?}");
        assert_all_are_over(&all);
    }};
}

/// Renewals, and the loss of a lease whose server is silent.
macro_rules! count_renewals {
    ($client:expr, $proxy:expr $(, $wait:tt)?) => {{
        let (client, proxy) = ($client, $proxy);
        let ttl = 4 * SECOND;
        let lock = client.lock("l", ttl).unwrap().renewed_every(Duration::from_millis(20)).unwrap();
        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        let renewed = until(|| client.metrics(), |metrics| metrics.renewals >= 3);
        let margin = renewed.smallest_margin.unwrap();
        assert!(!margin.is_zero() && margin < ttl, "{margin:?}");
        proxy.hold();
        let lost = until(|| client.metrics(), |metrics| metrics.lost.total() == 1);
        assert_eq!(losses(&lost), (0, 0, 1), "{:?}", lease.loss());
        assert!(lost.failed_renewals > 0, "{lost:?}");
        assert!(lost.smallest_margin.is_some_and(|smallest| smallest <= margin));
        assert!(lost.held >= ttl - SECOND && lost.held == lost.longest_hold, "{lost:?}");
        assert_eq!(lease.loss().unwrap().code(), Code::Lost(Reason::Unreachable));
        assert_all_are_over(&client.metrics());
    }};
}

#[test]
fn the_blocking_client_in_memory() {
    count!(blocking::Client::connect("memory://").unwrap());
}

#[test]
fn the_async_client_in_memory() {
    in_runtime(async { count!(Client::connect("memory://").await.unwrap(), await) });
}

#[test]
fn the_blocking_redlock_in_memory() {
    let urls = [
        "memory://metrics-a",
        "memory://metrics-b",
        "memory://metrics-c",
    ];
    count_on_several!(blocking::Redlock::connect(urls).unwrap());
}

#[test]
fn the_async_redlock_in_memory() {
    let urls = [
        "memory://metrics-d",
        "memory://metrics-e",
        "memory://metrics-f",
    ];
    in_runtime(async { count_on_several!(Redlock::connect(urls).await.unwrap(), await) });
}

#[test]
fn clients_count_for_themselves_and_their_clones_with_them() {
    let client = blocking::Client::connect("memory://metrics-shared").unwrap();
    let stranger = blocking::Client::connect("memory://metrics-shared").unwrap();
    let lock = client.clone().lock("l", TTL).unwrap();
    lock.acquire(Duration::ZERO).unwrap().release().unwrap();
    assert_eq!(client.metrics().granted, 1);
    assert_eq!(stranger.metrics().granted, 0);
}

on_each_server! {
    fn renewals_of_the_blocking_client(server: Server) {
        let proxy = proxy_before(&server);
        count_renewals!(blocking::Client::connect(&proxy.url()).unwrap(), proxy);
    }

    fn renewals_of_the_async_client(server: Server) {
        let proxy = proxy_before(&server);
        in_threads(async { count_renewals!(Client::connect(&proxy.url()).await.unwrap(), proxy, await) });
    }

    /// Each acquire is counted once, and each lease, whatever the threads do at the same time.
    fn threads_that_contend(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                let lock = client.lock("l", TTL).unwrap();
                scope.spawn(move || {
                    for _ in 0..10 {
                        lock.acquire(LONG).unwrap().release().unwrap();
                    }
                });
            }
        });
        let all = client.metrics();
        assert_eq!((all.granted, all.released, all.busy + all.cancelled + all.failed), (80, 80, 0));
        assert!(all.attempts >= 80, "{all:?}");
        assert!(all.longest_wait <= all.waited && all.longest_hold <= all.held, "{all:?}");
        assert_all_are_over(&all);
    }

    /// Whenever the caller goes away: what was granted is released, and what was not is cancelled.
    fn callers_who_go_away(server: Server) {
        in_threads(async {
            let client = Client::connect(&server.url()).await.unwrap();
            let lock = client.lock("l", TTL).unwrap();
            for turn in 0..100 {
                let acquiring = tokio::spawn({
                    let lock = lock.clone();
                    async move { lock.acquire(LONG).await }
                });
                tokio::time::sleep(Duration::from_micros(20 * turn)).await;
                acquiring.abort();
                if let Ok(Ok(lease)) = acquiring.await {
                    lease.release().await.unwrap();
                }
            }
            // One that was aborted before it began is none.
            let all = until(|| client.metrics(), |all| all.granted == all.released);
            assert!(all.granted + all.cancelled > 0 && all.granted + all.cancelled <= 100, "{all:?}");
            assert_eq!(all.busy + all.failed, 0);
            lock.acquire(LONG).await.unwrap().release().await.unwrap();
            assert_all_are_over(&client.metrics());
        });
    }
}

fn losses(metrics: &Metrics) -> (u64, u64, u64) {
    let Losses {
        expired,
        taken_over,
        unreachable,
        ..
    } = metrics.lost;
    (expired, taken_over, unreachable)
}

/// Each lease that came to be has come to one end.
fn assert_all_are_over(metrics: &Metrics) {
    let begun = metrics.granted + metrics.adopted;
    let ended = metrics.released + metrics.transferred + metrics.abandoned + metrics.lost.total();
    assert_eq!(begun, ended, "{metrics:?}");
}

fn until(look: impl Fn() -> Metrics, is_there: impl Fn(&Metrics) -> bool) -> Metrics {
    let end = Instant::now() + LONG;
    loop {
        let metrics = look();
        if is_there(&metrics) {
            return metrics;
        }
        assert!(Instant::now() < end, "{metrics:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn proxy_before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

fn in_runtime(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

/// For what goes on while the test's own thread waits.
fn in_threads(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}
