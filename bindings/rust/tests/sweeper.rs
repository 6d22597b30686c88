//! Sweepers on `memory://` and on real servers: nothing is lost, nothing is billed twice, whatever becomes of a pass.

use std::collections::BTreeMap;
use std::time::Duration;

use tallylock::sweeper::{Due, Met, ToBill, Unusable};
use tallylock::{Client, Code, Options, Reason, Sweep, SweepOptions};
use tallylock_testkit::{Kind, Proxy, Server, on_each_server};

const TTL: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn options() -> SweepOptions {
    SweepOptions {
        pattern: b"session:*:pending".to_vec(),
        due: Due::Within(HOUR),
        ttl: TTL,
        lock: "sweeper".to_owned(),
        lock_ttl: Duration::from_secs(30),
        wait: Duration::ZERO,
    }
}

async fn memory(totals: &[(&str, i64)]) -> Client {
    let client = Client::connect("memory://").await.unwrap();
    for (session, total) in totals {
        add(&client, session, *total).await;
    }
    client
}

async fn add(client: &Client, session: &str, amount: i64) {
    let counter = client
        .counter(format!("session:{session}:pending"), TTL)
        .unwrap();
    counter.add(amount).await.unwrap();
}

async fn begin(client: &Client, options: SweepOptions) -> Sweep {
    client.sweeper(options).unwrap().begin().await.unwrap()
}

/// The next claim; the test is about no key that cannot be billed.
async fn next(pass: &mut Sweep) -> Option<ToBill> {
    match pass.next().await.unwrap()? {
        Met::ToBill(claim) => Some(claim),
        Met::Unusable(unusable) => panic!("{unusable:?}"),
    }
}

/// Commits all that a pass hands out; what it billed by the claims' ids, and what it could not bill.
async fn commit_all(pass: &mut Sweep) -> (BTreeMap<String, i64>, Vec<Unusable>) {
    let (mut billed, mut unusable) = (BTreeMap::new(), Vec::new());
    while let Some(met) = pass.next().await.unwrap() {
        match met {
            Met::ToBill(claim) => {
                assert_eq!(billed.insert(claim.claim_id, claim.amount), None);
                pass.commit().await.unwrap();
            }
            Met::Unusable(found) => unusable.push(found),
        }
    }
    pass.end().await.unwrap();
    (billed, unusable)
}

async fn total(client: &Client, session: &str) -> Option<i64> {
    let counter = client
        .counter(format!("session:{session}:pending"), TTL)
        .unwrap();
    counter.read().await.unwrap()
}

#[tokio::test]
async fn what_ends_soon_or_holds_much_is_billed_and_nothing_else() {
    let cases = [
        (Due::Within(Duration::from_secs(30)), vec![1]),
        (Due::AtLeast(100), vec![100, 500]),
        (Due::Either(Duration::from_secs(30), 500), vec![1, 500]),
    ];
    for (due, expected) in cases {
        let client = memory(&[("old", 1)]).await;
        client.memory().unwrap().advance(Duration::from_secs(40));
        for (session, amount) in [("empty", 0), ("few", 99), ("many", 100), ("most", 500)] {
            add(&client, session, amount).await;
        }
        let mut pass = begin(&client, SweepOptions { due, ..options() }).await;
        let (billed, unusable) = commit_all(&mut pass).await;
        let mut amounts: Vec<i64> = billed.into_values().collect();
        amounts.sort_unstable();
        assert_eq!(amounts, expected, "{due:?}");
        assert_eq!(unusable, []);
        let units = i128::from(expected.iter().sum::<i64>());
        let totals = pass.totals();
        assert_eq!(
            (totals.offered, totals.committed),
            (expected.len() as u64, totals.offered)
        );
        assert_eq!((totals.committed_units, totals.left_open), (units, 0));
    }
}

