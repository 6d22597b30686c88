//! Many waiters for one lock: what a hand-over costs the server, and how long the unluckiest waits.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tallylock::{Client, blocking};
use tallylock_testkit::{Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(120);
const WAITERS: usize = 64;
/// How often each of them takes the lock.
const ROUNDS: usize = 10;
const HAND_OVERS: usize = WAITERS * ROUNDS;
const CLIENTS: usize = 8;

on_each_server! {
    fn a_hand_over_among_the_tasks_of_a_client_takes_less_than_four_commands(server: Server) {
        let waits = in_futures(&server, 1);
        assert_cost(&server, 4);
        assert_fair(waits);
    }

    fn a_hand_over_among_the_threads_of_a_client_takes_less_than_four_commands(server: Server) {
        let waits = on_threads(&server, 1);
        assert_cost(&server, 4);
        assert_fair(waits);
    }

    fn a_hand_over_among_clients_takes_less_than_two_commands_and_two_a_client(server: Server) {
        let waits = in_futures(&server, CLIENTS);
        assert_cost(&server, 2 + 2 * CLIENTS);
        assert_fair(waits);
    }

    fn a_hand_over_among_clients_of_threads_takes_as_few_commands(server: Server) {
        let waits = on_threads(&server, CLIENTS);
        assert_cost(&server, 2 + 2 * CLIENTS);
        assert_fair(waits);
    }
}

/// Has all waiters of so many clients take the lock in turns; gives how long each time took.
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn in_futures(server: &Server, clients: usize) -> Vec<Duration> {
    let mut tasks = Vec::new();
    let together = Arc::new(tokio::sync::Barrier::new(WAITERS));
    for _ in 0..clients {
        let client = Client::connect(&server.url()).await.unwrap();
        for _ in 0..WAITERS / clients {
            let (lock, together) = (client.lock("l", TTL).unwrap(), Arc::clone(&together));
            tasks.push(tokio::spawn(async move {
                together.wait().await;
                let mut waits = Vec::with_capacity(ROUNDS);
                for _ in 0..ROUNDS {
                    let begun = Instant::now();
                    let lease = lock.acquire(WAIT).await.unwrap();
                    waits.push(begun.elapsed());
                    lease.release().await.unwrap();
                }
                waits
            }));
        }
    }
    let mut waits = Vec::with_capacity(HAND_OVERS);
    for task in tasks {
        waits.extend(task.await.unwrap());
    }
    waits
}

/// The same with a thread a waiter.
fn on_threads(server: &Server, clients: usize) -> Vec<Duration> {
    let together = std::sync::Barrier::new(WAITERS);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..clients {
            let client = blocking::Client::connect(&server.url()).unwrap();
            for _ in 0..WAITERS / clients {
                let (lock, together) = (client.lock("l", TTL).unwrap(), &together);
                threads.push(scope.spawn(move || {
                    together.wait();
                    let mut waits = Vec::with_capacity(ROUNDS);
                    for _ in 0..ROUNDS {
                        let begun = Instant::now();
                        let lease = lock.acquire(WAIT).unwrap();
                        waits.push(begun.elapsed());
                        lease.release().unwrap();
                    }
                    waits
                }));
            }
        }
        let waits = threads.into_iter().map(|thread| thread.join().unwrap());
        waits.flatten().collect()
    })
}

/// What clients have sent, without what scripts have called and what this test asks.
fn assert_cost(server: &Server, limit: usize) {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut server.connection())
        .unwrap();
    let calls = |name: &str| {
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.map_or(0, |line| {
            line.split(',').next().unwrap().parse::<usize>().unwrap()
        })
    };
    let sent = ["evalsha", "eval", "subscribe", "unsubscribe", "ping"].map(calls);
    let cost = sent.iter().sum::<usize>();
    assert!(sent[0] >= 2 * HAND_OVERS, "{sent:?}");
    assert!(cost < limit * HAND_OVERS, "{sent:?} for {HAND_OVERS}");
    println!("{cost} commands for {HAND_OVERS} hand-overs: {sent:?}");
}

/// Nobody waits more than twenty times as long as the others do.
fn assert_fair(waits: Vec<Duration>) {
    assert_eq!(waits.len(), HAND_OVERS);
    let mean = waits.iter().sum::<Duration>() / u32::try_from(HAND_OVERS).unwrap();
    let longest = waits.into_iter().max().unwrap();
    assert!(longest < 20 * mean, "{longest:?}, {mean:?} on average");
    println!("the longest wait: {longest:?}, {mean:?} on average");
}
