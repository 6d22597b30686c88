//! What whoever subscribes to `tracing` is told of locks: a span for each acquire and each lease, and why a lease was lost.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tallylock::{Client, Code, Error, blocking};
use tallylock_testkit::{Kind, Proxy};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber, info_span};

const TTL: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The same steps for both clients: `$wait` is `await` for the one and nothing for the other.
macro_rules! trace {
    ($client:expr $(, $wait:tt)?) => {{
        let client = $client;
        let memory = client.memory().unwrap();
        let lock = client.lock("invoice:42", TTL).unwrap();
        let lease = lock.acquire(SECOND)$(.$wait)?.unwrap();
        let busy = client.lock("invoice:42", TTL).unwrap().acquire(SECOND)$(.$wait)?.unwrap_err();
        assert_eq!(busy.code(), Code::Busy);
        let token = lock.inspect()$(.$wait)?.unwrap().unwrap().token;
        lease.release()$(.$wait)?.unwrap();
        let lost = lock.acquire(Duration::ZERO)$(.$wait)?.unwrap();
        memory.advance(TTL);
        let error = lost.loss().unwrap();
        (lease.fence(), lost.fence(), error, String::from_utf8(token).unwrap())
    }};
}

#[test]
fn the_blocking_client_tells_its_callers_spans() {
    let log = Log::at(Level::DEBUG);
    let told = with_default(log.clone(), || {
        let _job = info_span!("job", name = "blocking").entered();
        trace!(blocking::Client::connect("memory://").unwrap())
    });
    log.assert_tells(&told);
}

#[test]
fn the_async_client_tells_its_callers_spans() {
    let log = Log::at(Level::DEBUG);
    let told = with_default(log.clone(), || {
        let _job = info_span!("job", name = "async").entered();
        in_runtime(async { trace!(Client::connect("memory://").await.unwrap(), await) })
    });
    log.assert_tells(&told);
}

#[test]
fn who_asks_for_less_gets_the_acquires_and_the_loss() {
    let log = Log::at(Level::INFO);
    let (_, _, error, _) = with_default(log.clone(), || {
        trace!(blocking::Client::connect("memory://").unwrap())
    });
    let lines = log.lines();
    let acquires = lines.iter().filter(|line| line.starts_with("acquire"));
    assert_eq!(acquires.count(), 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(&error.to_string())));
    assert!(
        !lines.iter().any(|line| line.contains("lease key")),
        "{lines:?}"
    );
}

#[test]
fn renewals_are_told_and_no_password() {
    let server = Kind::Valkey.start(&["--requirepass", "hush-hush"]);
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let log = Log::at(Level::TRACE);
    let url = proxy.url().replace("redis://", "redis://:hush-hush@");
    with_default(log.clone(), || {
        in_runtime(async {
            let client = Client::connect(&url).await.unwrap();
            let lock = client.lock("l", 2 * SECOND).unwrap();
            let lock = lock.renewed_every(Duration::from_millis(20)).unwrap();
            let lease = lock.acquire(Duration::ZERO).await.unwrap();
            while client.metrics().renewals < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            proxy.hold();
            lease.lost().await.unwrap();
        });
    });
    let lines = log.lines();
    let has = |words: &[&str]| {
        lines
            .iter()
            .any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(
        has(&["DEBUG", "in lease", "renewed", "margin_ms="]),
        "{lines:?}"
    );
    assert!(
        has(&["DEBUG", "in lease", "a renewal had no success"]),
        "{lines:?}"
    );
    assert!(
        has(&["WARN", "in lease", "reason=\"unreachable\""]),
        "{lines:?}"
    );
    assert!(
        has(&["lease", "end=\"unreachable\"", "held_ms="]),
        "{lines:?}"
    );
    assert!(!has(&["hush"]), "{lines:?}");
}

fn in_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// What was told: a line for each event, with the span that it was told in, and for each span that has ended.
#[derive(Clone)]
struct Log {
    level: Level,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    lines: Vec<String>,
    spans: BTreeMap<u64, Line>,
    /// How many have each span.
    owners: BTreeMap<u64, usize>,
    entered: Vec<u64>,
}

impl Log {
    fn at(level: Level) -> Self {
        let told = Arc::default();
        Self { level, told }
    }

    fn lines(&self) -> Vec<String> {
        self.told.lock().unwrap().lines.clone()
    }

    fn assert_tells(&self, told: &(u64, u64, Error, String)) {
        let (released, lost, error, token) = told;
        let lines = self.lines();
        let expected = [
            format!(
                "acquire key=invoice:42 wait_ms=1000 in job code=\"granted\" attempts=1 waited_ms=0 fence={released}"
            ),
            "acquire key=invoice:42 wait_ms=1000 in job code=\"busy\" attempts=".to_owned(),
            format!("lease key=invoice:42 fence={released} in job end=\"released\" held_ms=1000"),
            format!(
                "acquire key=invoice:42 wait_ms=0 in job code=\"granted\" attempts=1 waited_ms=0 fence={lost}"
            ),
            format!("WARN message={error} fence={lost} reason=\"expired\" held_ms=59398 in lease"),
            format!("lease key=invoice:42 fence={lost} in job end=\"expired\" held_ms=59398"),
        ];
        assert_eq!(lines.len(), expected.len() + 1, "{lines:?}");
        for (line, expected) in lines.iter().zip(&expected) {
            assert!(line.starts_with(expected), "{line}\n{expected}");
        }
        assert!(lines[1].ends_with("waited_ms=1000"), "{}", lines[1]);
        assert!(lines[6].starts_with("job"), "{lines:?}");
        let secret = &token[..32];
        assert!(!lines.iter().any(|line| line.contains(secret)), "{lines:?}");
    }
}

impl Told {
    fn place(&self) -> String {
        let span = self.entered.last().and_then(|id| self.spans.get(id));
        let name = span.and_then(|line| line.0.split(' ').next());
        name.map_or(String::new(), |name| format!(" in {name}"))
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = ["tallylock", "tracing"]
            .iter()
            .any(|ours| metadata.target().starts_with(ours));
        is_ours && *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut told = self.told.lock().unwrap();
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        let place = told.place();
        told.lines.push(line.0 + &place);
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = self.told.lock().unwrap();
        let mut line = Line(span.metadata().name().to_owned());
        span.record(&mut line);
        line.0 += &told.place();
        let id = told.owners.len() as u64 + 1;
        told.spans.insert(id, line);
        told.owners.insert(id, 1);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut told = self.told.lock().unwrap();
        values.record(told.spans.get_mut(&span.into_u64()).unwrap());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, span: &Id) {
        self.told.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let left = self.told.lock().unwrap().entered.pop();
        assert_eq!(left, Some(span.into_u64()));
    }

    fn clone_span(&self, span: &Id) -> Id {
        *self
            .told
            .lock()
            .unwrap()
            .owners
            .get_mut(&span.into_u64())
            .unwrap() += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut told = self.told.lock().unwrap();
        let owners = told.owners.get_mut(&span.into_u64()).unwrap();
        *owners -= 1;
        if *owners > 0 {
            return false;
        }
        let line = told.spans.remove(&span.into_u64()).unwrap();
        told.lines.push(line.0);
        true
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}