#[tokio::test]
async fn what_is_refused_is_in_the_counter_again_with_a_ttl() {
    let client = memory(&[("1", 30)]).await;
    let mut pass = begin(&client, options()).await;
    assert_eq!(next(&mut pass).await.unwrap().amount, 30);
    assert_eq!(total(&client, "1").await, Some(0));
    // It is gone when the claim is aborted.
    client.memory().unwrap().remove("session:1:pending");
    assert_eq!(pass.abort().await.unwrap(), 30);
    assert_eq!(
        (pass.totals().aborted, pass.totals().aborted_units),
        (1, 30)
    );
    assert_eq!(total(&client, "1").await, Some(30));
    assert!(
        client
            .memory()
            .unwrap()
            .keys()
            .iter()
            .all(|key| key.ttl.is_some())
    );
}

#[tokio::test]
async fn an_open_claim_is_handed_out_again_by_the_next_pass_also_when_its_counter_is_gone() {
    let client = memory(&[("1", 30), ("2", 7)]).await;
    let mut pass = begin(&client, options()).await;
    let left = next(&mut pass).await.unwrap();
    // Asking for the next leaves this one open.
    let billed = next(&mut pass).await.unwrap();
    pass.commit().await.unwrap();
    assert_eq!((left.amount + billed.amount, left.resumed), (37, false));
    assert_eq!(next(&mut pass).await, None);
    assert_eq!(pass.totals().left_open, 1);
    pass.end().await.unwrap();

    client.memory().unwrap().advance(6 * DAY);
    assert_eq!(total(&client, "1").await, None);
    add(&client, "3", 1).await;
    let mut pass = begin(&client, options()).await;
    let again = next(&mut pass).await.unwrap();
    assert_eq!(
        again,
        ToBill {
            resumed: true,
            ..left
        }
    );
    pass.commit().await.unwrap();
    assert_eq!(next(&mut pass).await.unwrap().amount, 1);
    pass.commit().await.unwrap();
    assert_eq!(next(&mut pass).await, None);
    assert_eq!((pass.totals().offered, pass.totals().resumed), (2, 1));
}

#[tokio::test]
async fn what_was_claimed_under_another_lock_or_by_another_biller_is_left_alone() {
    let client = memory(&[("1", 30), ("2", 7)]).await;
    let counter = client.counter("session:1:pending", TTL).unwrap();
    counter.claim("sweep.sweeper.by-hand").await.unwrap();
    let other = SweepOptions {
        lock: "sweeper.b".into(),
        ..options()
    };
    let mut pass = begin(&client, other).await;
    next(&mut pass).await.unwrap();
    drop(pass);
    let mut pass = begin(&client, options()).await;
    assert_eq!(commit_all(&mut pass).await.0.len(), 0);
    assert_eq!(counter.claims().await.unwrap().len(), 1);
}

#[tokio::test]
async fn another_sweeper_is_busy_and_a_dropped_pass_gives_the_lock_back() {
    let client = memory(&[("1", 30)]).await;
    let sweeper = client.sweeper(options()).unwrap();
    let pass = sweeper.begin().await.unwrap();
    assert_eq!(sweeper.begin().await.unwrap_err().code(), Code::Busy);
    let patient = SweepOptions {
        wait: HOUR,
        ..options()
    };
    let waiting = tokio::spawn(async move { begin(&client, patient).await });
    tokio::task::yield_now().await;
    drop(pass);
    let mut pass = waiting.await.unwrap();
    assert_eq!(next(&mut pass).await.unwrap().amount, 30);
}

#[tokio::test]
async fn the_lock_is_extended_as_the_pass_goes_on() {
    let client = memory(&[("1", 1), ("2", 2), ("3", 3), ("4", 4)]).await;
    let long = SweepOptions {
        due: Due::AtLeast(1),
        ..options()
    };
    let mut pass = begin(&client, long).await;
    for _ in 0..4 {
        next(&mut pass).await.unwrap();
        client.memory().unwrap().advance(Duration::from_secs(14));
        pass.commit().await.unwrap();
    }
    assert_eq!(next(&mut pass).await, None);
    pass.end().await.unwrap();
    assert_eq!(pass.totals().committed_units, 10);
}

