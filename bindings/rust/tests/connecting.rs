//! Getting a connection: as whom, to which database, over which socket, and what is said when it fails.

mod in_time;

use std::time::{Duration, Instant};

use in_time::{TIMEOUT, in_time};
use tallylock::blocking::PlainConnection;
use tallylock::{Client, Code, Error, Options, Reply, blocking};
use tallylock_testkit::{Kind, Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);

/// Connects with both clients, which must agree, and adds to a counter.
fn add(url: &str) -> Result<i64, Error> {
    let from_blocking =
        blocking::Client::connect(url).and_then(|client| client.counter("session:1", TTL)?.add(1));
    let from_async = add_async(url);
    match (from_blocking, from_async) {
        (Ok(first), Ok(second)) => {
            assert_eq!(second, first + 1);
            Ok(first)
        }
        (Err(first), Err(second)) => {
            assert_eq!(first.code(), second.code(), "{first} {second}");
            assert!(
                !first.to_string().contains("secret") && !second.to_string().contains("secret")
            );
            Err(first)
        }
        (first, second) => panic!("one client says {first:?} and the other {second:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn add_async(url: &str) -> Result<i64, Error> {
    Client::connect(url)
        .await?
        .counter("session:1", TTL)?
        .add(1)
        .await
}

/// A failure must not take the time-out of 2 s; what takes that long because the machine is busy is tried again.
fn at_once<T>(attempt: impl Fn() -> T) -> T {
    let mut late = Vec::new();
    loop {
        let begun = Instant::now();
        let result = attempt();
        if begun.elapsed() < Duration::from_millis(1_500) {
            return result;
        }
        late.push(begun.elapsed());
        assert!(late.len() < 5, "always late: {late:?}");
    }
}

on_each_server! {
    fn over_a_unix_socket(server: Server) {
        assert_eq!(add(&format!("unix://{}", server.unix_socket().display())).unwrap(), 1);
        assert_eq!(add(&format!("unix://{}?db=3", server.unix_socket().display())).unwrap(), 1);
        assert_eq!(add(&server.url()).unwrap(), 3);
    }

    fn to_another_database(server: Server) {
        assert_eq!(add(&format!("{}/3", server.url())).unwrap(), 1);
        assert_eq!(add(&format!("valkey://{}/0", server.address())).unwrap(), 1);
        let mut admin = server.connection();
        redis::cmd("SELECT").arg(3).exec(&mut admin).unwrap();
        assert_eq!(redis::cmd("GET").arg("session:1").query::<i64>(&mut admin).unwrap(), 2);
        let error = at_once(|| add(&format!("{}/99", server.url())).unwrap_err());
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("99"), "{error}");
    }

    fn as_a_user_with_few_rights(server: Server) {
        let mut admin = server.connection();
        redis::cmd("ACL").arg("SETUSER").arg("biller")
            .arg(&["on", ">secret", "resetchannels", "~session:*", "+evalsha", "+eval", "+set", "+get", "+incrby", "+pttl", "+pexpire"])
            .exec(&mut admin).unwrap();
        assert_eq!(add(&format!("redis://biller:secret@{}", server.address())).unwrap(), 1);
        let wrong = at_once(|| add(&format!("redis://biller:secret1@{}", server.address())).unwrap_err());
        assert_eq!(wrong.code(), Code::Forbidden, "{wrong}");
    }

    fn connections_have_a_name(server: Server) {
        let client = blocking::Client::connect(&server.url()).unwrap();
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.connection()).unwrap();
        assert!(list.contains("name=tallylock"), "{list}");
        client.close();
    }

    fn for_commands_that_are_no_verbs(server: Server) {
        let mut admin = server.connection();
        redis::cmd("ACL").arg("SETUSER").arg("watcher").arg(&["on", ">secret", "+ping", "+monitor"]).exec(&mut admin).unwrap();
        let options = Options::new(&format!("redis://watcher:secret@{}", server.address())).unwrap().timeout(TIMEOUT).unwrap();
        let mut plain = PlainConnection::open(&options).unwrap();
        assert_eq!(plain.ask(&["PING", "a\r\nb"]).unwrap(), Reply::Text(b"a\r\nb".to_vec()));
        assert_eq!(plain.ask(&["INFO"]).unwrap_err().code(), Code::Forbidden);
        let both = plain.ask_all([vec!["PING"], vec!["INFO"]]).unwrap();
        assert!(matches!(&both[..], [Reply::Text(_), Reply::Error(_)]), "{both:?}");
        plain.ask(&["MONITOR"]).unwrap();
        assert_eq!(plain.listen(Duration::from_millis(20)).unwrap(), None);
        redis::cmd("ECHO").arg("hello").exec(&mut admin).unwrap();
        let heard = plain.listen(Duration::from_secs(5)).unwrap();
        assert!(matches!(&heard, Some(Reply::Text(line)) if line.ends_with(b"\"hello\"")), "{heard:?}");

        let mut silent = PlainConnection::open(&options).unwrap();
        server.pause();
        let error = silent.ask(&["PING"]).unwrap_err();
        assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
        assert_eq!(silent.ask(&["PING"]).unwrap_err().code(), Code::Closed);
        drop(server);
        let end = loop {
            match plain.listen(Duration::from_secs(5)) {
                Ok(line) => assert_ne!(line, None, "it ends"),
                Err(error) => break error,
            }
        };
        assert_eq!(end.code(), Code::Unavailable, "{end}");
        let error = PlainConnection::open(&Options::new("memory://").unwrap()).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
    }

    fn to_a_server_that_is_silent(server: Server) {
        server.pause();
        for url in [server.url(), format!("unix://{}", server.unix_socket().display())] {
            let options = || Options::new(&url).unwrap().timeout(TIMEOUT).unwrap();
            let error = in_time(|| blocking::Client::connect_with(options()));
            assert_eq!(error.code(), Code::Unavailable, "{error}");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let error = in_time(|| runtime.block_on(Client::connect_with(options())));
            assert_eq!(error.code(), Code::Unavailable, "{error}");
        }
    }
}

