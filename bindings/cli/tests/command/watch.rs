//! `tallylock watch`.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tallylock_testkit::{Server, on_each_server};

use crate::run::{TTL, account, client, command, plant, run};

/// A watch whose MONITOR is on.
fn watching(server: &Server, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let url = server.url();
    let mut child = command(["watch", &url].iter().chain(arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut advice = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut advice)
        .unwrap();
    assert!(advice.contains("MONITOR, which costs"), "{advice}");
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn is_a_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|digit| if digit.is_ascii_digit() { '0' } else { digit })
        .collect();
    shape == "00:00:00"
}

on_each_server! {
    fn each_verb_is_seen_once_as_it_happens(server: Server) {
        let (mut child, mut lines) = watching(&server, &["--match", "session:*", "--for", "60s"]);
        let client = client(&server);
        let counter = client.counter("session:1", TTL).unwrap();
        counter.add(30).unwrap();
        counter.add(-4).unwrap();
        client.counter("other:1", TTL).unwrap().add(1).unwrap();
        counter.add_once(1, "evt 1").unwrap();
        counter.read().unwrap();
        counter.claim("run-1").unwrap();
        counter.commit("run-1", 27).unwrap();
        counter.claim("run-2").unwrap();
        counter.abort("run-1").unwrap_err();
        counter.clone().fenced(7).drain().unwrap();
        counter.finish().unwrap();
        let lease = client.lock("session:lock", Duration::from_secs(30)).unwrap().acquire(Duration::ZERO).unwrap();
        lease.extend(Duration::from_secs(60)).unwrap();
        lease.release().unwrap();
        client.value("session:2").unwrap().touch(TTL).unwrap();
        let lock = client.lock("session:lock", Duration::from_secs(30)).unwrap();
        lock.acquire(Duration::ZERO).unwrap();
        lock.steal(lock.inspect().unwrap().unwrap().token, "it hangs").unwrap();
        let guarded = client.guarded("session:4").unwrap();
        guarded.set("text", 7, TTL).unwrap();
        guarded.delete(7).unwrap();
        plant(&server, "session:3", "1");
        client.heal("session:3", TTL).unwrap();
        client.counter("session:\x1b1", TTL).unwrap().add(1).unwrap();

        let expected = [
            "add session:1 +30", "add session:1 -4", "add session:1 +1 once evt 1", "claim session:1 run-1",
            "commit session:1 run-1 of 27", "claim session:1 run-2", "abort session:1 run-1", "drain session:1 fence 7",
            "finish session:1", "acquire session:lock for 30s by ", "extend session:lock for 1m by ",
            "release session:lock by ", "touch session:2 for 15m",
            "acquire session:lock for 30s by ", "steal session:lock from ", "set session:4 for 15m fence 7", "delete session:4 fence 7",
            "heal session:3 for 15m", r"add session:\x1b1 +1",
        ];
        for expected in expected {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let line = line.trim_end();
            let (time, seen) = line.split_once(' ').unwrap_or_else(|| panic!("no {expected}"));
            assert!(is_a_time(time), "{line}");
            assert!(if expected.ends_with("by ") || expected.ends_with("from ") { seen.starts_with(expected) } else { seen == expected }, "{line}, not {expected}");
        }
        let process = Pid::from_child(&child);
        // Not by SIGINT: what runs the tests in the background may have it ignored, by all that they start too.
        kill_process(process, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15), "it sets no handlers");
    }

    fn it_ends_when_its_time_is_over(server: Server) {
        let begun = Instant::now();
        let ended = run(["watch", &server.url(), "--for", "300ms"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
        assert!(begun.elapsed() >= Duration::from_millis(300));
    }

    fn it_needs_the_right(server: Server) {
        let url = account(&server, &["~*", "+@all", "-monitor"]);
        let refused = run(["watch", &url, "--for", "300ms"]);
        assert_eq!(refused.code, Some(77), "{refused:?}");
    }

    fn it_ends_with_the_server(server: Server) {
        let (mut child, _lines) = watching(&server, &["--for", "60s"]);
        drop(server);
        assert_eq!(child.wait().unwrap().code(), Some(69));
    }
}
