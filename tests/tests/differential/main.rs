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

fn compare(kind: Kind) {
    let (scripts, transactions) = (kind.start(&[]), kind.start(&[]));
    let met = Met::default();
    let config = ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&vec(action::any(), 1..60), |actions| {
        let mut pair = Pair::new(Real::connect(&scripts.address()), &met);
        let mut plain = Transactions::new(Real::connect(&transactions.address()));
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
    let met = met.into_inner();
    let missed: Vec<_> = ANSWERS
        .into_iter()
        .filter(|answer| !met.contains(answer))
        .collect();
    assert!(missed.is_empty(), "the sequences never met {missed:?}");
}
