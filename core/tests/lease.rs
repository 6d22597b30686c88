//! What a holder believes of its lease, whatever order the server's answers come in.

mod scenario;

use scenario::{World, lock, seed, settings, ttl};
use tallylock_core::error::{Code, Error, Reason};
use tallylock_core::lock::{Acquire, Extending, Lease, LeaseTtl};
use tallylock_core::time::{Instant, Wait};

const TAKEN: Code = Code::Lost(Reason::TakenOver);
const GONE: Code = Code::Lost(Reason::Expired);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A lease of 60 s that was acquired at 0.
fn lease() -> Lease {
    let mut world = World::new([]);
    let started = Acquire::start(lock(60_000), Wait::NONE, &settings(), seed(7), at(0));
    Lease::new(lock(60_000), world.run(started, None).unwrap())
}

fn extend(lease: &mut Lease, millis: i64, now: u64) -> Extending {
    let ttl = LeaseTtl::new(ttl(millis)).unwrap();
    lease.extend(ttl, &settings(), seed(1), at(now)).unwrap().1
}

fn release(lease: &mut Lease, now: u64) {
    assert!(lease.release(&settings(), seed(1), at(now)).is_some());
}

fn failure<T>(code: Code) -> Result<T, Error> {
    Err(Error::new(code, "as the test has it"))
}

fn is_ours(lease: &mut Lease, now: u64) -> Result<(), Code> {
    lease
        .ensure(at(now), Wait::NONE)
        .map_err(|error| error.code())
}

#[test]
fn a_margin_is_looked_at_with_the_drift_taken_off() {
    let mut lease = lease();
    assert_eq!(lease.remaining(at(0)), 60_000 - 602);
    let margin = |millis| Wait::from_millis_f64(millis).unwrap();
    lease.ensure(at(0), margin(59_398.0)).unwrap();
    assert_eq!(
        lease.ensure(at(0), margin(59_399.0)).unwrap_err().code(),
        GONE
    );
    assert_eq!(is_ours(&mut lease, 59_398), Err(GONE));
}

#[test]
fn what_the_server_said_is_not_unsaid_by_a_release_that_failed() {
    let mut lease = lease();
    let extending = extend(&mut lease, 60_000, 0);
    assert!(lease.extended(extending, failure(TAKEN)).is_err());
    assert_eq!(is_ours(&mut lease, 0), Err(TAKEN));
    release(&mut lease, 10);
    assert!(lease.released(failure(Code::Unavailable)).is_err());
    assert_eq!(is_ours(&mut lease, 10), Err(TAKEN));
    assert_eq!(lease.remaining(at(10)), 0);
}

#[test]
fn a_release_that_was_not_sent_leaves_the_lease_as_it_was() {
    let mut lease = lease();
    release(&mut lease, 10);
    assert_eq!(is_ours(&mut lease, 10), Err(GONE), "it is on its way out");
    assert!(lease.released(failure(Code::Unavailable)).is_err());
    assert_eq!(is_ours(&mut lease, 10), Ok(()));
}

#[test]
fn a_release_that_was_done_by_its_lost_request_is_done() {
    let mut lease = lease();
    release(&mut lease, 10);
    assert!(lease.released(failure(Code::OutcomeUnknown)).is_err());
    assert_eq!(is_ours(&mut lease, 20), Err(GONE));
    release(&mut lease, 20);
    assert_eq!(lease.released(failure(GONE)), Ok(()));
    assert!(lease.release(&settings(), seed(1), at(30)).is_none());
}

#[test]
fn two_releases_at_a_time_both_succeed_in_either_order() {
    for first_finds_it in [true, false] {
        let mut lease = lease();
        release(&mut lease, 10);
        release(&mut lease, 11);
        let (one, other) = if first_finds_it {
            (Ok(()), failure(GONE))
        } else {
            (failure(GONE), Ok(()))
        };
        assert_eq!(lease.released(one), Ok(()));
        assert_eq!(lease.released(other), Ok(()));
    }
}

