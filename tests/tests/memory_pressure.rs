//! A server at its memory limit refuses what may grow before anything is changed; what ends or prolongs a lease works.

use std::time::Duration;

use tallylock::{Applied, Code, Error, blocking::Client};
use tallylock_testkit::{Server, on_each_server};

const TTL: Duration = Duration::from_secs(900);

on_each_server! {
    fn what_may_grow_is_refused_and_changes_nothing(server: Server) {
        pressed(&server, |client, _| {
            let counter = client.counter("counter", TTL).unwrap();
            let new = client.counter("new", TTL).unwrap();
            let value = client.value("value").unwrap();
            let lock = client.lock("lock", TTL).unwrap();
            let before = left(&server);
            assert_full(counter.add(1));
            assert_full(new.add(1));
            assert_full(counter.drain());
            assert_full(value.replace_if_present("new", TTL));
            assert_full(value.compare_and_set("old", "new", TTL));
            assert_full(lock.acquire(Duration::ZERO));
            assert_full(lock.acquire(Duration::from_secs(5)));
            let guarded = client.guarded("value").unwrap();
            assert_full(guarded.set("new", 7, TTL));
            assert_full(client.guarded("new").unwrap().delete(7));
            let held = client.lock("held", TTL).unwrap();
            assert_full(held.steal(held.inspect().unwrap().unwrap().token, "it hangs"));
            assert_eq!(left(&server), before);
        });
    }

    fn what_does_not_grow_works(server: Server) {
        pressed(&server, |client, _| {
            assert_eq!(client.counter("counter", TTL).unwrap().read().unwrap(), Some(5));
            assert_eq!(client.value("value").unwrap().get().unwrap(), Some(b"old".to_vec()));
            assert!(client.value("value").unwrap().touch(TTL).unwrap());
            assert_eq!(client.counter("counter", TTL).unwrap().finish().unwrap(), Some(5));
            let guarded = client.guarded("value").unwrap();
            assert!(guarded.delete(7).unwrap(), "what makes room is let through, with its guard");
            assert_eq!(guarded.delete(6).unwrap_err().code(), Code::FencedOff);
        });
    }

    fn no_lease_is_lost_to_memory_pressure(server: Server) {
        pressed(&server, |_, lease| {
            lease.extend(TTL).unwrap();
            let ttl: i64 = redis::cmd("PTTL").arg("held").query(&mut server.connection()).unwrap();
            assert!(ttl > 800_000, "{ttl}");
            lease.ensure(Duration::from_secs(800)).unwrap();
            lease.release().unwrap();
            assert!(!left(&server).iter().any(|(key, ..)| key == "held"));
        });
    }

    fn nothing_is_left_behind_when_the_pressure_ends(server: Server) {
        pressed(&server, |client, _| {
            let counter = client.counter("counter", TTL).unwrap();
            assert_full(counter.add(1));
            limit(&server, "0");
            assert_eq!(counter.add(1).unwrap(), 6);
            assert_eq!(counter.drain().unwrap(), Some(6));
            let lease = client.lock("lock", TTL).unwrap().acquire(Duration::ZERO).unwrap();
            lease.release().unwrap();
            let endless: Vec<_> = left(&server).into_iter().filter(|(_, _, has_ttl)| !has_ttl).collect();
            assert_eq!(endless, []);
        });
    }
}

/// Runs a body against a server that was filled, once with the scripts known to it and once without.
fn pressed(server: &Server, body: impl Fn(&Client, &tallylock::blocking::Lease)) {
    for knows_scripts in [true, false] {
        limit(server, "0");
        let mut connection = server.connection();
        redis::cmd("FLUSHALL").exec(&mut connection).unwrap();
        let client = Client::connect(&server.url()).unwrap();
        client.counter("counter", TTL).unwrap().add(5).unwrap();
        redis::cmd("SET")
            .arg("value")
            .arg("old")
            .arg("PX")
            .arg(60_000)
            .exec(&mut connection)
            .unwrap();
        let lease = client
            .lock("held", Duration::from_secs(60))
            .unwrap()
            .acquire(Duration::ZERO)
            .unwrap();
        if !knows_scripts {
            redis::cmd("SCRIPT")
                .arg("FLUSH")
                .exec(&mut connection)
                .unwrap();
        }
        limit(server, "1");
        body(&client, &lease);
    }
}

/// Sets the memory limit in bytes: 1 is always exceeded, 0 never.
fn limit(server: &Server, bytes: &str) {
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("maxmemory")
        .arg(bytes)
        .exec(&mut server.connection())
        .unwrap();
}

fn assert_full<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert_eq!(
        (error.code(), error.applied()),
        (Code::OutOfMemory, Applied::No),
        "{error}"
    );
}

/// Every key with its text and whether it has a TTL, in the order of the keys.
fn left(server: &Server) -> Vec<(String, String, bool)> {
    let mut connection = server.connection();
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    keys.sort();
    let entries = keys.into_iter().map(|key| {
        let text: String = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        (key, text, ttl >= 0)
    });
    entries.collect()
}
