//! The floor of a batch: 10,000 adds over 100 counters as one pipeline, encoded beforehand.
//! Usage: `floor_batch redis://HOST:PORT KEY`
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use tallylock_bench::{COUNTER_ADD, command};

const ADDS: usize = 10_000;
const COUNTERS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, key] = arguments.as_slice() else {
        return Err("usage: floor_batch redis://HOST:PORT KEY".into());
    };
    let address = url.strip_prefix("redis://").ok_or("not redis://")?;
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut replies = BufReader::with_capacity(1 << 16, socket.try_clone()?);
    socket.write_all(&command(&["SCRIPT", "LOAD", COUNTER_ADD]))?;
    let mut line = String::new();
    let sha = bulk(&mut replies, &mut line)?.to_owned();
    let mut pipeline = Vec::new();
    for number in 0..ADDS {
        let key = format!("{key}:{:02}", number % COUNTERS);
        pipeline.extend(command(&[
            "EVALSHA", &sha, "1", &key, "1", "900000", "sliding",
        ]));
    }

    println!("ready");
    for asked in std::io::stdin().lines() {
        let calls: u32 = asked?.strip_prefix("block ").ok_or("no block")?.parse()?;
        let started = Instant::now();
        for _ in 0..calls {
            socket.write_all(&pipeline)?;
            for _ in 0..ADDS {
                bulk(&mut replies, &mut line)?.parse::<i64>()?;
            }
        }
        println!("{}", started.elapsed().as_nanos());
    }
    Ok(())
}

/// Reads one bulk string without a line break in it; whatever else the server says is an error.
fn bulk<'a>(replies: &mut impl BufRead, line: &'a mut String) -> Result<&'a str, Box<dyn Error>> {
    line.clear();
    replies.read_line(line)?;
    if !line.starts_with('$') {
        return Err(line.as_str().into());
    }
    line.clear();
    replies.read_line(line)?;
    Ok(line.trim_end())
}
