//! Guarded writes, and what operators do to locks, through both clients: on `memory://`, on real servers, and without scripts.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tallylock::{Client, Code, Options, Owner, Reason, blocking};
use tallylock_testkit::{Server, on_each_server};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

const TTL: Duration = Duration::from_secs(60);

/// The same steps for both clients: `$wait` is `await` for the one and nothing for the other.
macro_rules! operate {
    ($client:expr $(, $wait:tt)?) => {{
        let client = $client;
        let lock = client.lock("invoice:42", TTL).unwrap();
        assert_eq!(lock.inspect()$(.$wait)?.unwrap(), None);
        assert_eq!(lock.steal("nobody's", "it hangs")$(.$wait)?.unwrap(), None);

        let lease = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        let holder = lock.inspect()$(.$wait)?.unwrap().unwrap();
        assert_eq!((holder.label().as_deref(), holder.fence), (Some("biller-7"), Some(lease.fence())));
        assert!(holder.remaining.is_some_and(|left| left <= TTL && left > TTL / 2));

        let guarded = client.guarded("invoice:42:text").unwrap();
        guarded.set("of the holder", lease.fence(), TTL)$(.$wait)?.unwrap();
        let blank = lock.steal(&holder.token, " ")$(.$wait)?.unwrap_err();
        assert_eq!(blank.code(), Code::InvalidArgument);
        assert_eq!(lock.steal("another's", "it hangs")$(.$wait)?.unwrap(), None);
        assert_eq!((client.stolen(), lock.inspect()$(.$wait)?.unwrap().map(|same| same.token)), (0, Some(holder.token.clone())));

        let stolen = lock.steal(&holder.token, "it hangs")$(.$wait)?.unwrap().unwrap();
        assert_eq!((client.stolen(), lock.inspect()$(.$wait)?.unwrap()), (1, None));
        // The operator shuts the holder out before there is another.
        assert!(guarded.delete(stolen.fence)$(.$wait)?.unwrap());
        let late = guarded.set("late", lease.fence(), TTL)$(.$wait)?.unwrap_err();
        assert_eq!((late.code(), late.key()), (Code::FencedOff, Some("invoice:42:text")));
        assert_eq!(guarded.delete(lease.fence())$(.$wait)?.unwrap_err().code(), Code::FencedOff);
        assert_eq!(client.value("invoice:42:text").unwrap().get()$(.$wait)?.unwrap(), None);

        // With a handle of its own: for this one it is already held, as far as its holder knows.
        let next = client.lock("invoice:42", TTL).unwrap().acquire(Duration::ZERO)$(.$wait)?.unwrap();
        assert!(lease.fence() < stolen.fence && stolen.fence < next.fence());
        let lost = lease.extend(TTL)$(.$wait)?.unwrap_err();
        assert_eq!(lost.code(), Code::Lost(Reason::TakenOver));
        guarded.set("of the next", next.fence(), TTL)$(.$wait)?.unwrap();
        next.release()$(.$wait)?.unwrap();
    }};
}

fn options(url: &str) -> Options {
    let owner = Owner::Label("biller-7".into());
    Options::new(url).unwrap().owner(owner).unwrap()
}

#[test]
fn the_blocking_client_in_memory() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        operate!(blocking::Client::connect_with(options("memory://")).unwrap());
    });
    log.assert_tells_the_steal();
}

#[test]
fn the_async_client_in_memory() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        in_runtime(async {
            operate!(
                Client::connect_with(options("memory://")).await.unwrap(),
                await
            );
        });
    });
    log.assert_tells_the_steal();
}

on_each_server! {
    fn the_blocking_client_on_a_server(server: Server) {
        operate!(blocking::Client::connect_with(options(&server.url())).unwrap());
        assert_all_have_a_ttl(&server);
    }

    fn the_async_client_on_a_server(server: Server) {
        in_runtime(async { operate!(Client::connect_with(options(&server.url())).await.unwrap(), await) });
        assert_all_have_a_ttl(&server);
    }

    fn the_blocking_client_without_scripts(server: Server) {
        operate!(blocking::Client::connect_with(options(&server.url()).avoid_scripts()).unwrap());
        assert_all_have_a_ttl(&server);
    }

    fn the_async_client_without_scripts(server: Server) {
        in_runtime(async { operate!(Client::connect_with(options(&server.url()).avoid_scripts()).await.unwrap(), await) });
        assert_all_have_a_ttl(&server);
    }

    /// As a release tells it, with scripts and without.
    fn a_steal_wakes_those_who_wait(server: Server) {
        for options in [options(&server.url()), options(&server.url()).avoid_scripts()] {
            let client = blocking::Client::connect_with(options).unwrap();
            let lock = client.lock("invoice:42", TTL).unwrap();
            lock.acquire(Duration::ZERO).unwrap();
            let mut connection = server.connection();
            let mut listener = connection.as_pubsub();
            listener.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            listener.subscribe("invoice:42{invoice:42}:tlu1:released").unwrap();
            let token = lock.inspect().unwrap().unwrap().token;
            lock.steal(token, "it hangs").unwrap().unwrap();
            let told: String = listener.get_message().unwrap().get_payload().unwrap();
            assert_eq!(told, "released");
        }
    }

    fn a_lock_of_another_library_is_seen_and_stolen(server: Server) {
        let client = blocking::Client::connect_with(options(&server.url())).unwrap();
        redis::cmd("SET").arg("theirs").arg(b"\xfftoken").arg("NX").arg("PX").arg(60_000).exec(&mut server.connection()).unwrap();
        let lock = client.lock("theirs", TTL).unwrap();
        let holder = lock.inspect().unwrap().unwrap();
        assert_eq!((holder.token.as_slice(), holder.label(), holder.fence), (b"\xfftoken".as_slice(), None, None));
        let stolen = lock.steal(&holder.token, "its owner is gone").unwrap().unwrap();
        assert!(lock.acquire(Duration::ZERO).unwrap().fence() > stolen.fence);
    }
}

fn assert_all_have_a_ttl(server: &Server) {
    let mut connection = server.connection();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert_eq!(keys.len(), 3, "{keys:?}");
    for key in keys {
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(ttl > 0, "{key} has {ttl}");
    }
}

fn in_runtime(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

/// What was logged, an event a line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn assert_tells_the_steal(&self) {
        let lines = self.0.lock().unwrap();
        let [stolen, lost] = lines.as_slice() else {
            panic!("the steal and what its holder learned, not {lines:?}");
        };
        for part in ["WARN", "invoice:42", "biller-7", "it hangs", "fence=17"] {
            assert!(stolen.contains(part), "{stolen}");
        }
        for part in ["WARN", "invoice:42", "taken_over", "fence=17"] {
            assert!(lost.contains(part), "{lost}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tallylock") && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}
