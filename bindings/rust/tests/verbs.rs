//! Every verb of both clients, on `memory://` and on real servers.

use std::time::Duration;

use tallylock::{Client, Code, Reason, blocking};
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

        let value = client.value("session:1:ctx").unwrap();
        assert_eq!(value.get()$(.$wait)?.unwrap(), None);
        assert!(!value.replace_if_present("new", TTL)$(.$wait)?.unwrap());
        assert!(!value.touch(TTL)$(.$wait)?.unwrap());
        assert!(!value.compare_and_set("", "new", TTL)$(.$wait)?.unwrap());
        client.counter("session:1:ctx", TTL).unwrap().add(5)$(.$wait)?.unwrap();
        assert!(value.replace_if_present(b"\xff\0\r\n", TTL)$(.$wait)?.unwrap());
        assert_eq!(value.get()$(.$wait)?.unwrap().unwrap(), b"\xff\0\r\n");
        assert!(value.touch(LONGER)$(.$wait)?.unwrap());
        assert!(!value.compare_and_set("other", "new", TTL)$(.$wait)?.unwrap());
        assert!(value.compare_and_set(b"\xff\0\r\n", "new", TTL)$(.$wait)?.unwrap());
        assert_eq!(counter.read()$(.$wait)?.unwrap(), None);
        let other_text = client.counter("session:1:ctx", TTL).unwrap();
        assert_eq!(other_text.add(1)$(.$wait)?.unwrap_err().code(), Code::NotAnInteger);

        let lock = client.lock("invoice:1", TTL).unwrap();
        let first = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        let busy = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap_err();
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
