//! The fault proxy: each fault hits exactly the request that it is meant for, and nothing else is changed.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use redis::{Connection, RedisError, Value};
use tallylock_testkit::{Proxy, Server, on_each_server};

on_each_server! {
    fn a_lost_reply_belongs_to_an_executed_request(server: Server) {
        let proxy = before(&server);
        let mut client = through(&proxy);
        proxy.lose_matching("counter");
        assert!(ends(increment(&mut client, "counter")));
        assert_eq!(get(&server, "counter"), Some(1));
        assert!(ends(increment(&mut client, "counter")), "the connection is cut for good");
        assert_eq!(get(&server, "counter"), Some(1));
        let stats = proxy.stats();
        assert_eq!((stats.lost, stats.armed, stats.requests["INCR"]), (1, 0, 1));
    }

    fn replies_before_the_lost_one_pass_and_none_behind_it(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.lose(3);
        for key in ["a", "b", "c", "d"] {
            send(&mut client, &["INCRBY", key, "7"]);
        }
        assert_eq!(read_to_end(&mut client), ":7\r\n:7\r\n");
        assert_eq!(get(&server, "c"), Some(7));
    }

    fn a_loss_leaves_other_connections_alone(server: Server) {
        let proxy = before(&server);
        let (mut one, mut other) = (through(&proxy), through(&proxy));
        proxy.lose_matching("of-one");
        assert_eq!(increment(&mut other, "of-other").unwrap(), 1);
        assert!(ends(increment(&mut one, "of-one")));
        assert_eq!(increment(&mut other, "of-other").unwrap(), 2);
        assert_eq!(increment(&mut through(&proxy), "of-one").unwrap(), 2);
    }

    fn held_replies_pass_in_order_after_go(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.hold();
        for amount in ["1", "2", "3"] {
            send(&mut client, &["INCRBY", "counter", amount]);
        }
        proxy.await_held(3).unwrap();
        assert_eq!(get(&server, "counter"), Some(6));
        assert!(is_silent(&mut client));
        proxy.go();
        assert_eq!(read_exactly(&mut client, 12), ":1\r\n:3\r\n:6\r\n");
        assert_eq!(proxy.stats().held, 0);
    }

    fn one_held_reply_holds_those_behind_it_and_no_others(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.hold_matching("middle");
        for key in ["first", "middle", "last"] {
            send(&mut client, &["INCR", key]);
        }
        assert_eq!(read_exactly(&mut client, 4), ":1\r\n");
        proxy.await_held(2).unwrap();
        assert!(is_silent(&mut client));
        assert_eq!(increment(&mut through(&proxy), "middle").unwrap(), 2);
        proxy.go();
        assert_eq!(read_exactly(&mut client, 8), ":1\r\n:1\r\n");
    }

    /// Its caller may go on before the proxy has noted that the bytes are out.
    fn a_reply_that_the_client_has_is_not_held(server: Server) {
        let proxy = before(&server);
        let mut client = through(&proxy);
        for total in 1..=500 {
            assert_eq!(increment(&mut client, "counter").unwrap(), total);
            proxy.hold();
            assert_eq!(proxy.stats().held, 0);
            proxy.go();
        }
    }

    fn a_cut_takes_held_replies_with_it(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.hold();
        send(&mut client, &["INCR", "counter"]);
        proxy.await_held(1).unwrap();
        proxy.cut();
        proxy.go();
        assert_eq!(read_to_end(&mut client), "");
        assert_eq!(get(&server, "counter"), Some(1));
        assert_eq!(increment(&mut through(&proxy), "counter").unwrap(), 2);
    }

    fn replies_end_while_requests_still_reach_the_server(server: Server) {
        let proxy = before(&server);
        let (mut client, mut other) = (raw(&proxy), through(&proxy));
        proxy.half_close_matching("b");
        for key in ["a", "b", "c"] {
            send(&mut client, &["INCR", key]);
        }
        assert_eq!(read_to_end(&mut client), ":1\r\n", "earlier replies pass");
        send(&mut client, &["INCR", "d"]);
        proxy.await_lost(3).unwrap();
        assert_eq!(["b", "c", "d"].map(|key| get(&server, key)), [Some(1); 3]);
        assert_eq!(increment(&mut other, "a").unwrap(), 2, "others go on");
        assert_eq!((proxy.stats().armed, proxy.stats().open), (0, 2));
    }

    fn all_replies_end_now_and_a_client_that_closes_too_is_forgotten(server: Server) {
        let proxy = before(&server);
        let mut clients = [raw(&proxy), raw(&proxy)];
        for client in &mut clients {
            send(client, &["INCR", "counter"]);
            read_exactly(client, 4);
        }
        proxy.half_close();
        for client in &mut clients {
            assert_eq!(read_to_end(client), "");
            send(client, &["INCR", "counter"]);
        }
        proxy.await_lost(2).unwrap();
        assert_eq!(get(&server, "counter"), Some(4));
        drop(clients);
        let latest = Instant::now() + Duration::from_secs(10);
        while proxy.stats().open > 0 {
            assert!(Instant::now() < latest, "{:?}", proxy.stats());
            std::thread::yield_now();
        }
    }

    fn a_request_that_is_cut_off_never_reaches_the_server(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.cut_before(3);
        for key in ["a", "b", "c"] {
            send(&mut client, &["INCR", key]);
        }
        assert_eq!(read_to_end(&mut client), ":1\r\n:1\r\n", "earlier replies pass");
        assert_eq!(get(&server, "c"), None);
        proxy.cut_before_matching("c");
        assert!(ends(increment(&mut through(&proxy), "c")));
        assert_eq!((get(&server, "c"), proxy.stats().armed), (None, 0));
    }

    fn refusing_leaves_open_connections_alone(server: Server) {
        let proxy = before(&server);
        let mut client = through(&proxy);
        proxy.refuse().unwrap();
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(increment(&mut client, "counter").unwrap(), 1);
        proxy.accept().unwrap();
        assert_eq!(increment(&mut through(&proxy), "counter").unwrap(), 2);
    }

    fn a_delay_is_the_age_of_a_request_and_does_not_add_up(server: Server) {
        const DELAY: Duration = Duration::from_millis(200);
        let proxy = before(&server);
        let mut client = raw(&proxy);
        proxy.delay(DELAY);
        let start = Instant::now();
        for _ in 0..50 {
            send(&mut client, &["INCR", "counter"]);
        }
        let length = ":1\r\n".len() * 9 + ":10\r\n".len() * 41;
        let replies = read_exactly(&mut client, length);
        assert!(replies.ends_with(":50\r\n") && start.elapsed() >= DELAY);
        assert!(start.elapsed() < DELAY * 25, "fifty delays in a row would be twice that");
    }

    fn messages_are_no_replies(server: Server) {
        for hello in [None, Some(3)] {
            let proxy = before(&server);
            let mut client = raw(&proxy);
            if hello.is_some() {
                send(&mut client, &["HELLO", "3"]);
                send(&mut client, &["ECHO", "greeted"]);
                read_until(&mut client, "greeted\r\n");
            }
            send(&mut client, &["SUBSCRIBE", "one", "two"]);
            read_until(&mut client, ":2\r\n");
            let heard: i64 = redis::cmd("PUBLISH").arg("two").arg("news").query(&mut server.connection()).unwrap();
            assert_eq!(heard, 1);
            read_until(&mut client, "news\r\n");
            proxy.lose(2);
            send(&mut client, &["UNSUBSCRIBE"]);
            read_until(&mut client, ":0\r\n");
            send(&mut client, &["PING"]);
            assert_eq!(read_to_end(&mut client), "");
            assert_eq!(proxy.stats().malformed, 0);
        }
    }

    fn bytes_pass_unchanged(server: Server) {
        let proxy = before(&server);
        let mut client = through(&proxy);
        let blob: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        redis::cmd("SET").arg("blob").arg(&blob).exec(&mut client).unwrap();
        assert_eq!(redis::cmd("GET").arg("blob").query::<Vec<u8>>(&mut client).unwrap(), blob);
        assert_eq!(redis::cmd("GET").arg("blob").query::<Vec<u8>>(&mut server.connection()).unwrap(), blob);
    }

    fn no_reply_reaches_the_wrong_client(server: Server) {
        let proxy = before(&server);
        std::thread::scope(|scope| {
            for client in 0..8 {
                let proxy = &proxy;
                scope.spawn(move || {
                    let mut connection = through(proxy);
                    for call in 0..60 {
                        let word = format!("client-{client}-call-{call};");
                        let is_lost = call % 7 == client % 7;
                        if is_lost {
                            proxy.lose_matching(&word);
                        }
                        match redis::cmd("ECHO").arg(&word).query::<String>(&mut connection) {
                            Ok(echo) => assert_eq!((echo, is_lost), (word, false)),
                            Err(error) => {
                                assert!(is_lost && ends(Err(error)));
                                connection = through(proxy);
                            }
                        }
                    }
                });
            }
        });
        let stats = proxy.stats();
        assert_eq!((stats.requests["ECHO"], stats.armed), (480, 0));
    }

    fn a_server_that_restarts_is_found_again(server: Server) {
        let mut server = server;
        let proxy = before(&server);
        let mut client = through(&proxy);
        assert_eq!(increment(&mut client, "counter").unwrap(), 1);
        server.restart();
        assert!(ends(increment(&mut client, "counter")));
        assert_eq!(increment(&mut through(&proxy), "counter").unwrap(), 1);
    }

    fn what_is_no_request_ends_the_connection(server: Server) {
        let proxy = before(&server);
        let mut client = raw(&proxy);
        client.write_all(b"+PING\r\n").unwrap();
        assert_eq!(read_to_end(&mut client), "");
        assert_eq!(proxy.stats().malformed, 1);
    }
}

