//! With a terminal: questions, progress and colours.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tallylock_testkit::Server;

use crate::run::{TTL, client, command, plant, pttl};

/// A terminal: where the test sits, and where the command does.
fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (File::from(ours), theirs)
}

/// Runs it on a terminal and types an answer; gives the exit code and all that the terminal showed.
fn on_a_terminal(mut command: Command, answer: &str) -> (Option<i32>, String) {
    let (mut ours, theirs) = terminal();
    let stdio = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut child = command
        .env("TERM", "xterm")
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    // The command has the only ends on its side, so that the terminal ends with it.
    drop(command);
    drop(theirs);
    ours.write_all(answer.as_bytes()).unwrap();
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // On Linux the end of a terminal is an error.
    while let Ok(read @ 1..) = ours.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
    }
    (
        child.wait().unwrap().code(),
        String::from_utf8(shown).unwrap(),
    )
}

#[test]
fn a_repair_asks_with_the_number_of_keys() {
    let server = Server::valkey();
    for number in 0..3 {
        plant(&server, &format!("session:{number}"), "1");
    }
    let repair = || {
        command([
            "audit",
            &server.url(),
            "--match",
            "session:*",
            "--repair",
            "--ttl",
            "15m",
        ])
    };
    let (code, shown) = on_a_terminal(repair(), "n\n");
    assert!(
        code == Some(1) && shown.contains("Give 3 keys a TTL of 15m? [y/N]"),
        "{code:?} {shown}"
    );
    assert_eq!(pttl(&server, "session:0"), -1);
    let (code, shown) = on_a_terminal(repair(), "y\n");
    assert!(
        code == Some(0) && shown.contains("3 keys were given a TTL"),
        "{code:?} {shown}"
    );
    assert!((1..=900_000).contains(&pttl(&server, "session:0")));
}

#[test]
fn a_drain_asks() {
    let server = Server::valkey();
    let counter = client(&server).counter("session:1", TTL).unwrap();
    counter.add(30).unwrap();
    let drain = || command(["counter", "drain", &server.url(), "session:1"]);
    assert_eq!(
        on_a_terminal(drain(), "\n").0,
        Some(1),
        "an empty answer means no"
    );
    assert_eq!(counter.read().unwrap(), Some(30));
    let (code, shown) = on_a_terminal(drain(), "yes\n");
    assert!(code == Some(0) && shown.contains("30"), "{code:?} {shown}");
}

#[test]
fn a_steal_asks_with_the_holder() {
    let server = Server::valkey();
    plant(&server, "invoice:42", "theirs");
    let steal = || {
        let url = server.url();
        let why = ["--expect", "theirs", "--reason", "it hangs"];
        command(["lock", "steal", &url, "invoice:42"].iter().chain(&why))
    };
    let (code, shown) = on_a_terminal(steal(), "n\n");
    assert!(
        code == Some(1) && shown.contains("another library") && shown.contains("without a TTL"),
        "{code:?} {shown}"
    );
    assert_eq!(pttl(&server, "invoice:42"), -1);
    assert_eq!(on_a_terminal(steal(), "y\n").0, Some(0));
    assert_eq!(pttl(&server, "invoice:42"), -2);
    let (code, shown) = on_a_terminal(steal(), "");
    assert!(
        code == Some(1) && !shown.contains("[y/N]"),
        "{code:?} {shown}"
    );
}

#[test]
fn there_is_progress_and_there_are_colours_unless_they_are_unwanted() {
    let server = Server::valkey();
    let mut connection = server.connection();
    let mut many = redis::pipe();
    for number in 0..5_000 {
        many.cmd("SET").arg(number).arg(1);
    }
    many.exec(&mut connection).unwrap();
    let (_, shown) = on_a_terminal(command(["audit", &server.url()]), "");
    assert!(shown.contains("of 5000 keys"), "{shown}");

    let (_, shown) = on_a_terminal(command(["doctor", &server.url()]), "");
    assert!(shown.contains("\x1b[33mwarning"), "{shown}");
    let mut plain = command(["doctor", &server.url()]);
    plain.env("NO_COLOR", "1");
    let (_, shown) = on_a_terminal(plain, "");
    assert!(
        shown.contains("warning") && !shown.contains('\x1b'),
        "{shown}"
    );
}
