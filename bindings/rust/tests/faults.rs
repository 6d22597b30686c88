//! Servers that restart, stay silent, or whose replies are lost.

mod in_time;

use std::thread;
use std::time::{Duration, Instant};

use in_time::{TIMEOUT, Timer, in_time};
use tallylock::{Applied, Client, Code, Error, Options, blocking};
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);

fn options(url: &str) -> Options {
    Options::new(url).unwrap().timeout(TIMEOUT).unwrap()
}

/// Lets the server know the scripts, and `k` be 1, by a client that has more time than those of these tests.
fn prepare(server: &Server) {
    let patient = Options::new(&server.url()).unwrap().timeout(TTL);
    let client = blocking::Client::connect_with(patient.unwrap()).unwrap();
    client.counter("k", TTL).unwrap().add(1).unwrap();
    let lock = client.lock("other", TTL).unwrap();
    let lease = lock.acquire(Duration::ZERO).unwrap();
    lease.extend(TTL).unwrap();
    lease.release().unwrap();
}

/// Makes a call, which can be repeated, until it succeeds: its time-out is shorter than a busy machine may stall.
fn settled<T>(mut call: impl FnMut() -> Result<T, Error>) -> T {
    let begun = Instant::now();
    loop {
        match call() {
            Ok(result) => return result,
            Err(error) => assert!(begun.elapsed() < TTL, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A connection is trusted for 5 ms after its last use, and looked at after that. In earnest no server is back so soon.
fn restart(server: &mut Server) {
    let last_used = Instant::now();
    server.restart();
    thread::sleep(Duration::from_millis(6).saturating_sub(last_used.elapsed()));
}

fn proxy_before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

on_each_server! {
    /// The restarted server does not turn the next add into outcome_unknown: it was not sent into a dead connection.
    fn a_restart_is_not_noticed_by_callers(server: Server) {
        let mut server = server;
        let client = blocking::Client::connect(&server.url()).unwrap();
        let counter = client.counter("k", TTL).unwrap();
        assert_eq!(counter.add(1).unwrap(), 1);
        restart(&mut server);
        assert_eq!(counter.add(2).unwrap(), 2);

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(Client::connect(&server.url())).unwrap();
        let counter = client.counter("k", TTL).unwrap();
        assert_eq!(runtime.block_on(counter.add(1)).unwrap(), 3);
        restart(&mut server);
        assert_eq!(runtime.block_on(counter.add(2)).unwrap(), 2);
    }

    fn a_connection_that_is_lost_while_it_opens_is_opened_again(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let patient = Options::new(&proxy.url()).unwrap().timeout(TTL).unwrap();
        let blocking = blocking::Client::connect_with(patient.clone()).unwrap();
        let client = runtime.block_on(Client::connect_with(patient)).unwrap();
        for (count, wait) in (1..).zip([Duration::ZERO, TTL]) {
            proxy.cut();
            proxy.lose_matching("SETNAME");
            blocking.lock("l", TTL).unwrap().acquire(wait).unwrap().release().unwrap();
            assert_eq!(proxy.stats().lost, 2 * count - 1);
            proxy.cut();
            proxy.lose_matching("SETNAME");
            runtime.block_on(async {
                client.lock("l", TTL).unwrap().acquire(wait).await.unwrap().release().await.unwrap();
            });
            assert_eq!(proxy.stats().lost, 2 * count);
        }
    }

    fn a_silent_server_is_given_up_in_time(server: Server) {
        prepare(&server);
        let client = settled(|| blocking::Client::connect_with(options(&server.url())));
        let counter = client.counter("k", TTL).unwrap();
        let lock = client.lock("l", TTL).unwrap();
        let held = client.lock("held", TTL).unwrap();
        let lease = settled(|| held.acquire(Duration::ZERO));
        settled(|| counter.read());
        server.pause();
        let error = counter.add(1).unwrap_err();
        assert_eq!((error.code(), error.applied()), (Code::OutcomeUnknown, Applied::Maybe));
        // The next ones get a new connection, on which nobody says hello: nothing was sent.
        assert_eq!(in_time(|| counter.add(1)).code(), Code::Unavailable);
        assert_eq!(in_time(|| counter.read()).code(), Code::Unavailable);
        assert_eq!(in_time(|| lock.acquire(Duration::ZERO)).code(), Code::Unavailable);
        assert_eq!(in_time(|| lock.acquire(TIMEOUT)).code(), Code::Unavailable);
        assert_eq!(in_time(|| lease.extend(TTL)).code(), Code::Unavailable);
        assert_eq!(in_time(|| lease.release()).code(), Code::Unavailable);
        server.resume();
        settled(|| lease.release());
        assert_eq!(settled(|| counter.read()), Some(2));
    }

    fn a_silent_server_is_given_up_in_time_by_futures(server: Server) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        prepare(&server);
        let client = settled(|| runtime.block_on(Client::connect_with(options(&server.url()))));
        let counter = client.counter("k", TTL).unwrap();
        let lock = client.lock("l", TTL).unwrap();
        let held = client.lock("held", TTL).unwrap();
        let lease = settled(|| runtime.block_on(held.acquire(Duration::ZERO)));
        settled(|| runtime.block_on(counter.read()));
        server.pause();
        assert_eq!(runtime.block_on(counter.add(1)).unwrap_err().code(), Code::OutcomeUnknown);
        assert_eq!(in_time(|| runtime.block_on(counter.add(1))).code(), Code::Unavailable);
        assert_eq!(in_time(|| runtime.block_on(lock.acquire(Duration::ZERO))).code(), Code::Unavailable);
        assert_eq!(in_time(|| runtime.block_on(lease.extend(TTL))).code(), Code::Unavailable);
        server.resume();
        settled(|| runtime.block_on(lease.release()));
        assert_eq!(settled(|| runtime.block_on(counter.read())), Some(2));
    }

    fn a_reply_that_does_not_come_is_given_up_in_time(server: Server) {
        let proxy = proxy_before(&server);
        prepare(&server);
        let client = settled(|| blocking::Client::connect_with(options(&proxy.url())));
        let counter = client.counter("k", TTL).unwrap();
        settled(|| counter.read());
        let error = in_time(|| {
            proxy.hold_matching("EVALSHA");
            counter.add(1)
        });
        assert_eq!((error.code(), error.applied()), (Code::OutcomeUnknown, Applied::Maybe));
        let error = in_time(|| {
            proxy.hold_matching("EVALSHA");
            counter.read()
        });
        assert_eq!((error.code(), error.applied()), (Code::Timeout, Applied::No));
    }

    fn a_reply_that_does_not_come_is_given_up_in_time_by_futures(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        prepare(&server);
        let client = settled(|| runtime.block_on(Client::connect_with(options(&proxy.url()))));
        let counter = client.counter("k", TTL).unwrap();
        settled(|| runtime.block_on(counter.read()));
        let error = in_time(|| {
            proxy.hold_matching("EVALSHA");
            runtime.block_on(counter.add(1))
        });
        assert_eq!((error.code(), error.applied()), (Code::OutcomeUnknown, Applied::Maybe));
        let error = in_time(|| {
            proxy.hold_matching("EVALSHA");
            runtime.block_on(counter.read())
        });
        assert_eq!((error.code(), error.applied()), (Code::Timeout, Applied::No));
    }

    /// The acquire was sent before the server fell silent: its caller is answered in time, and it is undone later.
    fn a_late_grant_is_undone(server: Server) {
        prepare(&server);
        let client = settled(|| blocking::Client::connect_with(options(&server.url())));
        let other = client.lock("other", TTL).unwrap();
        settled(|| other.acquire(Duration::ZERO)?.release());
        server.pause();
        let lock = client.lock("l", TTL).unwrap();
        let timer = Timer::start(TIMEOUT);
        assert_eq!(lock.acquire(Duration::ZERO).unwrap_err().code(), Code::Timeout);
        assert!(timer.lateness().unwrap() < TIMEOUT, "the undo takes its time in the background");
        server.resume();
        // It is undone soon, and not by its TTL.
        lock.acquire(TTL / 2).unwrap();
    }

    fn a_late_grant_is_undone_by_futures(server: Server) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        prepare(&server);
        let client = settled(|| runtime.block_on(Client::connect_with(options(&server.url()))));
        let other = client.lock("other", TTL).unwrap();
        settled(|| runtime.block_on(async { other.acquire(Duration::ZERO).await?.release().await }));
        server.pause();
        let lock = client.lock("l", TTL).unwrap();
        let timer = Timer::start(TIMEOUT);
        assert_eq!(runtime.block_on(lock.acquire(Duration::ZERO)).unwrap_err().code(), Code::Timeout);
        assert!(timer.lateness().unwrap() < TIMEOUT, "the undo takes its time in the background");
        server.resume();
        runtime.block_on(lock.acquire(TTL / 2)).unwrap();
    }

    fn a_lost_reply_is_told_truly_and_no_caller_gets_anothers(server: Server) {
        let proxy = proxy_before(&server);
        let client = blocking::Client::connect(&proxy.url()).unwrap();
        let counter = client.counter("k", TTL).unwrap();
        assert_eq!(counter.add(1).unwrap(), 1);
        proxy.lose(1);
        assert_eq!(counter.add(10).unwrap_err().code(), Code::OutcomeUnknown);
        assert_eq!(counter.read().unwrap(), Some(11), "it was applied once");
        proxy.cut_before(1);
        assert_eq!(counter.add(100).unwrap_err().code(), Code::OutcomeUnknown);
        proxy.lose(1);
        assert_eq!(counter.read().unwrap(), Some(11), "a read is repeated");
        let lock = client.lock("l", TTL).unwrap();
        lock.acquire(Duration::ZERO).unwrap().release().unwrap();
        proxy.lose(1);
        let lease = lock.acquire(Duration::ZERO).unwrap();
        proxy.lose(1);
        lease.extend(TTL).unwrap();
        proxy.lose(1);
        lease.release().unwrap();
        let lease = lock.acquire(Duration::ZERO).unwrap();
        lease.release().unwrap();
    }

    fn a_late_reply_goes_to_nobody(server: Server) {
        let proxy = proxy_before(&server);
        let client = blocking::Client::connect(&proxy.url()).unwrap();
        let counter = client.counter("k", TTL).unwrap();
        let read = client.counter("other", TTL).unwrap();
        counter.add(7).unwrap();
        read.add(1).unwrap();
        proxy.hold_matching("EVALSHA");
        assert_eq!(counter.add(7).unwrap_err().code(), Code::OutcomeUnknown);
        proxy.go();
        for _ in 0..100 {
            assert_eq!(read.read().unwrap(), Some(1));
        }
        assert_eq!(counter.read().unwrap(), Some(14));
    }

    /// A connection on which a call timed out is not used for new calls until something is answered on it.
    fn futures_leave_a_silent_connection(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        prepare(&server);
        let client = settled(|| runtime.block_on(Client::connect_with(options(&proxy.url()))));
        let counter = client.counter("k", TTL).unwrap();
        assert_eq!(settled(|| runtime.block_on(counter.read())), Some(1));
        let before = proxy.stats().connections;
        proxy.hold_matching("EVALSHA");
        assert_eq!(runtime.block_on(counter.add(1)).unwrap_err().code(), Code::OutcomeUnknown);
        assert_eq!(runtime.block_on(counter.add(1)).unwrap(), 3, "on another connection");
        assert_eq!(proxy.stats().connections, before + 1);
    }

    fn a_big_value_goes_through_in_pieces(server: Server) {
        let options = Options::new(&server.url()).unwrap().timeout(Duration::from_secs(30)).unwrap();
        let client = blocking::Client::connect_with(options).unwrap();
        client.counter("k", TTL).unwrap().add(1).unwrap();
        let value = client.value("k").unwrap();
        let big: Vec<u8> = (0..8_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        assert!(value.replace_if_present(&big, TTL).unwrap());
        assert!(value.get().unwrap().unwrap() == big);
    }

    /// What the server did not receive to its last byte it did not execute.
    fn a_value_that_cannot_be_written_is_not_sent(server: Server) {
        prepare(&server);
        let client = settled(|| blocking::Client::connect_with(options(&server.url())));
        let value = client.value("k").unwrap();
        settled(|| value.get());
        let big = vec![b'x'; 16_000_000];
        server.pause();
        let error = value.replace_if_present(&big, TTL).unwrap_err();
        assert_eq!((error.code(), error.applied()), (Code::Unavailable, Applied::No), "{error}");
        server.resume();
        assert_eq!(settled(|| value.get()).unwrap(), b"1");
    }
}
