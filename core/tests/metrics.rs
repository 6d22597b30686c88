//! What is counted of acquires and leases.

mod scenario;

use std::time::Duration;

use scenario::{World, lock, seed, settings};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Acquire, End, Ended, Grant, Keeping, News, Renewal, Tried};
use tallylock_core::metrics::{Counts, Metrics};
use tallylock_core::step::{Event, Next, Operation, Reply, Step, Undelivered};
use tallylock_core::time::{Instant, Wait};

/// When a lease of 60 s that was asked for at 0 is over.
const DEADLINE: u64 = 60_000 - 602;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// An acquire that ends with how often it has asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asking(Acquire);

type Asked = (u32, Result<Grant, Error>);

impl Asking {
    fn show(&self, step: Step<Result<Grant, Error>>) -> Step<Asked> {
        let next = match step.next {
            Next::WaitUntil(until) => Next::WaitUntil(until),
            Next::Done(result) => Next::Done((self.0.asked(), result)),
        };
        Step {
            calls: step.calls,
            next,
        }
    }
}

impl Operation for Asking {
    type Output = Asked;

    fn handle(&mut self, now: Instant, event: Event) -> Step<Asked> {
        let step = self.0.handle(now, event);
        self.show(step)
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.0.met_refusal_of_scripts()
    }
}

fn ask(world: &mut World, owner: u8, wait: u64) -> Asked {
    let wait = Wait::from_micros(i64::try_from(wait).unwrap() * 1_000).unwrap();
    let now = world.memory.now();
    let (acquire, step) = Acquire::start(lock(60_000), wait, &settings(), seed(owner), now);
    let asking = Asking(acquire);
    let step = asking.show(step);
    world.run((asking, step), None)
}

/// A lease of 60 s that was asked for at 0 and granted then.
fn held() -> Renewal {
    let (_, grant) = ask(&mut World::new([]), 1, 0);
    let keeping = Keeping::default();
    Renewal::new(
        lock(60_000),
        grant.unwrap(),
        keeping,
        &settings(),
        seed(1),
        at(0),
    )
}

fn news(renewal: &mut Renewal, now: u64) -> Option<News> {
    renewal.lease().news(at(now))
}

fn ended(how: End, held: u64) -> News {
    News {
        renewal: None,
        ended: Some(Ended { how, held }),
    }
}

/// The news after a renewal that began at 20 s and was answered like this, half a second later.
fn renewed(outcome: Result<Vec<Reply>, Undelivered>) -> Option<News> {
    let mut renewal = held();
    assert_eq!(news(&mut renewal, 19_999), None);
    let step = renewal.handle(at(20_000), Event::Woke);
    assert_eq!(news(&mut renewal, 20_000), None, "it is under way");
    let [call] = step.calls.try_into().unwrap();
    let call = call.id;
    let _ = renewal.handle(at(20_500), Event::Replied { call, outcome });
    let first = news(&mut renewal, 20_500);
    assert_eq!(news(&mut renewal, 20_500), None, "it is told once");
    first
}

fn lost(renewal: &mut Renewal, reason: Reason) -> Error {
    renewal.lease().lock().lost(reason, "the server said so")
}

#[test]
fn each_request_for_the_lock_is_counted() {
    let mut world = World::new([]);
    let (asked, granted) = ask(&mut world, 1, 0);
    assert_eq!((asked, granted.is_ok()), (1, true));
    let before = world.sent.len();
    let (asked, refused) = ask(&mut world, 2, 1_000);
    assert_eq!(refused.unwrap_err().code(), Code::Busy);
    let sent = world.sent.len() - before;
    assert!(sent > 3, "{sent}");
    // Its text is known there from the first acquire on: each attempt is one request.
    assert_eq!(asked as usize, sent);
}

