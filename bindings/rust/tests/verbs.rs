//! Every verb of both clients, on `memory://` and on real servers.

use std::time::Duration;

use tallylock::{ClaimState, Client, Code, Offered, Options, Reason, blocking};
use tallylock_testkit::{Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);
const LONGER: Duration = Duration::from_secs(120);

/// The same steps for both clients: `$wait` is `await` for the one and nothing for the other.
macro_rules! every_verb {
    ($client:expr $(, $wait:tt)?) => {{
        let client = $client;
        let counter = client.counter("session:1:pending", TTL).unwrap();
        assert_eq!(counter.read()$(.$wait)?.unwrap(), None);
        assert_eq!(counter.drain()$(.$wait)?.unwrap(), None);
        assert_eq!(counter.finish()$(.$wait)?.unwrap(), None);
        assert_eq!(counter.add(i64::MAX)$(.$wait)?.unwrap(), i64::MAX);
        assert_eq!(counter.add(1)$(.$wait)?.unwrap_err().code(), Code::Overflow);
        assert_eq!(counter.read()$(.$wait)?.unwrap(), Some(i64::MAX));
        assert_eq!(counter.drain()$(.$wait)?.unwrap(), Some(i64::MAX));
        assert_eq!(counter.clone().fixed().add(-7)$(.$wait)?.unwrap(), -7);
        assert_eq!(counter.finish()$(.$wait)?.unwrap(), Some(-7));
        assert_eq!(client.healed(), 0);

        let once = client.counter("session:2:pending", TTL).unwrap().remembering(LONGER).unwrap();
        let added = once.add_once(30, "evt-1")$(.$wait)?.unwrap();
        assert_eq!((added.total, added.applied), (30, true));
        let again = once.add_once(30, "evt-1")$(.$wait)?.unwrap();
        assert_eq!((again.total, again.applied), (30, false));
        assert_eq!(once.add_once(31, "evt-1")$(.$wait)?.unwrap_err().code(), Code::Conflict);
        assert_eq!(once.add_once(1, "")$(.$wait)?.unwrap_err().code(), Code::InvalidArgument);
        let batch = vec![
            once.entry(5),
            once.entry_once(30, "evt-1").unwrap(),
            client.counter("session:2:ctx", TTL).unwrap().entry(i64::MIN),
            once.entry_once(2, "evt-1").unwrap(),
            once.entry_once(2, "evt-2").unwrap(),
        ];
        let results = client.add_many(batch)$(.$wait)?.unwrap();
        let results: Vec<_> = results
            .into_iter()
            .map(|result| result.map(|added| (added.total, added.applied)).map_err(|error| error.code()))
            .collect();
        assert_eq!(
            results,
            [Ok((35, true)), Ok((35, false)), Ok((i64::MIN, true)), Err(Code::Conflict), Ok((37, true))]
        );
        let too_many = vec![once.entry(1); 10_001];
        assert_eq!(client.add_many(too_many)$(.$wait)?.unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(client.add_many(Vec::new())$(.$wait)?.unwrap(), []);

        let taken = once.claim("run-1")$(.$wait)?.unwrap().unwrap();
        assert_eq!((taken.amount, taken.state), (37, ClaimState::Open));
        assert_eq!(once.claim("run-1")$(.$wait)?.unwrap(), Some(taken));
        assert_eq!(once.claim("run-2")$(.$wait)?.unwrap(), None, "there is nothing more to take");
        let open = once.claims()$(.$wait)?.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].id.as_slice(), open[0].amount), (b"run-1".as_slice(), 37));
        assert!(open[0].remaining.unwrap() > Duration::from_secs(6 * 24 * 3600));
        assert_eq!(once.commit("run-1", 36)$(.$wait)?.unwrap_err().code(), Code::Conflict);
        once.commit("run-1", 37)$(.$wait)?.unwrap();
        once.commit("run-1", 37)$(.$wait)?.unwrap();
        assert_eq!(once.abort("run-1")$(.$wait)?.unwrap_err().code(), Code::Conflict);
        assert_eq!(once.claims()$(.$wait)?.unwrap(), []);
        once.add(4)$(.$wait)?.unwrap();
        once.claim("run-2")$(.$wait)?.unwrap().unwrap();
        assert_eq!(once.abort("run-2")$(.$wait)?.unwrap(), 4);
        assert_eq!(once.abort("run-2")$(.$wait)?.unwrap(), 4);
        assert_eq!(once.read()$(.$wait)?.unwrap(), Some(4));

        let newer = once.clone().fenced(8);
        assert_eq!(newer.drain()$(.$wait)?.unwrap(), Some(4));
        let stale = once.clone().fenced(7);
        assert_eq!(stale.drain()$(.$wait)?.unwrap_err().code(), Code::FencedOff);
        assert_eq!(stale.claim("run-3")$(.$wait)?.unwrap_err().code(), Code::FencedOff);
        assert_eq!(newer.claim("run-3")$(.$wait)?.unwrap(), None);

        let mut scan = client.scan("session:2*");
        let mut counters = Vec::new();
        while let Some(page) = scan.next_page()$(.$wait)?.unwrap() {
            counters.extend(page.into_iter().filter_map(|found| Some((found.counter()?, found.key))));
        }
        counters.sort();
        assert_eq!(counters, [(i64::MIN, b"session:2:ctx".to_vec()), (0, b"session:2:pending".to_vec())]);
        assert!(!client.heal("session:2:pending", TTL)$(.$wait)?.unwrap());
        assert_eq!(client.scan_from("*", "x").unwrap_err().code(), Code::InvalidArgument);
        client.counter("session:2:ctx", TTL).unwrap().finish()$(.$wait)?.unwrap();

        let value = client.value("session:1:ctx").unwrap();
        assert_eq!(value.get()$(.$wait)?.unwrap(), None);
        assert!(!value.replace_if_present("new", TTL)$(.$wait)?.unwrap());
        assert!(!value.touch(TTL)$(.$wait)?.unwrap());
        assert!(!value.compare_and_set("", "new", TTL)$(.$wait)?.unwrap());
        assert!(value.read_for_update()$(.$wait)?.unwrap().is_none());
        client.counter("session:1:ctx", TTL).unwrap().add(5)$(.$wait)?.unwrap();
        assert!(value.replace_if_present(b"\xff\0\r\n", TTL)$(.$wait)?.unwrap());
        assert_eq!(value.get()$(.$wait)?.unwrap().unwrap(), b"\xff\0\r\n");
        assert!(value.touch(LONGER)$(.$wait)?.unwrap());
        assert!(!value.compare_and_set("other", "new", TTL)$(.$wait)?.unwrap());
        assert!(value.compare_and_set(b"\xff\0\r\n", "new", TTL)$(.$wait)?.unwrap());
        let read = value.read_for_update()$(.$wait)?.unwrap().unwrap();
        assert!(value.replace_if_present("newer", TTL)$(.$wait)?.unwrap());
        let Offered::Overtaken(read) = value.offer(read, "mine", TTL)$(.$wait)?.unwrap() else {
            panic!("another was faster");
        };
        assert_eq!(read.present(), b"newer");
        assert_eq!(value.offer(read, "mine", TTL)$(.$wait)?.unwrap(), Offered::Written);
        assert_eq!(counter.read()$(.$wait)?.unwrap(), None);
        let other_text = client.counter("session:1:ctx", TTL).unwrap();
        assert_eq!(other_text.add(1)$(.$wait)?.unwrap_err().code(), Code::NotAnInteger);

        let lock = client.lock("invoice:1", TTL).unwrap();
        let first = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        let ours = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap_err();
        assert_eq!((ours.code(), ours.key()), (Code::AlreadyHeld, Some("invoice:1")));
        let busy = lock.clone().acquire(Duration::ZERO)$(.$wait)?.unwrap_err();
        assert_eq!((busy.code(), busy.key()), (Code::Busy, Some("invoice:1")));
        assert!(first.is_valid() && first.remaining() <= TTL);
        first.ensure(Duration::from_secs(50)).unwrap();
        assert_eq!(first.ensure(TTL).unwrap_err().code(), Code::Lost(Reason::Expired));
        first.extend(LONGER)$(.$wait)?.unwrap();
        first.ensure(Duration::from_secs(110)).unwrap();
        first.release()$(.$wait)?.unwrap();
        assert!(!first.is_valid());
        assert_eq!(first.extend(TTL)$(.$wait)?.unwrap_err().code(), Code::Lost(Reason::Expired));
        first.release()$(.$wait)?.unwrap();
        let second = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        assert!(second.fence() > first.fence());
        first.release()$(.$wait)?.unwrap();
        second.ensure(Duration::ZERO).unwrap();

        client.close();
        assert_eq!(counter.read()$(.$wait)?.unwrap_err().code(), Code::Closed);
        assert_eq!(lock.acquire(Duration::ZERO)$(.$wait)?.unwrap_err().code(), Code::Closed);
        assert_eq!(second.release()$(.$wait)?.unwrap_err().code(), Code::Closed);
    }};
}

