//! The test servers themselves: configured, paused, restarted, and never left behind.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tallylock_testkit::{Kind, Server, on_each_server};

const PATIENCE: Duration = Duration::from_secs(10);

on_each_server! {
    fn is_empty_and_keeps_nothing_on_disk(server: Server) {
        let mut connection = server.connection();
        assert_eq!(redis::cmd("DBSIZE").query::<i64>(&mut connection).unwrap(), 0);
        let save: (String, String) = redis::cmd("CONFIG").arg("GET").arg("save").query(&mut connection).unwrap();
        assert_eq!(save.1, "");
    }

    fn is_the_kind_it_says(server: Server) {
        let info: String = redis::cmd("INFO").arg("server").query(&mut server.connection()).unwrap();
        assert_eq!(info.contains("server_name:valkey"), server.kind() == Kind::Valkey);
        assert_eq!(info.contains("redis_version:6.2."), server.kind() == Kind::Redis);
    }

    fn answers_nothing_while_paused_and_everything_afterwards(server: Server) {
        let mut connection = server.connection();
        server.pause();
        connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let error = redis::cmd("SET").arg("k").arg("v").exec(&mut connection).unwrap_err();
        assert!(error.is_timeout(), "{error}");
        server.resume();
        let deadline = Instant::now() + PATIENCE;
        let mut other = server.connection();
        while redis::cmd("GET").arg("k").query::<Option<String>>(&mut other).unwrap().is_none() {
            assert!(Instant::now() < deadline, "the command that waited in the socket was never executed");
        }
    }

    fn comes_back_empty_on_the_same_port(server: Server) {
        let mut server = server;
        let port = server.port();
        redis::cmd("SET").arg("k").arg("v").exec(&mut server.connection()).unwrap();
        server.restart();
        assert_eq!(server.port(), port);
        assert_eq!(redis::cmd("DBSIZE").query::<i64>(&mut server.connection()).unwrap(), 0);
    }

    fn is_gone_when_dropped_even_while_paused(server: Server) {
        let address = server.address();
        server.pause();
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }

    fn listens_on_a_unix_socket_too(server: Server) {
        let url = format!("unix://{}", server.unix_socket().display());
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd("PING").exec(&mut connection).unwrap();
    }
}

#[test]
fn takes_arguments() {
    for kind in Kind::ALL {
        let server = kind.start(&["--requirepass", "secret", "--maxmemory", "3mb"]);
        let url = format!("redis://:secret@{}", server.address());
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        let limit: (String, String) = redis::cmd("CONFIG")
            .arg("GET")
            .arg("maxmemory")
            .query(&mut connection)
            .unwrap();
        assert_eq!(limit.1, "3145728");
    }
}

#[test]
#[should_panic(expected = "Bad directive")]
fn a_wrong_argument_is_shown() {
    Kind::Redis.start(&["--no-such-option", "1"]);
}

/// Not a test of its own: the process that the next test lets die.
#[test]
#[ignore = "started by a_server_dies_with_the_process_that_started_it"]
fn a_process_that_dies_with_a_server() {
    let server = Server::valkey();
    println!("\nport={}", server.port());
    std::process::abort();
}

#[test]
fn a_server_dies_with_the_process_that_started_it() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "a_process_that_dies_with_a_server",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let port: u16 = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("port=").map(|port| port.parse().unwrap()))
        .expect("the port of the other process's server");
    assert!(!child.wait().unwrap().success());
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(
            Instant::now() < deadline,
            "the server outlived its test process"
        );
    }
}