fn before(server: &Server) -> Proxy {
    Proxy::before(server.address().parse().unwrap()).unwrap()
}

fn through(proxy: &Proxy) -> Connection {
    redis::Client::open(proxy.url())
        .unwrap()
        .get_connection()
        .unwrap()
}

/// A bare socket: redis-rs would not show which reply came in which place. It panics rather than hang.
fn raw(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

fn send(client: &mut TcpStream, words: &[&str]) {
    client
        .write_all(&redis::cmd(words[0]).arg(&words[1..]).get_packed_command())
        .unwrap();
}

fn read_exactly(client: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read_until(client: &mut TcpStream, end: &str) {
    let mut text = String::new();
    while !text.ends_with(end) {
        text.push_str(&read_exactly(client, 1));
    }
}

fn read_to_end(client: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    loop {
        match client.read(&mut byte) {
            Ok(1) => text.push(char::from(byte[0])),
            Ok(_) => return text,
            // The proxy closed while more of our requests were on their way to it.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return text,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether nothing has arrived so far.
fn is_silent(client: &mut TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = client.read(&mut [0]);
    client.set_nonblocking(false).unwrap();
    matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn increment(client: &mut Connection, key: &str) -> Result<i64, RedisError> {
    redis::cmd("INCR").arg(key).query(client)
}

fn get(server: &Server, key: &str) -> Option<i64> {
    redis::cmd("GET")
        .arg(key)
        .query(&mut server.connection())
        .unwrap()
}

/// Whether a call ended because its connection did.
fn ends(result: Result<i64, RedisError>) -> bool {
    let error = result.expect_err("the connection to be cut");
    error.is_io_error() && !error.is_timeout()
}

#[test]
fn a_server_that_is_down_looks_like_a_connection_that_ends() {
    let server = Server::valkey();
    let proxy = before(&server);
    drop(server);
    let mut client = raw(&proxy);
    assert_eq!(read_to_end(&mut client), "");
}

#[test]
fn a_value_is_not_needed() {
    // A nil reply is a reply: the next one must not slip into its place.
    let server = Server::valkey();
    let proxy = before(&server);
    let mut client = through(&proxy);
    assert_eq!(
        redis::cmd("GET")
            .arg("none")
            .query::<Value>(&mut client)
            .unwrap(),
        Value::Nil
    );
    proxy.lose(1);
    assert!(ends(increment(&mut client, "counter")));
    assert_eq!(get(&server, "counter"), Some(1));
}