#[test]
fn blocking_in_memory() {
    every_verb!(blocking::Client::connect("memory://").unwrap());
}

#[tokio::test]
async fn async_in_memory() {
    every_verb!(Client::connect("memory://").await.unwrap(), await);
}

#[tokio::main(flavor = "current_thread")]
async fn run(url: &str) {
    every_verb!(Client::connect(url).await.unwrap(), await);
}

on_each_server! {
    fn blocking_on_a_server(server: Server) {
        every_verb!(blocking::Client::connect(&server.url()).unwrap());
    }

    fn async_on_a_server(server: Server) {
        run(&server.url());
    }

    fn both_on_a_server_that_forbids_scripts(server: Server) {
        let mut admin = server.connection();
        redis::cmd("ACL").arg("SETUSER").arg("plain")
            .arg(&["on", ">secret", "~*", "&*", "+@all", "-@scripting"]).exec(&mut admin).unwrap();
        let url = format!("redis://plain:secret@{}", server.address());
        every_verb!(blocking::Client::connect(&url).unwrap());
        redis::cmd("FLUSHALL").exec(&mut admin).unwrap();
        run(&url);
    }

    fn both_without_trying_scripts(server: Server) {
        let options = Options::new(&server.url()).unwrap().avoid_scripts();
        every_verb!(blocking::Client::connect_with(options.clone()).unwrap());
        redis::cmd("FLUSHALL").exec(&mut server.connection()).unwrap();
        run_with(options);
        let counted: String = redis::cmd("INFO").arg("commandstats").query(&mut server.connection()).unwrap();
        assert!(counted.contains("cmdstat_exec") && !counted.contains("cmdstat_eval"), "{counted}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run_with(options: Options) {
    every_verb!(Client::connect_with(options).await.unwrap(), await);
}

/// The server in memory has nothing but the scripts' twins.
#[test]
fn avoiding_scripts_changes_nothing_in_memory() {
    let options = Options::new("memory://").unwrap().avoid_scripts();
    every_verb!(blocking::Client::connect_with(options).unwrap());
}

/// Eight at a time, whose updates all count, though each is overtaken now and then.
#[test]
fn every_update_counts() {
    let client = blocking::Client::connect("memory://").unwrap();
    client.counter("v", TTL).unwrap().add(0).unwrap();
    let value = client.value("v").unwrap();
    let next = |present: &[u8]| -> Result<Vec<u8>, tallylock::Error> {
        let number: u32 = std::str::from_utf8(present).unwrap().parse().unwrap();
        Ok((number + 1).to_string().into_bytes())
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    value.update(TTL, next).unwrap().expect("the key is there");
                }
            });
        }
    });
    assert_eq!(value.get().unwrap().as_deref(), Some(b"80".as_slice()));
    let failed = value.update(TTL, |_| {
        Err::<Vec<u8>, Box<dyn std::error::Error>>("the caller's own".into())
    });
    assert_eq!(failed.unwrap_err().to_string(), "the caller's own");
    assert_eq!(value.get().unwrap().as_deref(), Some(b"80".as_slice()));
}

