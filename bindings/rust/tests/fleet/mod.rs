//! Five independent servers, some of them Valkey and some Redis.
#![allow(dead_code, reason = "each scenario uses its own part of this")]

use std::time::{Duration, Instant};

use tallylock_testkit::{Kind, Proxy, Server};

/// How long what takes a few round trips may take on a busy machine.
pub(crate) const PROMPT: Duration = Duration::from_millis(400);

pub(crate) fn five() -> Vec<Server> {
    let kinds = [
        Kind::Valkey,
        Kind::Redis,
        Kind::Valkey,
        Kind::Redis,
        Kind::Valkey,
    ];
    kinds.into_iter().map(|kind| kind.start(&[])).collect()
}

pub(crate) fn urls(servers: &[Server]) -> Vec<String> {
    servers.iter().map(Server::url).collect()
}

pub(crate) fn proxies(servers: &[Server]) -> Vec<Proxy> {
    let proxy = |server: &Server| Proxy::before(server.address().parse().unwrap()).unwrap();
    servers.iter().map(proxy).collect()
}

pub(crate) fn urls_of(proxies: &[Proxy]) -> Vec<String> {
    proxies.iter().map(Proxy::url).collect()
}

/// What is under a key on each server.
pub(crate) fn on_each(servers: &[Server], key: &str) -> Vec<Option<String>> {
    let get = |server: &Server| {
        redis::cmd("GET")
            .arg(key)
            .query(&mut server.connection())
            .unwrap()
    };
    servers.iter().map(get).collect()
}

/// On how many servers the lock is.
pub(crate) fn held_on(servers: &[Server]) -> usize {
    on_each(servers, "l").iter().flatten().count()
}

/// Waits until no server has the lock: what is undone in the background, or was in a socket, takes a moment.
pub(crate) fn assert_free(servers: &[Server]) {
    until(
        || held_on(servers) == 0,
        || format!("{:?}", on_each(servers, "l")),
    );
}

/// Waits until it is so, which must be soon.
pub(crate) fn until(is_so: impl Fn() -> bool, what: impl Fn() -> String) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", what());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Does it until it was done in time: on a busy machine everything is late now and then. What was done late is undone.
pub(crate) fn promptly<T>(
    limit: Duration,
    mut action: impl FnMut() -> T,
    mut undo: impl FnMut(T),
) -> T {
    let mut late = Vec::new();
    loop {
        let begun = Instant::now();
        let result = action();
        let elapsed = begun.elapsed();
        if elapsed <= limit {
            return result;
        }
        undo(result);
        late.push(elapsed);
        assert!(late.len() < 10, "always too late: {late:?}");
    }
}
