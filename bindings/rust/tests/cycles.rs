//! A thousand leases while the server forgets its scripts and kills its connections: none of ours is lost, each loss is told,
//! and no key is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use redis::Commands as _;
use tallylock::{Client, Code, Reason, blocking};
use tallylock_testkit::{Server, on_each_server};

const WORKERS: u64 = 4;
const CYCLES: u64 = 250;
/// No machine is so busy that a lease of this TTL is lost by itself.
const TTL: Duration = Duration::from_secs(60);
/// How long a call may take while connections are killed.
const PATIENCE: Duration = Duration::from_secs(20);

on_each_server! {
    fn a_thousand_cycles_of_the_blocking_client(server: Server) {
        let disturbance = Disturbance::new(&server);
        let options = tallylock::Options::new(&server.url()).unwrap().timeout(PATIENCE).unwrap();
        let client = blocking::Client::connect_with(options).unwrap();
        disturbance.around(|worker| {
            let mut random = Random(worker);
            let key = format!("lock:{worker}");
            for cycle in 0..CYCLES {
                let lock = client.lock(&key, TTL).unwrap().renewed_every(random.millis(1..6)).unwrap();
                let lease = lock.acquire(PATIENCE).unwrap();
                disturbance.step();
                assert_eq!(lease.wait_until_lost(random.millis(0..8)), None, "it is ours");
                disturbance.step();
                if let Some(expected) = disturbance.take_now_and_then(&key, cycle) {
                    assert_eq!(lease.wait_until_lost(TTL / 2).unwrap().code(), expected);
                    assert_eq!(lease.release().unwrap_err().code(), expected);
                    disturbance.forget(&key);
                } else {
                    lease.release().unwrap();
                }
                disturbance.step();
            }
        });
    }

    fn a_thousand_cycles_of_the_client_for_futures(server: Server) {
        let disturbance = Disturbance::new(&server);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let options = tallylock::Options::new(&server.url()).unwrap().timeout(PATIENCE).unwrap();
        let client = runtime.block_on(Client::connect_with(options)).unwrap();
        disturbance.around(|worker| runtime.block_on(async {
            let mut random = Random(worker);
            let key = format!("lock:{worker}");
            for cycle in 0..CYCLES {
                let lock = client.lock(&key, TTL).unwrap().renewed_every(random.millis(1..6)).unwrap();
                let lease = lock.acquire(PATIENCE).await.unwrap();
                disturbance.step();
                let held = tokio::time::timeout(random.millis(0..8), lease.lost()).await;
                assert!(held.is_err(), "it is ours: {held:?}");
                disturbance.step();
                if let Some(expected) = disturbance.take_now_and_then(&key, cycle) {
                    let lost = tokio::time::timeout(TTL / 2, lease.lost()).await.unwrap();
                    assert_eq!(lost.unwrap().code(), expected);
                    assert_eq!(lease.release().await.unwrap_err().code(), expected);
                    disturbance.forget(&key);
                } else {
                    lease.release().await.unwrap();
                }
                disturbance.step();
            }
        }));
    }
}

/// What an operator does to the server meanwhile, over the one connection that is not killed.
struct Disturbance {
    connection: Mutex<redis::Connection>,
    /// How far the workers have come: they are disturbed as they proceed, so that they do.
    steps: AtomicU64,
}

impl Disturbance {
    fn new(server: &Server) -> Self {
        Self {
            connection: Mutex::new(server.connection()),
            steps: AtomicU64::new(0),
        }
    }

    /// Runs the workers, and disturbs them until they are over; then no key may be left.
    fn around(&self, work: impl Fn(u64) + Sync) {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    scope.spawn({
                        let work = &work;
                        move || work(worker)
                    })
                })
                .collect();
            let mut random = Random(WORKERS);
            let mut next = 0;
            while workers.iter().any(|worker| !worker.is_finished()) {
                thread::sleep(Duration::from_micros(200));
                if self.steps.load(Ordering::Relaxed) < next {
                    continue;
                }
                next = self.steps.load(Ordering::Relaxed) + random.below(8);
                let command = if random.below(2) == 0 {
                    redis::cmd("SCRIPT").arg("FLUSH").to_owned()
                } else {
                    redis::cmd("CLIENT")
                        .arg(&["KILL", "TYPE", "normal"])
                        .to_owned()
                };
                command.exec(&mut self.connection()).unwrap();
            }
        });
        let mut left: Vec<String> = self.connection().keys("*").unwrap();
        left.sort();
        let fences =
            (0..WORKERS).map(|worker| format!("lock:{worker}{{lock:{worker}}}:tlu1:fence"));
        assert_eq!(left, fences.collect::<Vec<_>>());
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the lock away at some cycles, and says what its holder is to be told then.
    fn take_now_and_then(&self, key: &str, cycle: u64) -> Option<Code> {
        match cycle % 25 {
            7 => {
                let _: () = self.connection().set_ex(key, "another", 60).unwrap();
                Some(Code::Lost(Reason::TakenOver))
            }
            19 => {
                self.forget(key);
                Some(Code::Lost(Reason::Expired))
            }
            _ => None,
        }
    }

    fn forget(&self, key: &str) {
        let _: () = self.connection().del(key).unwrap();
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, redis::Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers that are the same in each run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }
}
