//! How the command ends: each exit code, with one line that says why.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use tallylock_core::script::Script;
use tallylock_testkit::{Proxy, Server};

use crate::run::{Run, TTL, account, client, command, plant, run};

/// It failed with this code and one line.
fn assert_ends(run: &Run, code: i32, said: &str) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.lines().count()),
        ("", 1),
        "{run:?}"
    );
    assert!(
        run.stderr.starts_with("tallylock: ") && run.stderr.contains(said),
        "{run:?}"
    );
}

#[test]
fn with_64_where_the_arguments_are_wrong() {
    for (arguments, said) in [
        (vec![], "a command is missing"),
        (
            vec!["audits"],
            "argument 1 is not known here (did you mean audit?)",
        ),
        (vec!["audit"], "TALLYLOCK_REDIS_URL"),
        (vec!["audit", "http://127.0.0.1"], "scheme"),
        (
            vec!["audit", "redis://h", "--mach", "x"],
            "did you mean --match?",
        ),
        (vec!["audit", "redis://h", "--near", "soon"], "such as 15m"),
        (
            vec!["audit", "redis://h", "--match"],
            "--match <PATTERN> needs a value",
        ),
        (
            vec!["audit", "redis://h", "--repair"],
            "missing: --ttl <DURATION>",
        ),
        (
            vec!["lock", "steal", "redis://h", "k", "--reason", "x"],
            "missing: --expect <TOKEN>",
        ),
        (
            vec![
                "lock",
                "steal",
                "redis://h",
                "k",
                "--expect",
                "x",
                "--reason",
                "y",
            ],
            "give --yes",
        ),
        (vec!["lock", "show"], "missing: <KEY>"),
        (vec!["lock", "show", "redis://h"], "the key is missing"),
    ] {
        assert_ends(&run(arguments), 64, said);
    }
}

#[test]
fn with_65_where_the_key_holds_something_else() {
    let server = Server::valkey();
    plant(&server, "session:1", "text");
    redis::cmd("LPUSH")
        .arg("session:2")
        .arg("x")
        .exec(&mut server.connection())
        .unwrap();
    assert_ends(
        &run(["counter", "show", &server.url(), "session:1"]),
        65,
        "not_an_integer",
    );
    assert_ends(
        &run(["counter", "drain", &server.url(), "session:2", "--yes"]),
        65,
        "wrong_type",
    );
    assert_ends(
        &run(["lock", "show", &server.url(), "session:2"]),
        65,
        "wrong_type",
    );
}

#[test]
fn with_69_where_nobody_answers() {
    let server = Server::valkey();
    server.pause();
    assert_ends(
        &run(["audit", &server.url(), "--timeout", "300ms"]),
        69,
        "unavailable",
    );
    let url = server.url();
    drop(server);
    for arguments in [
        vec!["audit"],
        vec!["doctor"],
        vec!["lock", "list"],
        vec!["watch"],
    ] {
        assert_ends(
            &run(arguments.into_iter().chain([url.as_str()])),
            69,
            "unavailable",
        );
    }
}

#[test]
fn with_70_where_the_server_cannot_do_it() {
    assert_ends(&run(["doctor", "memory://"]), 70, "unsupported");
}

#[test]
#[cfg(target_os = "linux")]
fn with_74_where_the_output_cannot_be_written() {
    let server = Server::valkey();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = command(["audit", &server.url()])
        .stdout(full)
        .output()
        .unwrap();
    assert_ends(&output.into(), 74, "the output cannot be written");
}

#[test]
fn with_75_where_nobody_knows_what_was_done() {
    let server = Server::valkey();
    let counter = client(&server).counter("session:1", TTL).unwrap();
    counter.add(30).unwrap();
    counter.drain().unwrap();
    counter.add(30).unwrap();
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    proxy.lose_matching(Script::CounterDrain.sha());
    assert_ends(
        &run(["counter", "drain", &proxy.url(), "session:1", "--yes"]),
        75,
        "outcome_unknown",
    );
    assert_eq!(counter.read().unwrap(), Some(0), "that time it was");

    let lock = client(&server).lock("invoice:42", TTL).unwrap();
    plant(&server, "warm-up", "theirs");
    let steal = |url: &str, key: &str| {
        let why = ["--expect", "theirs", "--reason", "it hangs", "--yes"];
        run(["lock", "steal", url, key].iter().chain(&why))
    };
    assert_eq!(steal(&server.url(), "warm-up").code, Some(0));
    plant(&server, "invoice:42", "theirs");
    proxy.lose_matching(Script::LockSteal.sha());
    assert_ends(&steal(&proxy.url(), "invoice:42"), 75, "outcome_unknown");
    assert_eq!(lock.inspect().unwrap(), None, "that time it was");
}

#[test]
fn with_77_where_the_account_may_not() {
    let server = Server::valkey();
    let url = account(&server, &["~*", "+@all", "-scan", "-monitor"]);
    assert_ends(&run(["audit", &url]), 77, "scan");
    assert_ends(&run(["watch", &url]), 77, "monitor");
    assert_ends(
        &run(["audit", &url.replace("secret", "wrong")]),
        77,
        "forbidden",
    );
}

#[test]
fn quietly_when_the_reader_goes_away() {
    let server = Server::valkey();
    let client = client(&server);
    // More than a pipe takes.
    for number in 0..3_000 {
        client.counter("session:1", TTL).unwrap().add(1).unwrap();
        client
            .counter("session:1", TTL)
            .unwrap()
            .claim(format!("{number:0100}"))
            .unwrap();
    }
    let mut child = command(["counter", "claims", &server.url(), "session:1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(line.contains("AMOUNT"), "{line}");
    drop(output);
    let ended: Run = child.wait_with_output().unwrap().into();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
}

#[test]
fn help_and_version_are_on_standard_output() {
    let help = run(["--help"]);
    assert!(
        help.code == Some(0) && help.stdout.contains("Examples:") && help.stderr.is_empty(),
        "{help:?}"
    );
    assert!(run(["watch", "--help"]).stdout.contains("MONITOR"));
    assert!(
        run(["--version"])
            .stdout
            .contains(env!("CARGO_PKG_VERSION"))
    );
}