#[test]
fn whoever_stood_behind_others_to_the_end_has_asked_for_nothing() {
    let wait = Wait::from_micros(1_000_000).unwrap();
    let (mut acquire, _) = Acquire::start_behind(lock(60_000), wait, &settings(), seed(7), at(0));
    let step = acquire.handle(at(3_600_000), Event::Woke);
    assert!(matches!(step.next, Next::Done(Err(_))), "{step:?}");
    assert_eq!(acquire.asked(), 0);
}

#[test]
fn a_release_is_told_once_with_how_long_it_was_held() {
    let mut renewal = held();
    assert!(renewal.leave(at(1_000)));
    assert_eq!(news(&mut renewal, 1_000), None, "it is not confirmed yet");
    renewal.lease().released(Ok(())).unwrap();
    assert!(!renewal.lease().has_told_its_end());
    assert_eq!(news(&mut renewal, 1_010), Some(ended(End::Released, 1_000)));
    assert!(renewal.lease().has_told_its_end());
    assert_eq!(news(&mut renewal, 70_000), None);
}

#[test]
fn a_transfer_is_told() {
    let mut renewal = held();
    renewal.transfer(at(2_000)).unwrap();
    assert_eq!(
        news(&mut renewal, 2_000),
        Some(ended(End::Transferred, 2_000))
    );
    assert_eq!(news(&mut renewal, 70_000), None);
}

#[test]
fn a_loss_is_told_with_the_time_until_the_deadline_however_late_it_is_seen() {
    let mut renewal = held();
    let lost = ended(End::Lost(Reason::Expired), DEADLINE);
    assert_eq!(news(&mut renewal, 3_600_000), Some(lost));
    // Its key is removed after that.
    renewal.leave(at(3_600_000));
    renewal.lease().released(Ok(())).unwrap();
    assert_eq!(news(&mut renewal, 3_600_001), None);
}

#[test]
fn a_release_that_finds_another_holder_is_a_loss_at_the_release() {
    let mut renewal = held();
    renewal.leave(at(1_000));
    let taken = lost(&mut renewal, Reason::TakenOver);
    renewal.lease().released(Err(taken)).unwrap_err();
    let taken_over = ended(End::Lost(Reason::TakenOver), 1_000);
    assert_eq!(news(&mut renewal, 1_500), Some(taken_over));
}

#[test]
fn a_release_that_was_not_sent_ends_nothing() {
    let mut renewal = held();
    renewal.leave(at(1_000));
    let refused = Error::new(Code::Unavailable, "there is no connection");
    renewal.lease().released(Err(refused)).unwrap_err();
    assert_eq!(news(&mut renewal, 1_001), None);
    let expired = ended(End::Lost(Reason::Expired), DEADLINE);
    assert_eq!(news(&mut renewal, DEADLINE), Some(expired));
}

#[test]
fn a_release_with_an_unknown_outcome_is_no_end() {
    let mut renewal = held();
    renewal.leave(at(1_000));
    let unknown = Error::new(Code::OutcomeUnknown, "its reply was lost");
    renewal.lease().released(Err(unknown)).unwrap_err();
    assert_eq!(news(&mut renewal, 3_600_000), None);
    assert!(!renewal.lease().has_told_its_end());
}

#[test]
fn a_renewal_is_told_with_what_was_left() {
    let margin = DEADLINE - 20_500;
    let told = News {
        renewal: Some(Tried::Renewed { margin }),
        ended: None,
    };
    assert_eq!(
        renewed(Ok(vec![Reply::Text("extended".into())])),
        Some(told)
    );
}

#[test]
fn a_renewal_without_success_is_told() {
    let told = News {
        renewal: Some(Tried::Failed),
        ended: None,
    };
    let refused = Reply::Error("READONLY it is a replica".into());
    assert_eq!(renewed(Ok(vec![refused])), Some(told));
}

#[test]
fn a_renewal_that_finds_another_holder_is_a_loss_too() {
    let held = 20_500;
    let told = News {
        renewal: Some(Tried::Failed),
        ended: Some(Ended {
            how: End::Lost(Reason::TakenOver),
            held,
        }),
    };
    assert_eq!(renewed(Ok(vec![Reply::Text("taken".into())])), Some(told));
}

