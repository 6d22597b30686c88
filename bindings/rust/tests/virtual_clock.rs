//! In memory the clock jumps while all who are asking wait, and never into a call that has begun: its time would be over.
//!
//! That is noticed where a call has to send something again, hence without the scripts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tallylock::{Client, Code, Options, Redlock, blocking};

/// The time of a call: the clock jumps further.
const TIMEOUT: Duration = Duration::from_millis(10);
/// Outlasts all jumps.
const TTL: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
/// So many that calls into which the clock jumped would be met.
const ROUNDS: usize = 1000;

#[test]
fn calls_of_threads_have_their_time() {
    let url = "memory://calls-of-threads";
    let client = blocking::Client::connect_with(options(url)).unwrap();
    while_the_clock_jumps(url, |_| verbs_of_threads(&client));
}

#[test]
fn calls_of_futures_have_their_time() {
    let url = "memory://calls-of-futures";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime
        .block_on(Client::connect_with(options(url)))
        .unwrap();
    while_the_clock_jumps(url, |_| runtime.block_on(verbs_of_futures(&client)));
}

/// What jumps during an acquire is missing from the lease, which may then be over before it is granted.
#[test]
fn acquires_of_several_have_their_time() {
    let urls = [
        "memory://several-1",
        "memory://several-2",
        "memory://several-3",
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let futures = runtime.block_on(Redlock::connect(urls)).unwrap();
    let threads = blocking::Redlock::connect(urls).unwrap();
    while_the_clock_jumps(urls[0], |round| {
        // Released or lost, it is in the way of no other.
        let (one, other) = (format!("threads-{round}"), format!("futures-{round}"));
        drop(
            threads
                .lock(one, TIMEOUT)
                .unwrap()
                .acquire(Duration::ZERO)
                .unwrap(),
        );
        let lock = futures.lock(other, TIMEOUT).unwrap();
        drop(runtime.block_on(lock.acquire(Duration::ZERO)).unwrap());
    });
}

fn options(url: &str) -> Options {
    Options::new(url).unwrap().timeout(TIMEOUT).unwrap()
}

/// Calls again and again, while another waits in vain for a lock and makes the clock jump with each wait.
fn while_the_clock_jumps(url: &str, calls: impl Fn(usize)) {
    let other = blocking::Client::connect(url).unwrap();
    let lock = other.lock("held", TTL).unwrap();
    let _held = lock.acquire(Duration::ZERO).unwrap();
    let in_vain = lock.clone();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(
                    in_vain.acquire(Duration::from_secs(60)).unwrap_err().code(),
                    Code::Busy
                );
            }
        });
        // Also where a call fails: the other would wait for ever.
        let _over = Over(&is_over);
        for round in 0..ROUNDS {
            calls(round);
        }
    });
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn verbs_of_threads(client: &blocking::Client) {
    let memory = client.memory().unwrap();
    let counter = client.counter("c", TTL).unwrap();
    let value = client.value("c").unwrap();
    let lock = client.lock("l", TTL).unwrap();
    memory.forget_scripts();
    counter.add(1).unwrap();
    memory.forget_scripts();
    client
        .add_many(vec![counter.entry(1)])
        .unwrap()
        .remove(0)
        .unwrap();
    let read = value.read_for_update().unwrap().unwrap();
    memory.forget_scripts();
    value.offer(read, "2", TTL).unwrap();
    client.scan("*").next_page().unwrap();
    memory.forget_scripts();
    let lease = lock.acquire(Duration::ZERO).unwrap();
    memory.forget_scripts();
    lease.extend(TTL).unwrap();
    lease.verify(Duration::ZERO).unwrap();
    memory.forget_scripts();
    let adopted = lock.clone().adopt(&lease.transfer().unwrap()).unwrap();
    memory.forget_scripts();
    adopted.release().unwrap();
}

async fn verbs_of_futures(client: &Client) {
    let memory = client.memory().unwrap();
    let counter = client.counter("c", TTL).unwrap();
    let value = client.value("c").unwrap();
    let lock = client.lock("l", TTL).unwrap();
    memory.forget_scripts();
    counter.add(1).await.unwrap();
    memory.forget_scripts();
    client
        .add_many(vec![counter.entry(1)])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let read = value.read_for_update().await.unwrap().unwrap();
    memory.forget_scripts();
    value.offer(read, "2", TTL).await.unwrap();
    client.scan("*").next_page().await.unwrap();
    memory.forget_scripts();
    let lease = lock.acquire(Duration::ZERO).await.unwrap();
    memory.forget_scripts();
    lease.extend(TTL).await.unwrap();
    lease.verify(Duration::ZERO).await.unwrap();
    memory.forget_scripts();
    let adopted = lock
        .clone()
        .adopt(&lease.transfer().await.unwrap())
        .await
        .unwrap();
    memory.forget_scripts();
    adopted.release().await.unwrap();
}
