//! The agent in Rust.

use std::collections::HashMap;
use std::time::Duration;

use tallylock::Error;
use tallylock::blocking::{Client, Lease};

fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).expect("the URL of the server");
    let client = Client::connect(&url)?;
    let mut leases = HashMap::new();
    for line in std::io::stdin().lines() {
        let line = line.expect("the orders are text");
        let words: Vec<&str> = line.split(' ').collect();
        match perform(&client, &mut leases, &words) {
            Ok(Some(number)) => println!("{number}"),
            Ok(None) => println!("none"),
            Err(error) => println!("error {}", error.code().as_str()),
        }
    }
    Ok(())
}

fn perform(
    client: &Client,
    leases: &mut HashMap<String, Lease>,
    words: &[&str],
) -> Result<Option<i128>, Error> {
    let key = words[1];
    let counter = client.counter(key, Duration::from_secs(900))?;
    Ok(match words[0] {
        "acquire" => {
            let lock = client.lock(key, Duration::from_secs(30))?;
            let lease = lock.acquire(Duration::ZERO)?;
            let fence = lease.fence();
            leases.insert(key.to_owned(), lease);
            Some(fence.into())
        }
        "release" => {
            leases.remove(key).expect("it was acquired").release()?;
            Some(0)
        }
        "add" => Some(counter.add(words[2].parse().expect("an amount"))?.into()),
        "drain" => counter.drain()?.map(i128::from),
        _ => counter.finish()?.map(i128::from),
    })
}