#[tokio::test]
async fn a_pass_that_lost_its_lock_ends_what_was_billed_and_claims_nothing_more() {
    let client = memory(&[("1", 30), ("2", 7)]).await;
    let mut pass = begin(&client, options()).await;
    let first = next(&mut pass).await.unwrap();
    client.memory().unwrap().advance(Duration::from_secs(31));
    let mut other = begin(&client, options()).await;
    pass.commit().await.unwrap();
    let error = pass.next().await.unwrap_err();
    assert!(
        matches!(
            error.code(),
            Code::Lost(Reason::TakenOver | Reason::Expired)
        ),
        "{error}"
    );
    assert!(pass.end().await.is_err());
    let (billed, _) = commit_all(&mut other).await;
    assert_eq!(billed.values().sum::<i64>() + first.amount, 37);
}

/// What the overtaken one would give back may be billed by the other.
#[tokio::test]
async fn a_pass_that_lost_its_lock_gives_nothing_back() {
    let client = memory(&[("1", 30)]).await;
    let mut pass = begin(&client, options()).await;
    let claim = next(&mut pass).await.unwrap();
    client.memory().unwrap().advance(Duration::from_secs(31));
    let mut other = begin(&client, options()).await;
    let resumed = next(&mut other).await.unwrap();
    assert_eq!(resumed.claim_id, claim.claim_id);
    assert!(matches!(
        pass.abort().await.unwrap_err().code(),
        Code::Lost(_)
    ));
    assert_eq!(pass.totals().left_open, 1);
    other.commit().await.unwrap();
    assert_eq!(total(&client, "1").await, Some(0));
}

/// Its refusal is on its way for so long that the lock ends meanwhile, and the next one bills the claim.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_arrives_after_the_lock_was_lost_gives_nothing_back() {
    let server = Kind::Valkey.start(&[]);
    let proxy = Proxy::before(server.address().parse().unwrap()).unwrap();
    let patient = Options::new(&proxy.url()).unwrap().timeout(PATIENCE);
    let slow = Client::connect_with(patient.unwrap()).await.unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    add(&client, "1", 30).await;
    // Outlived here, and long enough for a busy machine.
    let short = SweepOptions {
        lock_ttl: Duration::from_secs(3),
        ..options()
    };
    let mut pass = begin(&slow, short).await;
    let claim = next(&mut pass).await.unwrap();
    proxy.refuse().unwrap();
    proxy.cut();
    let refusing = tokio::spawn(async move { pass.abort().await });
    let waiting = SweepOptions {
        wait: PATIENCE,
        ..options()
    };
    let mut other = begin(&client, waiting).await;
    assert_eq!(
        next(&mut other).await.map(|found| found.claim_id),
        Some(claim.claim_id)
    );
    proxy.accept().unwrap();
    let error = refusing.await.unwrap().unwrap_err();
    assert!(
        matches!(error.code(), Code::FencedOff | Code::Lost(_)),
        "{error}"
    );
    other.commit().await.unwrap();
    assert_eq!(total(&client, "1").await, Some(0));
}

/// It has the claims of its page in hand when it is overtaken, and one of them is aborted meanwhile.
#[tokio::test]
async fn a_claim_that_another_ended_since_it_was_found_is_not_handed_out() {
    let client = memory(&[("1", 30), ("2", 7)]).await;
    let mut dying = begin(&client, options()).await;
    while next(&mut dying).await.is_some() {}
    dying.end().await.unwrap();
    let mut pass = begin(&client, options()).await;
    let first = next(&mut pass).await.unwrap();
    let other = if first.amount == 30 {
        "session:2:pending"
    } else {
        "session:1:pending"
    };
    let counter = client.counter(other, TTL).unwrap();
    let open = counter.claims().await.unwrap();
    counter.commit(&open[0].id, open[0].amount).await.unwrap();
    pass.commit().await.unwrap();
    assert_eq!(next(&mut pass).await, None);
}

#[tokio::test]
async fn a_fence_of_another_lock_stops_one_counter_and_not_the_pass() {
    let client = memory(&[("1", 30), ("2", 7)]).await;
    let mut pass = begin(&client, options()).await;
    let far_ahead = client
        .counter("session:1:pending", TTL)
        .unwrap()
        .fenced(1 << 62);
    far_ahead.drain().await.unwrap();
    add(&client, "1", 5).await;
    let (billed, unusable) = commit_all(&mut pass).await;
    assert_eq!(billed.into_values().collect::<Vec<_>>(), [7]);
    assert_eq!(unusable.len(), 1);
    assert_eq!(unusable[0].error.code(), Code::FencedOff);
    assert_eq!(total(&client, "1").await, Some(5));
}

