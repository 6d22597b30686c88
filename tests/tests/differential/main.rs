//! Each script's twin beside the script itself on real servers, on generated call sequences: the same replies, the same
//! outcomes, and the same value, type and TTL left behind. The same for the twins between WATCH and EXEC.

mod action;
mod compare;
mod real;
mod sides;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tallylock_testkit::Kind;

use action::Known;
use compare::same_left;
use real::Real;
use sides::{ANSWERS, Met, Pair, Transactions};

#[test]
fn valkey_agrees_with_the_twins() {
    compare(Kind::Valkey);
}

#[test]
fn redis_agrees_with_the_twins() {
    compare(Kind::Redis);
}

/// Sequences are generated anew each time, so a rare answer can be absent from one batch of them.
const BATCH: u32 = 150;
const BATCHES: usize = 20;

fn compare(kind: Kind) {
    let (scripts, transactions) = (kind.start(&[]), kind.start(&[]));
    let met = Met::default();
    for _ in 0..BATCHES {
        compare_batch(kind, &scripts.address(), &transactions.address(), &met);
        if never(&met).is_empty() {
            return;
        }
    }
    panic!("{kind:?}: the sequences never met {:?}", never(&met));
}

fn compare_batch(kind: Kind, scripts: &str, transactions: &str, met: &Met) {
    let config = ProptestConfig {
        cases: BATCH,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&vec(action::any(), 1..60), |actions| {
        let mut pair = Pair::new(Real::connect(scripts), met);
        let mut plain = Transactions::new(Real::connect(transactions));
        let (mut known, mut plain_known) = (Known::default(), Known::default());
        for action in &actions {
            let by_scripts = action.perform(&mut pair, &mut known)?;
            let by_transactions = action.perform(&mut plain, &mut plain_known)?;
            prop_assert_eq!(by_scripts, by_transactions, "after {:?}", action);
            let (memory, real) = pair.left();
            prop_assert!(
                same_left(&memory, &real),
                "{action:?} left {memory:?}\n  by the script {real:?}"
            );
            let left = plain.real.left();
            prop_assert!(
                same_left(&memory, &left),
                "{action:?} left {memory:?}\n  by the transaction {left:?}"
            );
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{kind:?}: {error}");
    }
}

/// The answers that no sequence has met yet.
fn never(met: &Met) -> Vec<&'static str> {
    let met = met.borrow();
    ANSWERS
        .into_iter()
        .filter(|answer| !met.contains(answer))
        .collect()
}
