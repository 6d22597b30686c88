//! What a meter makes of a segment that another process left, which had terms of its own.

use tallylock_core::key::Key;
use tallylock_core::meter::{MeterSettings, Segment, Tally, Terms};
use tallylock_core::time::Ttl;
use tallylock_core::token::Seed;

const HOUR: u64 = 3_600_000;

fn ttl(millis: i64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

fn settings() -> MeterSettings {
    MeterSettings::new(ttl(900_000))
}

fn tally(settings: MeterSettings) -> Tally {
    Tally::new(settings, ttl(2_000)).unwrap()
}

/// A segment that another process left, remembered for so long.
fn left_behind(remember: i64, sent: Option<u64>) -> Segment {
    let terms = Terms {
        remember: ttl(remember),
        ..settings().terms
    };
    let id = Segment::new(Seed::new([7; 16]), terms.clone()).id().clone();
    Segment::restored(id, terms, sent, [(Key::new("a").unwrap(), 5)])
}

#[test]
fn how_long_what_another_process_sent_is_remembered_is_measured_by_its_own_terms() {
    // Of 30 days, 1 in 100 is more than the hour for which this one is remembered.
    let mut long = settings();
    long.terms.remember = ttl(30 * 24 * 3_600_000);
    let mut meter = tally(long);
    meter.restore(left_behind(3_600_000, Some(HOUR)));
    let mut pass = meter.begin();
    assert!(meter.next_batch(&mut pass, HOUR + 60_000).is_some());
    let mut short = settings();
    short.terms.remember = ttl(60_000);
    let mut meter = tally(short);
    meter.restore(left_behind(100 * 3_600_000, Some(HOUR)));
    // Clocks that differ by 1 in 100 may be an hour apart.
    let mut pass = meter.begin();
    let nearly_over = HOUR + 100 * HOUR - HOUR / 2;
    assert!(meter.next_batch(&mut pass, nearly_over).is_none());
    assert_eq!(meter.end(pass).0.refused, 1);
}