/// To ask for it once more would make another claim of the same id where it has just ended.
#[tokio::test]
async fn a_claim_in_its_last_seconds_is_told_and_not_asked_for() {
    let client = memory(&[("1", 30)]).await;
    let mut pass = begin(&client, options()).await;
    next(&mut pass).await.unwrap();
    pass.end().await.unwrap();
    client
        .memory()
        .unwrap()
        .advance(Duration::from_secs(7 * 24 * 3600 - 1));
    let mut pass = begin(&client, options()).await;
    let (billed, unusable) = commit_all(&mut pass).await;
    assert_eq!(billed.len(), 0);
    assert_eq!(unusable.len(), 1);
    assert_eq!(
        (unusable[0].error.code(), unusable[0].key.as_slice()),
        (Code::Conflict, b"session:1:pending".as_slice())
    );
}

#[tokio::test]
async fn a_lost_reply_in_any_step_changes_nothing() {
    for lost in 0.. {
        let client = memory(&[("1", 30), ("2", 7)]).await;
        let mut dying = begin(&client, options()).await;
        next(&mut dying).await.unwrap();
        dying.end().await.unwrap();
        let mut steps = 0;
        // The reply to the first request of one step is lost.
        let mut lose = || {
            if steps == lost {
                client.memory().unwrap().lose_next_reply();
            }
            steps += 1;
        };
        lose();
        let mut pass = begin(&client, options()).await;
        let mut units = 0;
        loop {
            lose();
            let Some(claim) = next(&mut pass).await else {
                break;
            };
            units += claim.amount;
            lose();
            pass.commit().await.unwrap();
        }
        lose();
        pass.end().await.unwrap();
        assert_eq!(
            (units, pass.totals().committed_units),
            (37, 37),
            "reply {lost} lost"
        );
        assert_eq!(pass.totals().left_open, 0);
        if steps <= lost {
            assert!(lost > 5);
            break;
        }
    }
}

#[tokio::test]
async fn a_pass_ends_when_ten_thousand_claims_were_left_open() {
    let client = memory(&[]).await;
    for session in 0..10_001 {
        add(&client, &session.to_string(), 1).await;
    }
    let mut pass = begin(&client, options()).await;
    while next(&mut pass).await.is_some() {}
    assert_eq!(
        (pass.totals().offered, pass.totals().left_open),
        (10_000, 10_000)
    );
    pass.end().await.unwrap();
}

