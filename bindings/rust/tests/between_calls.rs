//! Servers that forget their scripts, kill their connections, or end them in one direction between any two calls of a lock's
//! verbs.

mod fleet;

use std::time::{Duration, Instant};

use fleet::{assert_free, proxies, urls_of};
use redis::Commands as _;
use tallylock::{Client, Code, Error, Options, RedlockOptions, blocking};
use tallylock_testkit::{Kind, Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);
/// How long a call may take: nobody is to give up because the machine is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A verb's first call while the server does not know its script, and the second.
const BY_NAME: &str = "EVALSHA";
const BY_SOURCE: &str = "$4\r\nEVAL\r\n";

/// What is in the script of an acquire, and of the write-back of its fence.
const VOTE: &str = "'granted'";
const WRITE_BACK: &str = "return 'raised'";

/// What an operator does to a server between two calls.
const DISTURBANCES: [&[&[&str]]; 3] = [
    &[&["SCRIPT", "FLUSH"]],
    &[&["CLIENT", "KILL", "TYPE", "normal"]],
    &[&["SCRIPT", "FLUSH"], &["CLIENT", "KILL", "TYPE", "normal"]],
];

on_each_server! {
    fn nothing_between_two_calls_of_the_blocking_client_ends_a_lease(server: Server) {
        let proxy = proxy_before(&server);
        let client = blocking::Client::connect_with(options(&proxy)).unwrap();
        let lock = client.lock("l", TTL).unwrap().without_renewal();
        let between = Between { servers: &[&server], proxies: &[&proxy] };
        for disturbance in DISTURBANCES {
            for call in [None, Some(BY_NAME), Some(BY_SOURCE)] {
                let lease = between.two_calls(call, disturbance, || lock.acquire(PATIENCE).unwrap());
                between.two_calls(call, disturbance, || lease.extend(TTL * 2).unwrap());
                assert!(lease.remaining() > TTL);
                // It only reads, without a script.
                between.two_calls(None, disturbance, || lease.verify(TTL).unwrap());
                between.two_calls(call, disturbance, || lease.release().unwrap());
                assert_eq!(server.connection().exists("l"), Ok(false), "a key is left");
            }
        }
    }

    fn nothing_between_two_calls_of_the_client_for_futures_ends_a_lease(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = runtime();
        let client = runtime.block_on(Client::connect_with(options(&proxy))).unwrap();
        let lock = client.lock("l", TTL).unwrap().without_renewal();
        let between = Between { servers: &[&server], proxies: &[&proxy] };
        for disturbance in DISTURBANCES {
            for call in [None, Some(BY_NAME), Some(BY_SOURCE)] {
                let lease = between.two_calls(call, disturbance, || runtime.block_on(lock.acquire(PATIENCE)).unwrap());
                between.two_calls(call, disturbance, || runtime.block_on(lease.extend(TTL * 2)).unwrap());
                assert!(lease.remaining() > TTL);
                between.two_calls(None, disturbance, || runtime.block_on(lease.verify(TTL)).unwrap());
                between.two_calls(call, disturbance, || runtime.block_on(lease.release()).unwrap());
                assert_eq!(server.connection().exists("l"), Ok(false), "a key is left");
            }
        }
    }

    /// The request is executed, and the client sees the end of the replies instead of its own: it does not wait for what
    /// cannot come.
    fn a_half_closed_connection_is_left_at_once_by_the_blocking_client(server: Server) {
        let proxy = proxy_before(&server);
        let client = blocking::Client::connect_with(options(&proxy)).unwrap();
        let lock = client.lock("l", TTL).unwrap().without_renewal();
        let counter = client.counter("k", TTL).unwrap();
        // The server knows the script then: the next request is the one that counts.
        counter.add(1).unwrap();
        let begun = Instant::now();
        for round in 2..=6 {
            proxy.half_close_matching("EVAL");
            let lease = lock.acquire(PATIENCE).unwrap();
            proxy.half_close_matching("EVAL");
            lease.extend(TTL * 2).unwrap();
            proxy.half_close_matching("EVAL");
            lease.release().unwrap();
            assert_eq!(server.connection().exists("l"), Ok(false), "a key is left");
            counter.read().unwrap();
            proxy.half_close_matching("EVAL");
            assert_eq!(counter.add(1).unwrap_err().code(), Code::OutcomeUnknown);
            assert_eq!(counter.read().unwrap(), Some(round), "it was applied once");
        }
        assert_eq!(proxy.stats().armed, 0);
        assert!(begun.elapsed() < PATIENCE, "nothing was waited for: {:?}", begun.elapsed());
    }

    fn a_half_closed_connection_is_left_at_once_by_the_client_for_futures(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = runtime();
        let client = runtime.block_on(Client::connect_with(options(&proxy))).unwrap();
        let lock = client.lock("l", TTL).unwrap().without_renewal();
        let counter = client.counter("k", TTL).unwrap();
        runtime.block_on(counter.add(1)).unwrap();
        let begun = Instant::now();
        for round in 2..=6 {
            proxy.half_close_matching("EVAL");
            let lease = runtime.block_on(lock.acquire(PATIENCE)).unwrap();
            proxy.half_close_matching("EVAL");
            runtime.block_on(lease.extend(TTL * 2)).unwrap();
            proxy.half_close_matching("EVAL");
            runtime.block_on(lease.release()).unwrap();
            assert_eq!(server.connection().exists("l"), Ok(false), "a key is left");
            runtime.block_on(counter.read()).unwrap();
            proxy.half_close_matching("EVAL");
            assert_eq!(runtime.block_on(counter.add(1)).unwrap_err().code(), Code::OutcomeUnknown);
            assert_eq!(runtime.block_on(counter.read()).unwrap(), Some(round), "it was applied once");
        }
        assert_eq!(proxy.stats().armed, 0);
        assert!(begun.elapsed() < PATIENCE, "nothing was waited for: {:?}", begun.elapsed());
    }

    /// Between two calls a client may or may not have noticed; what it says of the next one is true either way.
    fn what_is_sent_over_a_half_closed_connection_is_told_truly(server: Server) {
        let proxy = proxy_before(&server);
        let runtime = runtime();
        let blocking = blocking::Client::connect_with(options(&proxy)).unwrap();
        let futures = runtime.block_on(Client::connect_with(options(&proxy))).unwrap();
        let (one, other) = (blocking.counter("k", TTL).unwrap(), futures.counter("k", TTL).unwrap());
        let (mut certain, mut unknown) = (0, 0);
        let mut took = |result: Result<i64, Error>| match result {
            Ok(_) => certain += 1,
            Err(error) => {
                assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
                unknown += 1;
            }
        };
        for _ in 0..25 {
            took(one.add(1));
            one.add(1).expect("another connection");
            took(runtime.block_on(other.add(1)));
            runtime.block_on(other.add(1)).expect("another connection");
            proxy.half_close();
        }
        certain += 50;
        let total: i64 = server.connection().get("k").unwrap();
        assert!((certain..=certain + unknown).contains(&total), "{total} of {certain} and perhaps {unknown}");
    }
}

