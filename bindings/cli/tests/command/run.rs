//! Running the command.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tallylock::blocking::Client;
use tallylock_testkit::Server;

pub(crate) const TTL: Duration = Duration::from_secs(900);

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command with these arguments, nothing to read, and no URL in its environment.
pub(crate) fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallylock"));
    command
        .args(arguments)
        .env_remove("TALLYLOCK_REDIS_URL")
        .stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    let output = command(arguments).output().expect("the command to run");
    output.into()
}

/// Runs it with `--json` added; it must succeed.
pub(crate) fn json(arguments: &[&str]) -> Value {
    let (_, value) = json_and_code(arguments);
    value
}

/// Runs it with `--json` added.
pub(crate) fn json_and_code(arguments: &[&str]) -> (Option<i32>, Value) {
    let run = run(arguments.iter().copied().chain(["--json"]));
    let value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    (run.code, value)
}

pub(crate) fn client(server: &Server) -> Client {
    Client::connect(&server.url()).expect("a client")
}

/// The remaining time of a key in milliseconds, -1 without a TTL.
pub(crate) fn pttl(server: &Server, key: &str) -> i64 {
    redis::cmd("PTTL")
        .arg(key)
        .query(&mut server.connection())
        .expect("the remaining time")
}

/// Puts a text there, without a TTL.
pub(crate) fn plant(server: &Server, key: &str, text: &str) {
    redis::cmd("SET")
        .arg(key)
        .arg(text)
        .exec(&mut server.connection())
        .expect("a key");
}

/// Makes an account with this password, `secret` if not said otherwise in the rules.
pub(crate) fn account(server: &Server, rules: &[&str]) -> String {
    redis::cmd("ACL")
        .arg("SETUSER")
        .arg("operator")
        .arg(&["reset", "on", ">secret"])
        .arg(rules)
        .exec(&mut server.connection())
        .expect("an account");
    format!("redis://operator:secret@{}", server.address())
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("the output in UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("the errors in UTF-8"),
        }
    }
}
