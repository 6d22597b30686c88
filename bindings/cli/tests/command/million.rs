//! An audit of a million keys: all that have no TTL are found and repaired, in little time and little memory.
//!
//! It runs the command as it is shipped. A build without optimizations takes minutes for it (the parser of replies is
//! twenty times slower there), and its time and memory are not what users get.

#![cfg(target_os = "linux")]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tallylock_testkit::Server;

/// What the command may take at most; a list of the keys alone would be more.
const MOST_KIB: u64 = 24 * 1024;

const KEYS: u32 = 1_000_000;

#[test]
fn a_thousand_keys_among_a_million_are_found_and_repaired() {
    let shipped = build();
    let server = Server::valkey();
    plant(&server);
    let url = server.url();

    let repair = [
        "audit",
        &url,
        "--match",
        "session:*",
        "--repair",
        "--ttl",
        "15m",
        "--rate",
        "100000",
        "--yes",
        "--json",
    ];
    let report = measure(&shipped, &repair);
    assert_eq!(
        (&report["keys"], &report["without_ttl"], &report["repaired"]),
        (&json!(KEYS), &json!(1_000), &json!(1_000))
    );
    assert_eq!(
        report["kinds"]["counter"],
        json!({ "keys": KEYS, "without_ttl": 1_000 })
    );

    let times: (u32, u32, u32) = redis::cmd("EVAL")
        .arg(include_str!("million/times.lua"))
        .arg(0)
        .arg(KEYS)
        .query(&mut server.connection())
        .unwrap();
    assert_eq!(
        times,
        (1_000, KEYS - 1_000, 0),
        "planted ones with 15 minutes, others as they were, and all else"
    );
}

/// The command, built as it is shipped; `make setup` has done so before.
fn build() -> String {
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "tallylock-cli",
            "--message-format",
            "json",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo to run");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let messages = serde_json::Deserializer::from_slice(&built.stdout).into_iter::<Value>();
    let executables =
        messages.filter_map(|message| message.ok()?["executable"].as_str().map(str::to_owned));
    executables
        .last()
        .expect("cargo to say where the command is")
}

/// Each thousandth key has no TTL, the others have an hour.
fn plant(server: &Server) {
    let mut connection = server.connection();
    for first in (0..KEYS).step_by(100_000) {
        redis::cmd("EVAL")
            .arg(include_str!("million/plant.lua"))
            .arg(0)
            .arg(first)
            .arg(first + 100_000)
            .exec(&mut connection)
            .unwrap();
    }
}

/// Runs it, looks at its memory as it goes, and gives what it prints.
fn measure(command: &str, arguments: &[&str]) -> Value {
    let begun = Instant::now();
    let mut child = Command::new(command)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command to run");
    let mut highest = 0;
    while child.try_wait().expect("the command's state").is_none() {
        // The highest ever, as the kernel has it: a look in between misses nothing but what comes after the last one.
        highest = highest.max(peak_kib(child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut printed = String::new();
    child
        .stdout
        .take()
        .expect("its output")
        .read_to_string(&mut printed)
        .expect("its output");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert!((1..=MOST_KIB).contains(&highest), "{highest} KiB");
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// The most memory that a process has had resident; 0 once it has ended.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0)
}
