//! Every operation with its reply lost, against the table of what may be repeated, through both faces on both servers.

#[allow(dead_code, reason = "each test uses a part of it")]
mod face;

use std::time::Duration;

use face::{Face, at_once};
use tallylock::{Applied, Client, Code, Error, Options, Reason, blocking};
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(900);
/// What is there before has this TTL, so that one that was given can be told from one that was kept.
const BEFORE: Duration = Duration::from_secs(60);
/// How long it is tried where nobody listens: longer than a busy machine takes for what comes before.
const REFUSED_FOR: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Read,
    Get,
    Touch,
    Acquire,
    Extend,
    Release,
    AddOnce,
    Claim,
    Commit,
    Abort,
    Add,
    Drain,
    Finish,
    ReplaceIfPresent,
    CompareAndSet,
    Set,
    Delete,
    Inspect,
    Steal,
}

/// What a verb does to `5` with the TTL from before, or to a lock of ours; done once, and done twice.
struct Row {
    verb: Verb,
    is_repeated: bool,
    /// What it returns.
    output: &'static str,
    /// What is left: the value, and whether it has the new TTL. Nothing if the key is gone.
    left: Option<(&'static str, bool)>,
}

const fn row(
    verb: Verb,
    is_repeated: bool,
    output: &'static str,
    left: Option<(&'static str, bool)>,
) -> Row {
    Row {
        verb,
        is_repeated,
        output,
        left,
    }
}

/// A token stands for itself.
const TOKEN: &str = "a token";

/// The name of the keyed add and of the claim.
const ID: &[u8] = b"run-1";

const TABLE: [Row; 19] = [
    row(Verb::Read, true, "Some(5)", Some(("5", false))),
    row(Verb::Get, true, "Some([53])", Some(("5", false))),
    row(Verb::Touch, true, "true", Some(("5", true))),
    row(Verb::Acquire, true, "()", Some((TOKEN, true))),
    row(Verb::Extend, true, "()", Some((TOKEN, true))),
    row(Verb::Release, true, "()", None),
    row(Verb::AddOnce, true, "7", Some(("7", true))),
    row(Verb::Claim, true, "Some((5, Open))", Some(("0", false))),
    row(Verb::Commit, true, "()", Some(("0", false))),
    row(Verb::Abort, true, "5", Some(("5", false))),
    row(Verb::Add, false, "7", Some(("7", true))),
    row(Verb::Drain, false, "Some(5)", Some(("0", false))),
    row(Verb::Finish, false, "Some(5)", None),
    row(Verb::ReplaceIfPresent, false, "true", Some(("6", true))),
    row(Verb::CompareAndSet, false, "true", Some(("6", true))),
    row(Verb::Set, false, "()", Some(("6", true))),
    row(Verb::Delete, false, "true", None),
    row(Verb::Inspect, true, "Some([53])", Some(("5", false))),
    row(Verb::Steal, false, "true", None),
];

on_each_server! {
    fn the_table_holds_for_the_blocking_face(server: Server) {
        at_once(all_rows::<blocking::Client>(&server, Way::Scripts));
    }

    fn the_table_holds_for_the_async_face(server: Server) {
        in_runtime(all_rows::<Client>(&server, Way::Scripts));
    }

    fn the_table_holds_without_scripts_for_the_blocking_face(server: Server) {
        forbid_scripts(&server);
        at_once(all_rows::<blocking::Client>(&server, Way::Transactions));
    }

    fn the_table_holds_without_scripts_for_the_async_face(server: Server) {
        forbid_scripts(&server);
        in_runtime(all_rows::<Client>(&server, Way::Transactions));
    }

    fn what_never_arrived_is_not_applied_by_the_blocking_face(server: Server) {
        at_once(all_cut_before::<blocking::Client>(&server, Way::Scripts));
    }

    fn what_never_arrived_is_not_applied_by_the_async_face(server: Server) {
        in_runtime(all_cut_before::<Client>(&server, Way::Scripts));
    }

    fn a_transaction_that_never_arrived_is_not_applied_by_the_blocking_face(server: Server) {
        forbid_scripts(&server);
        at_once(all_cut_before::<blocking::Client>(&server, Way::Transactions));
    }

    fn a_transaction_that_never_arrived_is_not_applied_by_the_async_face(server: Server) {
        forbid_scripts(&server);
        in_runtime(all_cut_before::<Client>(&server, Way::Transactions));
    }

    /// What was seen is no longer there when it is to be written.
    fn a_key_that_expires_between_look_and_write_is_not_made_again(server: Server) {
        forbid_scripts(&server);
        let proxy = before(&server);
        let client = blocking::Client::connect_with(patient(&proxy)).unwrap();
        let counter = client.counter("warm-up", TTL).unwrap();
        counter.add(1).unwrap();
        put(&server, "v", "5");
        let value = client.value("v").unwrap();
        proxy.hold_matching("WATCH");
        let written = std::thread::scope(|scope| {
            let written = scope.spawn(|| value.replace_if_present("6", TTL));
            proxy.await_held(1).unwrap();
            redis::cmd("PEXPIRE").arg("v").arg(1).exec(&mut server.connection()).unwrap();
            while redis::cmd("EXISTS").arg("v").query(&mut server.connection()).unwrap() {
                std::thread::yield_now();
            }
            proxy.go();
            written.join().unwrap()
        });
        assert!(!written.unwrap());
        assert_left(&server, "v", None);
    }

    fn nobody_there_is_unavailable_for_the_blocking_face(server: Server) {
        each_row(|row| at_once(refused::<blocking::Client>(&server, row)));
    }

    fn nobody_there_is_unavailable_for_the_async_face(server: Server) {
        each_row(|row| in_runtime(refused::<Client>(&server, row)));
    }

    /// The repeat of a release must not be taken for a success when the lock has a new holder.
    fn a_repeated_release_tells_that_another_took_over(server: Server) {
        let proxy = before(&server);
        let client = blocking::Client::connect_with(patient(&proxy)).unwrap();
        let warm_up = client.lock("warm-up", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        warm_up.release().unwrap();
        let lease = client.lock("lock", TTL).unwrap().acquire(Duration::ZERO).unwrap();
        proxy.lose_matching("lock");
        proxy.refuse().unwrap();
        let released = std::thread::scope(|scope| {
            let released = scope.spawn(|| lease.release());
            proxy.await_lost(1).unwrap();
            put(&server, "lock", "of another");
            proxy.accept().unwrap();
            released.join().unwrap()
        });
        assert_eq!(released.unwrap_err().code(), Code::Lost(Reason::TakenOver));
        assert_left(&server, "lock", Some(("of another", false)));
    }
}

/// How a server is asked, and hence which of its replies decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Scripts,
    Transactions,
}

impl Way {
    /// What is in the bytes of the request that decides about this key.
    fn mark(self, verb: Verb, key: &str) -> &str {
        match (self, verb) {
            (Self::Scripts, _) => key,
            // One that asks for nothing but what it looks at.
            (Self::Transactions, Verb::Read | Verb::Get | Verb::Inspect) => "TIME",
            (Self::Transactions, _) => "EXEC",
        }
    }

    /// How many requests that may have decided were sent on to the server.
    fn count(self, verb: Verb, proxy: &Proxy) -> u64 {
        let commands: &[&str] = match (self, verb) {
            (Self::Scripts, _) => &["EVALSHA", "EVAL"],
            (Self::Transactions, Verb::Read | Verb::Get | Verb::Inspect) => &["TIME"],
            (Self::Transactions, _) => &["EXEC"],
        };
        let requests = proxy.stats().requests;
        commands
            .iter()
            .filter_map(|command| requests.get(*command))
            .sum()
    }
}

async fn all_rows<F: Face>(server: &Server, way: Way) {
    let proxy = before(server);
    let client = F::connect(patient(&proxy)).await;
    for row in TABLE {
        let losses = match way {
            Way::Scripts if row.is_repeated => 3,
            // The look that follows a lost EXEC may find that there is nothing left to do.
            Way::Scripts | Way::Transactions => 1,
        };
        let key = format!("{:?}-lost", row.verb);
        let prepared = prepare(&client, server, row.verb, &key).await;
        let before = way.count(row.verb, &proxy);
        for _ in 0..losses {
            proxy.lose_matching(way.mark(row.verb, &key));
        }
        let result = prepared.perform().await;
        assert_eq!(proxy.stats().armed, 0, "{:?}", row.verb);
        let sent = way.count(row.verb, &proxy) - before;
        if row.is_repeated {
            assert_eq!(result.unwrap(), row.output, "{:?}", row.verb);
            let is_repeated = match way {
                Way::Scripts => sent == losses + 1,
                Way::Transactions => (losses..=losses + 1).contains(&sent),
            };
            assert!(is_repeated, "{:?} was sent {sent} times", row.verb);
        } else {
            assert_unknown(&result.unwrap_err(), &key);
            assert_eq!(sent, 1, "{:?} is not repeated", row.verb);
        }
        assert_left(server, &key, row.left);
        prepared.goes_on().await;
    }
}

async fn all_cut_before<F: Face>(server: &Server, way: Way) {
    let proxy = before(server);
    let client = F::connect(patient(&proxy)).await;
    for row in TABLE {
        let key = format!("{:?}-cut", row.verb);
        let prepared = prepare(&client, server, row.verb, &key).await;
        let untouched = look(server, &key);
        proxy.cut_before_matching(way.mark(row.verb, &key));
        let result = prepared.perform().await;
        assert_eq!(proxy.stats().armed, 0, "{:?}", row.verb);
        if row.is_repeated {
            assert_eq!(result.unwrap(), row.output, "{:?}", row.verb);
            assert_left(server, &key, row.left);
        } else {
            assert_unknown(&result.unwrap_err(), &key);
            assert_same(look(server, &key), untouched);
        }
        prepared.goes_on().await;
    }
}

/// Each verb waits for the whole time-out, and so they do it at the same time.
fn each_row(refused: impl Fn(Row) + Sync) {
    std::thread::scope(|scope| {
        for row in TABLE {
            scope.spawn(|| refused(row));
        }
    });
}

async fn refused<F: Face>(server: &Server, row: Row) {
    let proxy = before(server);
    let options = Options::new(&proxy.url()).unwrap().timeout(REFUSED_FOR);
    let client = F::connect(options.unwrap()).await;
    let key = format!("{:?}-refused", row.verb);
    let prepared = prepare(&client, server, row.verb, &key).await;
    let untouched = look(server, &key);
    proxy.refuse().unwrap();
    proxy.cut();
    // Whoever writes into a connection that has just ended cannot know that nobody reads it; this one notices.
    let noticed = F::read(&prepared.other).await.unwrap_err();
    assert_eq!(noticed.code(), Code::Unavailable, "{noticed}");
    let error = prepared.perform().await.unwrap_err();
    assert_eq!(
        (error.code(), error.applied()),
        (Code::Unavailable, Applied::No),
        "{:?}: {error}",
        row.verb
    );
    proxy.accept().unwrap();
    assert_same(look(server, &key), untouched);
    prepared.goes_on().await;
}

/// Only what the proxy does is to go wrong, and not what a busy machine does.
fn patient(proxy: &Proxy) -> Options {
    Options::new(&proxy.url())
        .unwrap()
        .timeout(Duration::from_secs(60))
        .unwrap()
}

/// What a verb is called on.
enum On<F: Face> {
    Counter(F::Counter),
    Value(F::Value),
    Guarded(F::Guarded),
    Lock(F::Lock),
    Lease(F::Lease),
}

struct Prepared<F: Face> {
    verb: Verb,
    on: On<F>,
    /// A counter of its own, to see that the client goes on.
    other: F::Counter,
}

/// Puts the key there, and lets the server meet the verb's script under another key.
async fn prepare<F: Face>(client: &F, server: &Server, verb: Verb, key: &str) -> Prepared<F> {
    let warm_up = on(client, server, verb, &format!("warm-up-of-{verb:?}")).await;
    let prepared = Prepared {
        verb,
        on: warm_up,
        other: client
            .counter(format!("other-{verb:?}").as_bytes(), TTL, false)
            .unwrap(),
    };
    prepared.perform().await.unwrap();
    Prepared {
        on: on(client, server, verb, key).await,
        ..prepared
    }
}

async fn on<F: Face>(client: &F, server: &Server, verb: Verb, key: &str) -> On<F> {
    let is_lock = matches!(verb, Verb::Acquire | Verb::Extend | Verb::Release);
    if is_lock {
        redis::cmd("DEL")
            .arg(key)
            .exec(&mut server.connection())
            .unwrap();
    } else {
        put(server, key, "5");
    }
    let key = key.as_bytes();
    match verb {
        Verb::Add | Verb::AddOnce | Verb::Read | Verb::Drain | Verb::Claim | Verb::Finish => {
            On::Counter(client.counter(key, TTL, false).unwrap())
        }
        Verb::Commit | Verb::Abort => {
            let counter = client.counter(key, TTL, false).unwrap();
            F::claim(&counter, ID).await.unwrap();
            On::Counter(counter)
        }
        Verb::Get | Verb::Touch | Verb::ReplaceIfPresent | Verb::CompareAndSet => {
            On::Value(client.value(key).unwrap())
        }
        Verb::Set | Verb::Delete => On::Guarded(client.guarded(key).unwrap()),
        // What is there is a token of another library to it.
        Verb::Inspect | Verb::Steal | Verb::Acquire => {
            On::Lock(client.lock(key, TTL, false).unwrap())
        }
        Verb::Extend | Verb::Release => {
            let lock = client.lock(key, BEFORE, false).unwrap();
            On::Lease(F::acquire(&lock, Duration::ZERO).await.unwrap())
        }
    }
}

impl<F: Face> Prepared<F> {
    async fn perform(&self) -> Result<String, Error> {
        match (self.verb, &self.on) {
            (Verb::Add, On::Counter(counter)) => F::add(counter, 2).await.map(shown),
            (Verb::Read, On::Counter(counter)) => F::read(counter).await.map(shown),
            (Verb::Drain, On::Counter(counter)) => F::drain(counter).await.map(shown),
            (Verb::Finish, On::Counter(counter)) => F::finish(counter).await.map(shown),
            (Verb::AddOnce, On::Counter(counter)) => F::add_once(counter, 2, ID)
                .await
                .map(|added| shown(added.total)),
            (Verb::Claim, On::Counter(counter)) => F::claim(counter, ID)
                .await
                .map(|claimed| shown(claimed.map(|claimed| (claimed.amount, claimed.state)))),
            (Verb::Commit, On::Counter(counter)) => F::commit(counter, ID, 5).await.map(shown),
            (Verb::Abort, On::Counter(counter)) => F::abort(counter, ID).await.map(shown),
            (Verb::Get, On::Value(value)) => F::get(value).await.map(shown),
            (Verb::Touch, On::Value(value)) => F::touch(value, TTL).await.map(shown),
            (Verb::ReplaceIfPresent, On::Value(value)) => {
                F::replace_if_present(value, b"6", TTL).await.map(shown)
            }
            (Verb::CompareAndSet, On::Value(value)) => {
                F::compare_and_set(value, b"5", b"6", TTL).await.map(shown)
            }
            (Verb::Set, On::Guarded(guarded)) => F::set(guarded, b"6", 7, TTL).await.map(shown),
            (Verb::Delete, On::Guarded(guarded)) => F::delete(guarded, 7).await.map(shown),
            (Verb::Inspect, On::Lock(lock)) => F::inspect(lock)
                .await
                .map(|holder| shown(holder.map(|holder| holder.token))),
            (Verb::Steal, On::Lock(lock)) => F::steal(lock, b"5", "it hangs")
                .await
                .map(|stolen| shown(stolen.is_some())),
            (Verb::Acquire, On::Lock(lock)) => F::acquire(lock, Duration::ZERO)
                .await
                .map(|_lease| shown(())),
            (Verb::Extend, On::Lease(lease)) => F::extend(lease, TTL).await.map(shown),
            (Verb::Release, On::Lease(lease)) => F::release(lease).await.map(shown),
            _ => unreachable!("on() and perform() go by the same verb"),
        }
    }

    /// The next call finds a connection, and its own reply.
    async fn goes_on(&self) {
        let total = F::add(&self.other, 1).await.unwrap();
        assert_eq!(
            F::read(&self.other).await.unwrap(),
            Some(total),
            "after {:?}",
            self.verb
        );
    }
}

fn in_runtime(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

fn before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

/// The account of all who name none may not run scripts any more.
fn forbid_scripts(server: &Server) {
    redis::cmd("ACL")
        .arg(&["SETUSER", "default", "-@scripting"])
        .exec(&mut server.connection())
        .unwrap();
}

fn assert_unknown(error: &Error, key: &str) {
    assert_eq!(
        (error.code(), error.applied()),
        (Code::OutcomeUnknown, Applied::Maybe),
        "{error}"
    );
    assert!(error.to_string().contains(key), "{error}");
}

fn put(server: &Server, key: &str, text: &str) {
    let millis = u64::try_from(BEFORE.as_millis()).unwrap();
    redis::cmd("SET")
        .arg(key)
        .arg(text)
        .arg("PX")
        .arg(millis)
        .exec(&mut server.connection())
        .unwrap();
}

/// The text of a key and its remaining milliseconds.
fn look(server: &Server, key: &str) -> Option<(String, u128)> {
    let mut connection = server.connection();
    let text: Option<String> = redis::cmd("GET").arg(key).query(&mut connection).unwrap();
    let ttl: i64 = redis::cmd("PTTL").arg(key).query(&mut connection).unwrap();
    text.map(|text| (text, u128::try_from(ttl).expect("each key has a TTL")))
}

fn assert_left(server: &Server, key: &str, expected: Option<(&str, bool)>) {
    let Some((expected, is_new)) = expected else {
        return assert_eq!(look(server, key), None);
    };
    let (text, ttl) = look(server, key).unwrap();
    let is_token = text.len() >= 32 && text.as_bytes()[..32].iter().all(u8::is_ascii_hexdigit);
    assert!(
        text == expected || (expected == TOKEN && is_token),
        "{key} holds {text}"
    );
    assert_eq!(ttl > BEFORE.as_millis(), is_new, "{key} has {ttl} ms left");
}

/// The same text, and no TTL but the one that runs down.
fn assert_same(now: Option<(String, u128)>, then: Option<(String, u128)>) {
    match (now, then) {
        (Some((now, ttl)), Some((then, most))) => assert!(
            now == then && ttl <= most,
            "{then} {most} became {now} {ttl}"
        ),
        (now, then) => assert_eq!(now, then),
    }
}

fn shown<T: std::fmt::Debug>(output: T) -> String {
    format!("{output:?}")
}
