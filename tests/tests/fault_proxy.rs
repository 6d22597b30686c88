//! The fault proxy as the program that other languages' tests drive.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tallylock_testkit::Server;

/// The program as another language sees it: lines in, lines of JSON out.
struct Program {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tallylock-fault-proxy"))
            .args(arguments)
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

    fn answer(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    fn run(&mut self, command: &str) -> Value {
        writeln!(self.input, "{command}").unwrap();
        self.answer()
    }
}

#[test]
fn a_reply_is_lost_on_command() {
    let server = Server::valkey();
    let mut program = Program::start(&[&server.address()]);
    let started = program.answer();
    let url = format!("redis://{}", started["listen"].as_str().unwrap());
    let mut client = redis::Client::open(url).unwrap().get_connection().unwrap();
    assert_eq!(program.run("lose-matching a key"), json!({ "ok": true }));
    assert!(redis::cmd("INCR").arg("a key").exec(&mut client).is_err());
    assert_eq!(program.run("await-lost 1"), json!({ "ok": true }));
    let stats = &program.run("stats")["stats"];
    assert_eq!(
        (&stats["requests"]["INCR"], &stats["lost"], &stats["armed"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let value: i64 = redis::cmd("GET")
        .arg("a key")
        .query(&mut server.connection())
        .unwrap();
    assert_eq!(value, 1);
}

#[test]
fn a_wrong_command_is_answered_and_changes_nothing() {
    let server = Server::valkey();
    let mut program = Program::start(&[&server.address()]);
    program.answer();
    let answer = program.run("lose 0");
    assert_eq!(answer["ok"], json!(false));
    assert_eq!(answer["error"], json!("1 is the first"));
    assert_eq!(program.run("stats")["stats"]["armed"], json!(0));
}

#[test]
fn it_ends_with_its_input() {
    let server = Server::valkey();
    let mut program = Program::start(&[&server.address()]);
    program.answer();
    drop(program.input);
    assert!(program.process.wait().unwrap().success());
}

#[test]
fn it_refuses_wrong_arguments() {
    for arguments in [&["--no-such"][..], &[], &["a", "b"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tallylock-fault-proxy"));
        let status = program.args(arguments).output().unwrap().status;
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
}