#[test]
fn what_is_noted_makes_no_other_state() {
    let (mut one, mut other) = (held(), held());
    one.leave(at(1_000));
    other.leave(at(1_000));
    for renewal in [&mut one, &mut other] {
        renewal.lease().released(Ok(())).unwrap();
    }
    assert!(news(&mut one, 1_000).is_some());
    assert_eq!(one, other, "although the end of only one was told");
}

#[test]
fn the_numbers_grow_and_the_extremes_stay() {
    let counts = Counts::default();
    let nothing = counts.metrics();
    assert_eq!(nothing, Metrics::default());
    counts.acquired(1, 5, None);
    counts.acquired(4, 300, Some(Code::Busy));
    counts.acquired(2, 40, Some(Code::Cancelled));
    counts.acquired(1, 7, Some(Code::Unavailable));
    counts.adopted();
    counts.adopted();
    for (margin, how) in [
        (900, End::Released),
        (40, End::Transferred),
        (700, End::Lost(Reason::Expired)),
        (800, End::Lost(Reason::TakenOver)),
        (500, End::Lost(Reason::Unreachable)),
    ] {
        counts.learn(&News {
            renewal: Some(Tried::Renewed { margin }),
            ended: Some(Ended {
                how,
                held: 2 * margin,
            }),
        });
    }
    counts.learn(&News {
        renewal: Some(Tried::Failed),
        ended: None,
    });
    counts.abandoned();
    counts.stolen();
    for _ in 0..3 {
        counts.healed();
    }
    let metrics = counts.metrics();
    let outcomes = [
        metrics.granted,
        metrics.busy,
        metrics.cancelled,
        metrics.failed,
    ];
    assert_eq!(outcomes, [1, 1, 1, 1]);
    assert_eq!(metrics.attempts, 8);
    assert_eq!(metrics.waited, Duration::from_millis(352));
    assert_eq!(metrics.longest_wait, Duration::from_millis(300));
    let ends = [
        metrics.released,
        metrics.transferred,
        metrics.abandoned,
        metrics.lost.expired,
        metrics.lost.taken_over,
        metrics.lost.unreachable,
    ];
    assert_eq!((metrics.adopted, ends), (2, [1; 6]));
    assert_eq!(metrics.lost.total(), 3);
    assert_eq!(metrics.held, Duration::from_millis(2 * 2_940));
    assert_eq!(metrics.longest_hold, Duration::from_millis(1_800));
    assert_eq!((metrics.renewals, metrics.failed_renewals), (5, 1));
    assert_eq!(metrics.smallest_margin, Some(Duration::from_millis(40)));
    assert_eq!((metrics.stolen, metrics.healed), (1, 3));

    // Other languages know the numbers by their places.
    let figures: Vec<_> = (0..).map_while(|place| counts.figure(place)).collect();
    let expected = [
        1, 1, 1, 1, 8, 352, 300, 2, 1, 1, 1, 1, 1, 1, 5_880, 1_800, 5, 1, 40, 1, 3,
    ];
    assert_eq!(figures, expected);
    assert_eq!(Counts::default().figure(18), None, "no renewal yet");

    together(metrics, nothing);
}

/// Of two clients the sums, and of the extremes the larger or smaller one.
fn together(metrics: Metrics, nothing: Metrics) {
    assert_eq!(metrics.plus(nothing), metrics);
    assert_eq!(nothing.plus(metrics), metrics);
    let twice = metrics.plus(metrics);
    assert_eq!((twice.attempts, twice.lost.total()), (16, 6));
    assert_eq!(
        (twice.waited, twice.held),
        (2 * metrics.waited, 2 * metrics.held)
    );
    assert_eq!(twice.longest_wait, metrics.longest_wait);
    assert_eq!(twice.longest_hold, metrics.longest_hold);
    assert_eq!(twice.smallest_margin, metrics.smallest_margin);
}