#[test]
fn nothing_between_two_calls_to_three_servers_ends_a_lease() {
    let servers = [Kind::Valkey, Kind::Redis, Kind::Valkey].map(|kind| kind.start(&[]));
    let proxies = proxies(&servers);
    let options = RedlockOptions::new(urls_of(&proxies))
        .and_then(|options| options.timeout(PATIENCE))
        .and_then(|options| options.node_timeout(PATIENCE))
        .unwrap();
    let redlock = blocking::Redlock::connect_with(options).unwrap();
    let lock = redlock.lock("l", TTL).unwrap().without_renewal();
    let between = Between {
        servers: &servers.each_ref(),
        proxies: &proxies.iter().collect::<Vec<_>>(),
    };
    for disturbance in DISTURBANCES {
        // The votes, and the fence that is written back after them.
        for call in [None, Some(VOTE), Some(WRITE_BACK)] {
            let lease = between.two_calls(call, disturbance, || lock.acquire(PATIENCE).unwrap());
            let call = call.map(|_| BY_SOURCE);
            between.two_calls(call, disturbance, || lease.extend(TTL * 2).unwrap());
            assert!(lease.remaining() > TTL);
            between.two_calls(None, disturbance, || lease.verify(TTL).unwrap());
            between.two_calls(call, disturbance, || lease.release().unwrap());
            assert_free(&servers);
        }
    }
}

/// The servers of a lock, and the proxies in front of them.
struct Between<'a> {
    servers: &'a [&'a Server],
    proxies: &'a [&'a Proxy],
}

impl Between<'_> {
    /// Runs a verb on servers that know no script, disturbs them after this call of it has been executed everywhere and before its
    /// reply is heard, or before its first call, and gives what it ends with.
    fn two_calls<T: Send>(
        &self,
        call: Option<&str>,
        disturbance: &[&[&str]],
        verb: impl FnOnce() -> T + Send,
    ) -> T {
        self.disturb(&[&["SCRIPT", "FLUSH"]]);
        let Some(call) = call else {
            self.disturb(disturbance);
            return verb();
        };
        for proxy in self.proxies {
            proxy.hold_matching(call);
        }
        std::thread::scope(|scope| {
            let verb = scope.spawn(verb);
            for proxy in self.proxies {
                let held = proxy.await_held(1);
                let seen = || self.proxies.iter().map(|proxy| proxy.stats());
                held.unwrap_or_else(|error| panic!("{error}: {:?}", seen().collect::<Vec<_>>()));
            }
            self.disturb(disturbance);
            for proxy in self.proxies {
                proxy.go();
            }
            verb.join().unwrap()
        })
    }

    fn disturb(&self, commands: &[&[&str]]) {
        for server in self.servers {
            let mut operator = server.connection();
            for command in commands {
                redis::cmd(command[0])
                    .arg(&command[1..])
                    .exec(&mut operator)
                    .unwrap();
            }
        }
    }
}

fn options(proxy: &Proxy) -> Options {
    Options::new(&proxy.url())
        .unwrap()
        .timeout(PATIENCE)
        .unwrap()
}

fn proxy_before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
