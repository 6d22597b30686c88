//! Processes that hold a lock and are stopped for longer than its TTL, or killed.

mod fleet;

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fleet::{five, on_each, until, urls};
use redis::Commands as _;
use rustix::process::{Pid, Signal, kill_process};
use tallylock::{Client, Error, blocking};
use tallylock_testkit::{Server, on_each_server};

/// Short enough to be outlived in a test, long enough for a busy machine.
const TTL: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(60);
/// How late a busy machine may do what it could have done in time.
const LATE: Duration = Duration::from_secs(5);

const URLS: &str = "TALLYLOCK_TEST_HOLDER_URLS";
const FACE: &str = "TALLYLOCK_TEST_HOLDER_FACE";

on_each_server! {
    fn a_holder_that_was_stopped_is_told_so_and_harms_nobody(server: Server) {
        for face in ["blocking", "futures"] {
            let mut holder = Holder::start(face, &[server.url()]);
            let fence = holder.hold();
            outlive(&[&server]);
            holder.send(Signal::STOP);
            let client = blocking::Client::connect(&server.url()).unwrap();
            let lease = client.lock("l", LONG).unwrap().acquire(LONG).unwrap();
            assert!(lease.fence() > fence);
            let written = client.guarded("data").unwrap();
            written.set("new", lease.fence(), LONG).unwrap();
            // It is waiting in the holder's input when that goes on.
            holder.ask("look");
            holder.send(Signal::CONT);
            let ensured = holder.answer();
            assert!(["lost expired", "lost unreachable"].contains(&ensured.as_str()), "{ensured}");
            assert_eq!(holder.told("write"), "fenced_off");
            assert_eq!(holder.told("release"), ensured, "the first reason stays");
            lease.verify(Duration::ZERO).unwrap();
            assert_eq!(client.value("data").unwrap().get().unwrap().unwrap(), b"new");
            lease.release().unwrap();
            holder.end();
        }
    }

    fn the_lock_of_a_holder_that_was_killed_is_free_after_its_ttl(server: Server) {
        for face in ["blocking", "futures"] {
            let mut holder = Holder::start(face, &[server.url()]);
            let fence = holder.hold();
            outlive(&[&server]);
            let client = blocking::Client::connect(&server.url()).unwrap();
            let lock = client.lock("l", LONG).unwrap();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| (lock.acquire(LONG).unwrap(), Instant::now()));
                let begun = Instant::now();
                holder.kill();
                let (lease, at) = waiting.join().unwrap();
                assert!(lease.fence() > fence);
                assert!(at - begun < TTL + LATE, "{:?}", at - begun);
                lease.release().unwrap();
            });
            let left: Vec<String> = server.connection().keys("*").unwrap();
            assert_eq!(left, ["l{l}:tlu1:fence"]);
        }
    }
}

#[test]
fn a_holder_over_five_servers_that_was_stopped_is_told_so() {
    let servers = five();
    let mut holder = Holder::start("redlock", &urls(&servers));
    let fence = holder.hold();
    outlive(&servers.iter().collect::<Vec<_>>());
    holder.send(Signal::STOP);
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lease = redlock.lock("l", LONG).unwrap().acquire(LONG).unwrap();
    assert!(lease.fence() > fence);
    holder.ask("look");
    holder.send(Signal::CONT);
    let ensured = holder.answer();
    assert!(
        ["lost expired", "lost unreachable"].contains(&ensured.as_str()),
        "{ensured}"
    );
    assert_eq!(holder.told("release"), ensured, "the first reason stays");
    lease.verify(Duration::ZERO).unwrap();
    lease.release().unwrap();
    holder.end();
    fleet::assert_free(&servers);
}