#[tokio::test]
async fn an_async_update_writes_what_was_made_of_it() {
    let client = Client::connect("memory://").await.unwrap();
    let value = client.value("v").unwrap();
    let doubled = async |present: &[u8]| Ok::<_, tallylock::Error>(present.repeat(2));
    assert_eq!(value.update(TTL, doubled).await.unwrap(), None);
    client.counter("v", TTL).unwrap().add(5).await.unwrap();
    assert_eq!(
        value.update(TTL, doubled).await.unwrap(),
        Some(b"55".to_vec())
    );
}

#[test]
fn with_lock_releases_whatever_happens() {
    let client = blocking::Client::connect("memory://").unwrap();
    let lock = client.lock("job", TTL).unwrap();
    let free = || lock.acquire(Duration::ZERO).unwrap().release().unwrap();

    let result: Result<u64, tallylock::Error> =
        lock.with_lock(Duration::ZERO, |lease| Ok(lease.fence()));
    assert!(result.unwrap() > 0);
    free();

    let failure = lock.with_lock(Duration::ZERO, |_| {
        Err::<(), Box<dyn std::error::Error>>("the body's own".into())
    });
    assert_eq!(failure.unwrap_err().to_string(), "the body's own");
    free();

    let panic = std::panic::catch_unwind(|| {
        lock.with_lock(Duration::ZERO, |_| -> Result<(), tallylock::Error> {
            panic!("on purpose")
        })
    });
    assert!(panic.is_err());
    free();

    let memory = client.memory().unwrap();
    let late = lock.with_lock(Duration::ZERO, |_| {
        memory.advance(LONGER);
        Ok::<_, tallylock::Error>(())
    });
    assert_eq!(
        late.unwrap_err().code(),
        Code::Lost(Reason::Expired),
        "the body ran without the lock at the end"
    );
}

