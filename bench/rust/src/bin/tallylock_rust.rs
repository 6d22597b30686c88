//! tallylock's blocking face in Rust as a contestant. Usage: `tallylock_rust redis://HOST:PORT KEY`
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::{Duration, Instant};

use tallylock::blocking::Client;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, key] = arguments.as_slice() else {
        return Err("usage: tallylock_rust redis://HOST:PORT KEY".into());
    };
    let client = Client::connect(url)?;
    let counter = client.counter(key, Duration::from_secs(900))?;

    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        let calls: u32 = line.strip_prefix("block ").ok_or("not a block")?.parse()?;
        let started = Instant::now();
        for _ in 0..calls {
            counter.add(1)?;
        }
        println!("{}", started.elapsed().as_nanos());
    }
    Ok(())
}
