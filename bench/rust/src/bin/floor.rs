//! The floor: what server and kernel cost. Usage: `floor redis://HOST:PORT KEY`
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use tallylock_bench::{COUNTER_ADD, command};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, key] = arguments.as_slice() else {
        return Err("usage: floor redis://HOST:PORT KEY".into());
    };
    let address = url.strip_prefix("redis://").ok_or("not redis://")?;
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut buffer = [0; 128];
    socket.write_all(&command(&["SCRIPT", "LOAD", COUNTER_ADD]))?;
    let sha = bulk(&mut socket, &mut buffer)?.to_owned();
    let add = command(&["EVALSHA", &sha, "1", key, "1", "900000", "sliding"]);

    println!("ready");
    for line in std::io::stdin().lines() {
        let calls: u32 = line?.strip_prefix("block ").ok_or("no block")?.parse()?;
        let started = Instant::now();
        for _ in 0..calls {
            socket.write_all(&add)?;
            bulk(&mut socket, &mut buffer)?.parse::<i64>()?;
        }
        println!("{}", started.elapsed().as_nanos());
    }
    Ok(())
}

/// Reads one bulk string without a line break in it; whatever else the server says is an error.
fn bulk<'a>(socket: &mut TcpStream, buffer: &'a mut [u8]) -> Result<&'a str, Box<dyn Error>> {
    let mut filled = 0;
    while buffer[..filled].split(|byte| *byte == b'\n').count() < 3 {
        match socket.read(&mut buffer[filled..])? {
            0 => return Err("the connection is closed, or the reply too long".into()),
            _ if buffer[0] != b'$' => return Err(String::from_utf8_lossy(buffer).into()),
            read => filled += read,
        }
    }
    let reply = std::str::from_utf8(&buffer[..filled])?;
    Ok(reply.split("\r\n").nth(1).unwrap_or_default())
}