#[test]
fn the_lock_of_a_killed_holder_over_five_servers_is_free_after_its_ttl() {
    let servers = five();
    let mut holder = Holder::start("redlock", &urls(&servers));
    let fence = holder.hold();
    outlive(&servers.iter().collect::<Vec<_>>());
    let redlock = blocking::Redlock::connect(urls(&servers)).unwrap();
    let lock = redlock.lock("l", LONG).unwrap();
    let begun = Instant::now();
    holder.kill();
    let lease = lock.acquire(LONG).unwrap();
    assert!(begun.elapsed() < TTL + LATE, "{:?}", begun.elapsed());
    assert!(lease.fence() > fence);
    lease.release().unwrap();
    let left = || on_each(&servers, "l");
    until(
        || left().iter().all(Option::is_none),
        || format!("{:?}", left()),
    );
}

/// Waits until the holder has renewed the lock: it is there when its first time is over.
fn outlive(servers: &[&Server]) {
    std::thread::sleep(TTL + TTL / 4);
    let held = |server: &&&Server| server.connection().exists("l").unwrap();
    assert!(servers.iter().filter(held).count() > servers.len() / 2);
}

/// A process that holds a lock and does what it is told, a line at a time.
struct Holder {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    fn start(face: &str, urls: &[String]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "a_holder"])
            .env(URLS, urls.join(","))
            .env(FACE, face)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            input,
            output,
        }
    }

    /// Waits until it has the lock; gives the fence.
    fn hold(&mut self) -> u64 {
        self.answer().parse().unwrap()
    }

    fn ask(&mut self, what: &str) {
        writeln!(self.input, "{what}").unwrap();
    }

    /// What it says next; the test runner in it says other things too.
    fn answer(&mut self) -> String {
        let mut lines = self.output.by_ref().map(Result::unwrap);
        let said = lines.find_map(|line| line.strip_prefix("holder: ").map(str::to_owned));
        said.expect("an answer of the holder")
    }

    fn told(&mut self, what: &str) -> String {
        self.ask(what);
        self.answer()
    }

    fn send(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        assert!(!self.process.wait().unwrap().success());
    }

    /// Lets it end by itself.
    fn end(self) {
        let Self {
            mut process,
            input,
            output,
        } = self;
        drop(input);
        assert!(process.wait().unwrap().success());
        drop(output);
    }
}

/// Not a test of its own: the process that holds.
#[test]
#[ignore = "started by the tests above"]
fn a_holder() {
    let urls = std::env::var(URLS).unwrap();
    let urls: Vec<&str> = urls.split(',').collect();
    let face = std::env::var(FACE).unwrap();
    match face.as_str() {
        "blocking" => {
            let client = blocking::Client::connect(urls[0]).unwrap();
            let lease = client.lock("l", TTL).unwrap().acquire(LONG).unwrap();
            say(lease.fence());
            obey(|command| match command {
                "look" => lease.ensure(Duration::ZERO),
                "write" => client.guarded("data")?.set("old", lease.fence(), LONG),
                _ => lease.release(),
            });
        }
        "redlock" => {
            let redlock = blocking::Redlock::connect(urls).unwrap();
            let lease = redlock.lock("l", TTL).unwrap().acquire(LONG).unwrap();
            say(lease.fence());
            obey(|command| match command {
                "look" => lease.ensure(Duration::ZERO),
                _ => lease.release(),
            });
        }
        _ => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let client = runtime.block_on(Client::connect(urls[0])).unwrap();
            let lock = client.lock("l", TTL).unwrap();
            let lease = runtime.block_on(lock.acquire(LONG)).unwrap();
            say(lease.fence());
            obey(|command| match command {
                "look" => lease.ensure(Duration::ZERO),
                "write" => {
                    let written = client.guarded("data")?;
                    runtime.block_on(written.set("old", lease.fence(), LONG))
                }
                _ => runtime.block_on(lease.release()),
            });
        }
    }
}

/// Does what the input says until it ends, and says how that went.
fn obey(run: impl Fn(&str) -> Result<(), Error>) {
    for command in std::io::stdin().lines() {
        match run(&command.unwrap()) {
            Ok(()) => say("done"),
            Err(error) => match error.code().reason() {
                Some(reason) => say(format_args!("lost {}", reason.as_str())),
                None => say(error.code().as_str()),
            },
        }
    }
}

fn say(what: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // The test runner may have begun the line.
    writeln!(out, "\nholder: {what}").unwrap();
    out.flush().unwrap();
}
