//! Futures that are dropped at any point, on one client that others go on using: no reply reaches a caller that it is not
//! meant for, nothing is counted twice, and no lock is left behind.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};
use tallylock::{Client, Code, Error, Options, Reason};
use tallylock_testkit::{Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(60);
const TASKS: usize = 8;
const CALLS: usize = 40;
const LOCKS: usize = 3;

/// What a task does next, and at which poll it is dropped.
#[derive(Clone, Copy, Debug)]
struct Move {
    verb: Verb,
    polls: usize,
    /// Now and then somebody's connection ends, with whatever was under way on it.
    cuts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Add,
    Get,
    Lock(usize),
}

on_each_server! {
    fn dropped_calls_disturb_nobody(server: Server) {
        run(&server, Fault::None);
    }

    fn dropped_calls_disturb_nobody_while_connections_are_cut(server: Server) {
        run(&server, Fault::Cuts);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Cuts,
}

fn run(server: &Server, fault: Fault) {
    let verb = prop_oneof![2 => Just(Verb::Add), 2 => Just(Verb::Get), 1 => select(vec![0, 1, 2]).prop_map(Verb::Lock)];
    // Few polls hit the sending, many the waiting and the arrival of the reply; the most are never reached.
    let polls = prop_oneof![1 => 0_usize..4, 2 => 4_usize..400, 2 => Just(usize::MAX)];
    let cuts = proptest::bool::weighted(if fault == Fault::Cuts { 0.05 } else { 0.0 });
    let moves = (verb, polls, cuts).prop_map(|(verb, polls, cuts)| Move { verb, polls, cuts });
    let config = ProptestConfig {
        cases: 4,
        failure_persistence: None,
        rng_seed: RngSeed::Random,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let outcome = TestRunner::new(config).run(&vec(vec(moves, CALLS), TASKS), |plans| {
        redis::cmd("FLUSHALL")
            .exec(&mut server.connection())
            .unwrap();
        runtime.block_on(play(server, &plans, fault));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

async fn play(server: &Server, plans: &[Vec<Move>], fault: Fault) {
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    proxy.delay(Duration::from_micros(300));
    // Nobody is to give up because the machine is busy: only what is dropped or cut goes wrong here.
    let options = Options::new(&proxy.url())
        .unwrap()
        .timeout(PATIENCE)
        .unwrap();
    let client = Client::connect_with(options).await.unwrap();
    let scene = Arc::new(Scene {
        client,
        proxy,
        inside: Default::default(),
        fault,
    });
    let tasks: Vec<_> = plans
        .iter()
        .cloned()
        .enumerate()
        .map(|(number, plan)| tokio::spawn(Arc::clone(&scene).play_one(number, plan)))
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let tally = task.await.unwrap();
        let total: Option<i64> = redis::cmd("GET")
            .arg(counter_key(number))
            .query(&mut server.connection())
            .unwrap();
        let total = total.unwrap_or_default();
        assert!(
            (tally.least..=tally.most).contains(&total),
            "task {number} has {total}, not from {tally:?}"
        );
    }
    for lock in 0..LOCKS {
        let lease = scene
            .client
            .lock(lock_key(lock), TTL)
            .unwrap()
            .acquire(PATIENCE)
            .await;
        lease
            .expect("every dropped acquire to be undone, long before its TTL is over")
            .release()
            .await
            .unwrap();
        let held: bool = redis::cmd("EXISTS")
            .arg(lock_key(lock))
            .query(&mut server.connection())
            .unwrap();
        assert!(!held);
    }
}

/// What the tasks share.
struct Scene {
    client: Client,
    proxy: Proxy,
    /// How many hold each lock.
    inside: [AtomicI64; LOCKS],
    fault: Fault,
}

/// What a task's counter may hold: what it was told of, and with it what it was not told of.
#[derive(Debug, Default)]
struct Tally {
    least: i64,
    most: i64,
}

impl Scene {
    async fn play_one(self: Arc<Self>, number: usize, plan: Vec<Move>) -> Tally {
        // Each task's numbers are its own, so that a reply of another one's stands out.
        let amount = 10_i64.pow(u32::try_from(number).unwrap());
        let counter = self.client.counter(counter_key(number), TTL).unwrap();
        let value = self.client.value(counter_key(number)).unwrap();
        let mut tally = Tally::default();
        for Move { verb, polls, cuts } in plan {
            if cuts {
                self.proxy.cut();
            }
            match verb {
                Verb::Add => {
                    let added = at_most(polls, counter.add(amount)).await;
                    tally.most += amount;
                    match added {
                        Some(Ok(total)) => {
                            tally.least += amount;
                            tally.check(total, amount);
                        }
                        Some(Err(error)) => self.expect_error(&error, &[Code::OutcomeUnknown]),
                        None => {}
                    }
                }
                Verb::Get => {
                    if let Some(read) = at_most(polls, value.get()).await {
                        let text = read.unwrap().map(|text| String::from_utf8(text).unwrap());
                        tally.check(text.as_deref().unwrap_or("0").parse().unwrap(), amount);
                    }
                }
                Verb::Lock(lock) => self.hold(lock, polls).await,
            }
        }
        tally
    }

    /// Takes a lock and releases it; nobody else may be inside meanwhile.
    async fn hold(&self, lock: usize, polls: usize) {
        let handle = self.client.lock(lock_key(lock), TTL).unwrap();
        let lease = match at_most(polls, handle.acquire(PATIENCE)).await {
            Some(Ok(lease)) => lease,
            Some(Err(error)) if error.code() == Code::Busy => return,
            Some(Err(error)) => {
                return self.expect_error(&error, &[Code::Timeout, Code::Unavailable]);
            }
            None => return,
        };
        assert_eq!(
            self.inside[lock].fetch_add(1, Ordering::SeqCst),
            0,
            "two hold lock {lock}"
        );
        tokio::task::yield_now().await;
        self.inside[lock].fetch_sub(1, Ordering::SeqCst);
        // Released by us, or by a release of ours whose reply was lost and after which the next one took it.
        if let Err(error) = lease.release().await {
            self.expect_error(&error, &[Code::Lost(Reason::TakenOver)]);
        }
    }

    /// Only where connections are cut may calls fail, and only so.
    fn expect_error(&self, error: &Error, codes: &[Code]) {
        assert!(
            self.fault == Fault::Cuts && codes.contains(&error.code()),
            "{error}"
        );
    }
}

impl Tally {
    fn check(&self, total: i64, amount: i64) {
        assert!(
            total % amount == 0 && (self.least..=self.most).contains(&total),
            "{total} came to the task of {amount}: {self:?}"
        );
    }
}

/// Polls a future so often, and then drops it.
async fn at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        if polls != usize::MAX {
            // Polled again at once, so that it can also be dropped while it waits.
            context.waker().wake_by_ref();
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

fn counter_key(task: usize) -> String {
    format!("counter:{task}")
}

fn lock_key(lock: usize) -> String {
    format!("lock:{lock}")
}
