//! `tallylock-fault-proxy <host:port of the server>`: the fault proxy as a program, for tests in any language.
//!
//! It prints `{"ok":true,"listen":"127.0.0.1:<port>"}`, then answers each line on standard input with one line of JSON:
//! `{"ok":true}`, `{"ok":true,"stats":{...}}` or `{"ok":false,"error":"..."}`. It ends when standard input does, so
//! it never outlives the test that started it. `--help` lists the commands.

#![forbid(unsafe_code)]

use std::io::{self, BufRead, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;

use serde::Serialize;
use tallylock_testkit::proxy::{COMMANDS, Command, Proxy, Stats};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [option] if option == "--help" => {
            println!("{USAGE}\ncommands on standard input, one a line:\n{COMMANDS}");
            ExitCode::SUCCESS
        }
        [server] if !server.starts_with('-') => match serve(server) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tallylock-fault-proxy: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "usage: tallylock-fault-proxy <host:port of the server>";

/// One line of output.
#[derive(Default, Serialize)]
struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn serve(server: &str) -> io::Result<()> {
    let address = server
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other(format!("{server} has no address")))?;
    let proxy = Proxy::before(address)?;
    say(&Answer {
        ok: true,
        listen: Some(proxy.address()),
        ..Answer::default()
    })?;
    for line in io::stdin().lock().lines() {
        let done = line?
            .trim_end_matches('\r')
            .parse::<Command>()
            .and_then(|command| proxy.run(command).map_err(|error| error.to_string()));
        say(&match done {
            Ok(stats) => Answer {
                ok: true,
                stats,
                ..Answer::default()
            },
            Err(error) => Answer {
                error: Some(error),
                ..Answer::default()
            },
        })?;
    }
    Ok(())
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}