#[tokio::test]
async fn what_a_sweeper_is_told_is_checked_before_anything_is_sent() {
    let client = memory(&[]).await;
    let refused = [
        SweepOptions {
            due: Due::AtLeast(0),
            ..options()
        },
        SweepOptions {
            due: Due::Either(HOUR, -1),
            ..options()
        },
        SweepOptions {
            ttl: Duration::ZERO,
            ..options()
        },
        SweepOptions {
            lock: String::new(),
            ..options()
        },
        SweepOptions {
            lock: "x".repeat(474),
            ..options()
        },
        SweepOptions {
            lock_ttl: Duration::from_millis(2),
            ..options()
        },
        SweepOptions {
            wait: Duration::MAX,
            ..options()
        },
    ];
    for options in refused {
        let error = client.sweeper(options.clone()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{options:?}");
        assert_eq!(options.check().unwrap_err(), error);
    }
    assert_eq!(
        Due::new(None, None).unwrap_err().code(),
        Code::InvalidArgument
    );
    let mut pass = begin(&client, options()).await;
    assert_eq!(
        pass.commit().await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        pass.abort().await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

on_each_server! {
    fn keys_that_are_no_counters_are_told_and_stop_nothing(server: Server) {
        runtime().block_on(async {
            let client = Client::connect(&server.url()).await.unwrap();
            for session in ["1", "2", "3"] {
                add(&client, session, 10).await;
            }
            let mut plain = server.connection();
            redis::cmd("RPUSH").arg("session:list:pending").arg("x").exec(&mut plain).unwrap();
            redis::cmd("SET").arg("session:text:pending").arg("x").exec(&mut plain).unwrap();
            redis::cmd("SET").arg("session:{:pending").arg("1").exec(&mut plain).unwrap();
            redis::cmd("SET").arg("session:lost:pending").arg("5").exec(&mut plain).unwrap();
            let mut pass = begin(&client, options()).await;
            let (billed, mut unusable) = commit_all(&mut pass).await;
            assert_eq!(billed.values().sum::<i64>(), 35, "the counter that has lost its TTL too");
            unusable.sort_by(|one, other| one.key.cmp(&other.key));
            let codes: Vec<_> = unusable.iter().map(|found| found.error.code()).collect();
            assert_eq!(codes, [Code::WrongType, Code::NotAnInteger, Code::InvalidArgument]);
            assert_eq!(pass.totals().unusable, 3);
            assert!(unusable[0].error.to_string().contains("session:list:pending"));
        });
    }

    fn keys_that_the_account_may_not_read_are_told_and_stop_nothing(server: Server) {
        runtime().block_on(async {
            let client = Client::connect(&server.url()).await.unwrap();
            for session in ["own:1", "own:2", "another:1", "another:2"] {
                add(&client, session, 10).await;
            }
            let mut plain = server.connection();
            let account = "ACL SETUSER sweeping on >secret ~session:own:* ~sweeper* &* +@all";
            let mut command = redis::Cmd::new();
            account.split(' ').for_each(|word| { command.arg(word); });
            command.exec(&mut plain).unwrap();
            let url = server.url().replace("redis://", "redis://sweeping:secret@");
            let sweeping = Client::connect(&url).await.unwrap();
            let mut pass = begin(&sweeping, options()).await;
            let (billed, unusable) = commit_all(&mut pass).await;
            assert_eq!(billed.values().sum::<i64>(), 20);
            let codes: Vec<_> = unusable.iter().map(|found| found.error.code()).collect();
            assert_eq!(codes, [Code::Forbidden; 2]);
            // What everybody else is told has not changed.
            let mut scan = sweeping.scan("session:*:pending");
            assert_eq!(scan.next_page().await.unwrap_err().code(), Code::Forbidden);
        });
    }

    fn an_account_without_scripts_sweeps_too(server: Server) {
        runtime().block_on(async {
            let client = Client::connect(&server.url()).await.unwrap();
            for session in ["1", "2"] {
                add(&client, session, 10).await;
            }
            let mut plain = server.connection();
            let account = "ACL SETUSER sweeping on >secret ~* &* +@all -@scripting";
            let mut command = redis::Cmd::new();
            account.split(' ').for_each(|word| { command.arg(word); });
            command.exec(&mut plain).unwrap();
            let url = server.url().replace("redis://", "redis://sweeping:secret@");
            let sweeping = Client::connect(&url).await.unwrap();
            let mut pass = begin(&sweeping, options()).await;
            next(&mut pass).await.unwrap();
            pass.abort().await.unwrap();
            next(&mut pass).await.unwrap();
            pass.end().await.unwrap();
            let mut pass = begin(&sweeping, options()).await;
            assert_eq!(commit_all(&mut pass).await.0.values().sum::<i64>(), 20);
            assert_eq!(pass.totals().resumed, 1);
        });
    }

    fn two_sweepers_at_once_bill_each_unit_once(server: Server) {
        runtime().block_on(async {
            let client = Client::connect(&server.url()).await.unwrap();
            for session in 0..40 {
                add(&client, &session.to_string(), 10).await;
            }
            let sweep = |client: Client| async move {
                let patient = SweepOptions { wait: TTL, ..options() };
                commit_all(&mut begin(&client, patient).await).await.0
            };
            let other = Client::connect(&server.url()).await.unwrap();
            let (mut billed, second) = tokio::join!(sweep(client.clone()), sweep(other));
            billed.extend(second);
            assert_eq!((billed.len(), billed.values().sum::<i64>()), (40, 400));
        });
    }
}