#[test]
fn a_release_is_not_taken_for_done_where_another_may_have_ended_the_lease() {
    let mut taken = lease();
    release(&mut taken, 10);
    assert!(taken.released(failure(Code::OutcomeUnknown)).is_err());
    release(&mut taken, 20);
    assert_eq!(taken.released(failure(TAKEN)).unwrap_err().code(), TAKEN);
    let mut late = lease();
    release(&mut late, 70_000);
    assert!(late.released(failure(Code::OutcomeUnknown)).is_err());
    release(&mut late, 70_010);
    assert_eq!(late.released(failure(GONE)).unwrap_err().code(), GONE);
}

#[test]
fn an_extend_that_may_have_shortened_the_lease_is_believed_to_have() {
    let mut shortened = lease();
    let extending = extend(&mut shortened, 5_000, 0);
    assert!(shortened.remaining(at(0)) < 5_000);
    assert!(
        shortened
            .extended(extending, failure(Code::OutcomeUnknown))
            .is_err()
    );
    assert!(shortened.remaining(at(0)) < 5_000);
    let mut refused = lease();
    let extending = extend(&mut refused, 5_000, 0);
    assert!(
        refused
            .extended(extending, failure(Code::Unavailable))
            .is_err()
    );
    assert_eq!(refused.remaining(at(0)), 60_000 - 602);
}

#[test]
fn a_shorter_extend_that_may_be_executed_yet_bounds_the_later_ones() {
    let mut lease = lease();
    let short = extend(&mut lease, 5_000, 0);
    assert!(
        lease
            .extended(short, failure(Code::OutcomeUnknown))
            .is_err()
    );
    let long = extend(&mut lease, 600_000, 1_000);
    lease.extended(long, Ok(at(594_998))).unwrap();
    assert_eq!(
        lease.remaining(at(1_000)),
        4_948,
        "the server may execute the short one just after the long one"
    );
    let longer = extend(&mut lease, 600_000, 2_000);
    lease.extended(longer, Ok(at(595_998))).unwrap();
    assert_eq!(lease.remaining(at(2_000)), 4_948, "or only now");
}

#[test]
fn a_longer_extend_that_may_be_executed_yet_takes_nothing_away() {
    let mut lease = lease();
    let long = extend(&mut lease, 600_000, 0);
    assert!(lease.extended(long, failure(Code::OutcomeUnknown)).is_err());
    let again = extend(&mut lease, 60_000, 1_000);
    lease.extended(again, Ok(at(60_398))).unwrap();
    assert_eq!(lease.remaining(at(1_000)), 59_398);
}

#[test]
fn of_two_extends_at_a_time_the_shorter_counts_in_every_order() {
    for short_ends_first in [true, false] {
        for short_begins_first in [true, false] {
            let mut lease = lease();
            let begin =
                |lease: &mut Lease, short| extend(lease, if short { 5_000 } else { 600_000 }, 0);
            let one = begin(&mut lease, short_begins_first);
            let other = begin(&mut lease, !short_begins_first);
            let (short, long) = if short_begins_first {
                (one, other)
            } else {
                (other, one)
            };
            let (short, long) = ((short, at(4_948)), (long, at(593_998)));
            let ends = if short_ends_first {
                [short, long]
            } else {
                [long, short]
            };
            for (extending, until) in ends {
                lease.extended(extending, Ok(until)).unwrap();
            }
            assert_eq!(lease.remaining(at(0)), 4_948);
        }
    }
}

#[test]
fn an_extend_that_failed_restores_nothing_that_another_has_changed() {
    let mut lease = lease();
    let long = extend(&mut lease, 600_000, 0);
    let short = extend(&mut lease, 5_000, 0);
    lease.extended(short, Ok(at(4_948))).unwrap();
    assert!(lease.extended(long, failure(Code::Unavailable)).is_err());
    assert_eq!(lease.remaining(at(0)), 4_948);
    let alone = extend(&mut lease, 600_000, 0);
    lease.extended(alone, Ok(at(593_998))).unwrap();
    assert_eq!(
        lease.remaining(at(0)),
        593_998,
        "one that is alone is believed again"
    );
}
