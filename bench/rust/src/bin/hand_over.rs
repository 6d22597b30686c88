//! A lock that goes from one client to another who waits for it, five milliseconds away from the server.
//! Usage: `hand_over round-trip|release|released redis://HOST:PORT KEY`
//!
//! The network is a relay in this process that keeps what comes for half of that, in each direction. A call is one round trip, or
//! one hand-over: from the beginning of the release, or from its end, until the other client has the lock.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tallylock::blocking::{Client, Lock};

const ONE_WAY: Duration = Duration::from_micros(2_500);
const TTL: Duration = Duration::from_secs(900);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, url, key] = arguments.as_slice() else {
        return Err("usage: hand_over round-trip|release|released redis://HOST:PORT KEY".into());
    };
    let server = url
        .strip_prefix("redis://")
        .ok_or("not redis://")?
        .to_owned();
    let far = relay(server)?;
    let mut work: Box<dyn FnMut() -> Result<Duration, Box<dyn Error>>> = match work.as_str() {
        "round-trip" => {
            let value = Client::connect(&far)?.value(key)?;
            Box::new(move || {
                let started = Instant::now();
                value.get()?;
                Ok(started.elapsed())
            })
        }
        since @ ("release" | "released") => {
            let since_its_end = since == "released";
            let (ours, theirs) = (Client::connect(&far)?, Client::connect(&far)?);
            let (ours, theirs) = (ours.lock(key, TTL)?, theirs.lock(key, TTL)?);
            Box::new(move || {
                let [begun, ended, granted] = hand_over(&ours, &theirs)?;
                Ok(granted - if since_its_end { ended } else { begun })
            })
        }
        _ => return Err("no such work".into()),
    };

    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        let calls: u32 = line.strip_prefix("block ").ok_or("not a block")?.parse()?;
        let mut spent = Duration::ZERO;
        for _ in 0..calls {
            spent += work()?;
        }
        println!("{}", spent.as_nanos());
    }
    Ok(())
}

/// When `ours` begins to release the lock, has released it, and when `theirs`, who waits, has it.
fn hand_over(ours: &Lock, theirs: &Lock) -> Result<[Instant; 3], Box<dyn Error>> {
    let held = ours.acquire(TTL)?;
    let (theirs, (tell, granted)) = (theirs.clone(), mpsc::channel());
    let waiter = thread::spawn(move || -> Result<(), tallylock::Error> {
        let lease = theirs.acquire(TTL)?;
        // Nobody listens if the release has failed.
        let _ = tell.send(Instant::now());
        lease.release()
    });
    // Asked, connected, subscribed and asked again: then it waits.
    thread::sleep(12 * ONE_WAY);
    let begun = Instant::now();
    held.release()?;
    let ended = Instant::now();
    let granted = granted.recv()?;
    waiter.join().map_err(|_| "the waiter panicked")??;
    Ok([begun, ended, granted])
}

/// A way to the server on which everything takes long; its URL.
fn relay(server: String) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("redis://{}", listener.local_addr()?);
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            if let Ok(far) = TcpStream::connect(&server) {
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                if let (Ok(near_end), Ok(far_end)) = (near.try_clone(), far.try_clone()) {
                    delay(near_end, far);
                    delay(far_end, near);
                }
            }
        }
    });
    Ok(url)
}

/// Carries bytes from one end to the other, each so late.
fn delay(mut from: TcpStream, mut to: TcpStream) {
    let (carry, carried) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + ONE_WAY;
            // The other end may be gone.
            if carry.send((due, buffer[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in carried {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