#[test]
fn with_a_password() {
    for kind in Kind::ALL {
        let server = kind.start(&["--requirepass", "secret"]);
        assert_eq!(
            add(&format!("redis://:secret@{}", server.address())).unwrap(),
            1
        );
        for url in [
            server.url(),
            format!("redis://:secret1@{}", server.address()),
        ] {
            let error = at_once(|| add(&url).unwrap_err());
            assert_eq!(error.code(), Code::Forbidden, "{error}");
        }
    }
}

#[test]
fn with_a_password_that_nobody_asked_for() {
    for kind in Kind::ALL {
        let server = kind.start(&[]);
        let error = at_once(|| add(&format!("redis://:secret@{}", server.address())).unwrap_err());
        assert_eq!(error.code(), Code::Forbidden, "{error}");
    }
}

#[test]
fn to_nobody() {
    let server = Server::valkey();
    let url = server.url();
    drop(server);
    let error = at_once(|| add(&url).unwrap_err());
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    let error = at_once(|| add("unix:///nowhere/server.sock").unwrap_err());
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

/// It waits for the end of what it takes for a command, and we for its part of the handshake.
#[test]
fn to_a_server_without_tls() {
    let server = Server::valkey();
    let options = Options::new(&format!("rediss://{}", server.address()))
        .unwrap()
        .timeout(TIMEOUT)
        .unwrap();
    // The first one reads the system's certificates.
    blocking::Client::connect_with(options.clone()).unwrap_err();
    let error = in_time(|| blocking::Client::connect_with(options.clone()));
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let error = in_time(|| runtime.block_on(Client::connect_with(options.clone())));
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[test]
fn while_the_server_has_too_many_clients_it_is_tried_again() {
    let server = Server::valkey();
    let mut admin = server.connection();
    let mut allow = |clients: u32| {
        redis::cmd("CONFIG")
            .arg(&["SET", "maxclients"])
            .arg(clients)
            .exec(&mut admin)
            .unwrap();
    };
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let client = blocking::Client::connect(&proxy.url()).unwrap();
    let counter = client.counter("session:1", TTL).unwrap();
    assert_eq!(counter.add(1).unwrap(), 1);
    allow(1);
    proxy.cut();
    let before = proxy.stats().connections;
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| counter.read());
        let deadline = Instant::now() + Duration::from_secs(10);
        while proxy.stats().connections < before + 2 {
            assert!(Instant::now() < deadline, "no second attempt");
            std::thread::yield_now();
        }
        allow(100);
        assert_eq!(reading.join().unwrap().unwrap(), Some(1));
    });
    allow(1);
    let full = at_once(|| add(&server.url()).unwrap_err());
    assert_eq!(full.code(), Code::Unavailable, "{full}");
    assert!(full.to_string().contains("max number of clients"), "{full}");
}
