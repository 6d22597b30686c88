//! Meters against real servers that lose replies, go away and refuse, and with journals whose writers are killed.

mod face;
mod faults;
mod journal;
mod killed;
mod load;

use std::time::Duration;

use redis::Commands;
use tallylock::{MeterOptions, Options};
use tallylock_testkit::Server;

const TTL: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(60);
/// Of clients whose server is silent: waited for by each test, and long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// A meter that flushes only when it is told to.
fn by_hand() -> MeterOptions {
    MeterOptions::new(TTL)
        .unwrap()
        .interval(Duration::from_secs(3600))
        .unwrap()
}

fn options(url: &str) -> Options {
    Options::new(url).unwrap()
}

/// What is in a counter.
fn total(server: &Server, key: &str) -> Option<i64> {
    server.connection().get(key).unwrap()
}

/// What the server remembers of flushes to a counter.
fn once_keys(server: &Server, key: &str) -> Vec<String> {
    server.connection().keys(format!("{key}*:once:*")).unwrap()
}