#[tokio::test]
async fn an_async_with_lock_releases_whatever_happens() {
    let client = Client::connect("memory://").await.unwrap();
    let lock = client.lock("job", TTL).unwrap();
    let free = async || {
        lock.acquire(Duration::from_secs(1))
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    };

    let failure = lock.with_lock(Duration::ZERO, async |_| {
        Err::<(), Box<dyn std::error::Error>>("its own".into())
    });
    assert_eq!(failure.await.unwrap_err().to_string(), "its own");
    free().await;

    let task = tokio::spawn({
        let lock = lock.clone();
        async move {
            lock.with_lock(Duration::ZERO, async |_| -> Result<(), tallylock::Error> {
                panic!("on purpose")
            })
            .await
        }
    });
    assert!(task.await.unwrap_err().is_panic());
    free().await;

    let (entered, inside) = tokio::sync::oneshot::channel();
    let task = tokio::spawn({
        let lock = lock.clone();
        async move {
            lock.with_lock(Duration::ZERO, async |_| {
                entered.send(()).unwrap();
                std::future::pending::<Result<(), tallylock::Error>>().await
            })
            .await
        }
    });
    inside.await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    free().await;
}

#[test]
fn a_wait_in_memory_takes_no_time() {
    let client = blocking::Client::connect("memory://").unwrap();
    let hour = Duration::from_secs(3600);
    let held = client
        .lock("job", hour)
        .unwrap()
        .acquire(Duration::ZERO)
        .unwrap();
    let lock = client.lock("job", TTL).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(lock.acquire(hour / 2).unwrap_err().code(), Code::Busy);
    let left = held.remaining();
    assert!(left < hour / 2 && left > hour / 3, "{left:?}");
    // Whoever waits long enough gets it when it has run out.
    lock.acquire(hour).unwrap();
    assert!(!held.is_valid());
    assert!(begun.elapsed() < hour / 30);
}

#[test]
fn a_healed_counter_is_counted() {
    let client = blocking::Client::connect("memory://").unwrap();
    let memory = client.memory().unwrap();
    memory.put("counter", "5", None).unwrap();
    assert_eq!(
        client.counter("counter", TTL).unwrap().drain().unwrap(),
        Some(5)
    );
    assert_eq!(client.healed(), 1);
    assert_eq!(memory.keys()[0].ttl, Some(TTL));
}

#[test]
fn bad_input_is_refused_when_the_handle_is_made() {
    let client = blocking::Client::connect("memory://").unwrap();
    let too_long = Duration::from_secs(11 * 365 * 24 * 3600);
    for error in [
        client.counter("", TTL).unwrap_err(),
        client.counter("k", Duration::ZERO).unwrap_err(),
        client.counter("k", too_long).unwrap_err(),
        client.value("a{").unwrap_err(),
        client.lock("k", Duration::from_millis(2)).unwrap_err(),
        client
            .value("k")
            .unwrap()
            .touch(Duration::ZERO)
            .unwrap_err(),
        client
            .lock("k", TTL)
            .unwrap()
            .acquire(too_long)
            .unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}
