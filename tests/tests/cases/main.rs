//! The conformance cases through both public faces of the Rust client, on `memory://` and on real servers.

mod check;
mod expected;
#[path = "../face/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod face;
mod format;
mod judge;
mod literals;
mod runner;
mod stage;

use std::path::{Path, PathBuf};

use tallylock::{Options, blocking};
use tallylock_testkit::{Kind, Server};

use face::{Face, at_once};
use format::{Case, Index, Must, Need, Only};
use stage::Stage;

/// What the types of this language cannot express: a `Duration` is not negative, and an amount is an `i64`.
const LACKS: [Need; 2] = [Need::NegativeDuration, Need::BigAmount];

#[test]
fn the_blocking_face_in_memory() {
    at_once(run_all::<blocking::Client>(None));
}

#[test]
fn the_blocking_face_on_valkey() {
    at_once(run_all::<blocking::Client>(Some(&Kind::Valkey.start(&[]))));
}

#[test]
fn the_blocking_face_on_redis() {
    at_once(run_all::<blocking::Client>(Some(&Kind::Redis.start(&[]))));
}

#[tokio::test]
async fn the_async_face_in_memory() {
    run_all::<tallylock::Client>(None).await;
}

#[tokio::test]
async fn the_async_face_on_valkey() {
    run_all::<tallylock::Client>(Some(&Kind::Valkey.start(&[]))).await;
}

#[tokio::test]
async fn the_async_face_on_redis() {
    run_all::<tallylock::Client>(Some(&Kind::Redis.start(&[]))).await;
}

/// By WATCH, MULTI and EXEC, since the account may not run scripts.
#[test]
fn the_blocking_face_without_scripts_on_valkey() {
    at_once(run_all::<blocking::Client>(Some(&without_scripts(
        Kind::Valkey,
    ))));
}

#[test]
fn the_blocking_face_without_scripts_on_redis() {
    at_once(run_all::<blocking::Client>(Some(&without_scripts(
        Kind::Redis,
    ))));
}

#[tokio::test]
async fn the_async_face_without_scripts_on_valkey() {
    run_all::<tallylock::Client>(Some(&without_scripts(Kind::Valkey))).await;
}

#[tokio::test]
async fn the_async_face_without_scripts_on_redis() {
    run_all::<tallylock::Client>(Some(&without_scripts(Kind::Redis))).await;
}

#[test]
fn the_blocking_face_refuses_or_fails_what_is_bad() {
    at_once(run_bad::<blocking::Client>());
}

#[tokio::test]
async fn the_async_face_refuses_or_fails_what_is_bad() {
    run_bad::<tallylock::Client>().await;
}

#[test]
fn every_file_is_listed() {
    let index = index();
    let good: Vec<_> = index
        .files
        .iter()
        .map(|listed| listed.file.clone())
        .chain(["index.json".into(), "schema.json".into()])
        .collect();
    let bad: Vec<_> = index.bad.iter().map(|bad| bad.file.clone()).collect();
    assert_eq!(sorted(good), json_files("cases"));
    assert_eq!(sorted(bad), json_files("cases-bad"));
}

async fn run_all<F: Face>(server: Option<&Server>) {
    let mut failures = Vec::new();
    let client = match server {
        Some(server) => Some(F::connect(Options::new(&server.url()).unwrap()).await),
        None => None,
    };
    for listed in index().files {
        let file = check::read(&text("cases", &listed.file))
            .unwrap_or_else(|why| panic!("{}: {why}", listed.file));
        let (mut ran, mut left_out) = (0, 0);
        for case in &file.cases {
            if is_left_out(case, server.is_some()) {
                left_out += 1;
                continue;
            }
            ran += 1;
            if let Err(why) = run_one(case, client.as_ref(), server).await {
                failures.push(format!(
                    "{}: {:?} ({}): {why}",
                    listed.file, case.name, case.why
                ));
            }
        }
        assert_eq!(
            ran + left_out,
            listed.cases,
            "{} has other cases than the index lists",
            listed.file
        );
        assert!(ran > 0 || server.is_some(), "{} ran nothing", listed.file);
    }
    assert!(
        failures.is_empty(),
        "{} cases failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// A server whose account for all who name none may not run scripts.
fn without_scripts(kind: Kind) -> Server {
    let server = kind.start(&[]);
    redis::cmd("ACL")
        .arg(&["SETUSER", "default", "-@scripting"])
        .exec(&mut server.connection())
        .unwrap();
    server
}

/// Each case has the server to itself; in memory, a client of its own is a server of its own.
async fn run_one<F: Face>(
    case: &Case,
    client: Option<&F>,
    server: Option<&Server>,
) -> Result<(), String> {
    if let (Some(client), Some(server)) = (client, server) {
        redis::cmd("FLUSHALL")
            .exec(&mut server.connection())
            .unwrap();
        return runner::run(case, client, &Stage::Server(server)).await;
    }
    let client = F::connect(Options::new("memory://").unwrap()).await;
    let memory = client.memory().expect("the test face of memory://");
    runner::run(case, &client, &Stage::Memory(memory)).await
}

async fn run_bad<F: Face>() {
    for bad in index().bad {
        let file = check::read(&text("cases-bad", &bad.file));
        let outcome = match (bad.must, file) {
            (Must::BeRefused, Err(_)) => continue,
            (Must::BeRefused, Ok(_)) => "it was not refused".to_owned(),
            (Must::Fail, Err(why)) => format!("it was refused: {why}"),
            (Must::Fail, Ok(file)) => {
                let mut passed = Vec::new();
                for case in &file.cases {
                    if run_one::<F>(case, None, None).await.is_ok() {
                        passed.push(&case.name);
                    }
                }
                if passed.is_empty() {
                    continue;
                }
                format!("{passed:?} passed")
            }
        };
        panic!("{} has {}: {outcome}", bad.file, bad.because);
    }
}

fn is_left_out(case: &Case, on_a_server: bool) -> bool {
    (on_a_server && case.only == Some(Only::Memory))
        || case.needs.iter().any(|need| LACKS.contains(need))
}

fn index() -> Index {
    serde_json::from_str(&text("cases", "index.json")).unwrap()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(folder_name: &str, file: &str) -> String {
    let path = folder(folder_name).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json_files(folder_name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder(folder_name)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let json = paths.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    sorted(
        json.map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect(),
    )
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
