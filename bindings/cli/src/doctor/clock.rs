//! How fast a server answers, and what time it has.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tallylock::blocking::PlainConnection;
use tallylock::{Error, Reply};

use super::finding::{Check, Finding};

const LATENCY: Check = Check {
    name: "latency",
    why: "a lease is shorter by each round trip, and a slow one looks like a server that is gone",
};
const CLOCKS: Check = Check {
    name: "clocks",
    why: "where a fence is lost, the order of the next ones rests on the servers' clocks",
};

const PINGS: usize = 100;
const SLOW: Duration = Duration::from_millis(50);

/// How often a clock is read; the quickest answer counts.
const READINGS: usize = 7;
const WIDE: Duration = Duration::from_millis(100);
const TOO_WIDE: Duration = Duration::from_secs(1);

/// A server's clock beside this process's monotonic one.
#[derive(Debug)]
pub(super) struct Clock {
    server: String,
    /// How much more it shows, in microseconds.
    ahead: i128,
    /// How wrong that can be: half of the round trip, in microseconds.
    error: i128,
}

pub(super) fn latency(plain: &mut PlainConnection) -> Result<Finding, Error> {
    let mut taken = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let begun = Instant::now();
        if let [Reply::Error(_)] = plain.ask_all([["PING"]])?[..] {
            return Ok(LATENCY.refused("PING"));
        }
        taken.push(begun.elapsed());
    }
    taken.sort_unstable();
    let (median, p99) = (taken[PINGS / 2], taken[PINGS * 99 / 100]);
    let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
    let found = format!(
        "median {:.2} ms, 99th of 100 {:.2} ms",
        millis(median),
        millis(p99)
    );
    Ok(if p99 > SLOW {
        LATENCY.warning(
            found,
            "look at the network, at slow commands (SLOWLOG GET) and at the server's load",
        )
    } else {
        LATENCY.ok(found)
    })
}

impl Clock {
    /// Reads a server's clock; gives nothing if it does not tell the time.
    pub(super) fn read(server: &str, plain: &mut PlainConnection) -> Result<Option<Self>, Error> {
        static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
        let beginning = *BEGINNING;
        let micros = |time: Duration| i128::try_from(time.as_micros()).unwrap_or(i128::MAX);
        let mut best: Option<Self> = None;
        for _ in 0..READINGS {
            let sent = beginning.elapsed();
            let replies = plain.ask_all([["TIME"]])?;
            let received = beginning.elapsed();
            let Some(time) = replies.first().and_then(microseconds) else {
                return Ok(None);
            };
            let error = (micros(received) - micros(sent)) / 2;
            if best.as_ref().is_none_or(|best| error < best.error) {
                best = Some(Self {
                    server: server.to_owned(),
                    ahead: time - micros(sent) - error,
                    error,
                });
            }
        }
        Ok(best)
    }
}

/// How far several clocks are apart; nothing for less than two.
pub(super) fn difference(clocks: &[Clock]) -> Option<Finding> {
    let first = clocks.iter().max_by_key(|clock| clock.ahead)?;
    let last = clocks.iter().min_by_key(|clock| clock.ahead)?;
    if clocks.len() < 2 {
        return None;
    }
    let (apart, error) = (first.ahead - last.ahead, first.error + last.error);
    let millis = |micros: i128| format!("{}.{} ms", micros / 1_000, micros / 100 % 10);
    let found = format!("{} apart, give or take {}", millis(apart), millis(error));
    let fix = || {
        format!(
            "synchronize the clocks: {} is ahead of {}",
            first.server, last.server
        )
    };
    let certain = Duration::from_micros(u64::try_from((apart - error).max(0)).unwrap_or(u64::MAX));
    Some(match certain {
        certain if certain > TOO_WIDE => CLOCKS.problem(found, fix()),
        certain if certain > WIDE => CLOCKS.warning(found, fix()),
        _ => CLOCKS.ok(found),
    })
}

/// The reply to TIME: seconds and microseconds.
fn microseconds(reply: &Reply) -> Option<i128> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let [Reply::Text(seconds), Reply::Text(micros)] = &parts[..] else {
        return None;
    };
    let number = |text| std::str::from_utf8(text).ok()?.parse::<i128>().ok();
    Some(number(seconds)? * 1_000_000 + number(micros)?)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn clock(ahead: i128, error: i128) -> Clock {
        Clock {
            server: "h:6379".to_owned(),
            ahead,
            error,
        }
    }

    #[test]
    fn only_what_is_certain_is_held_against_a_clock() {
        let level = |clocks: &[Clock]| difference(clocks).map(|finding| finding.level);
        assert_eq!(level(&[]), None);
        assert_eq!(level(&[clock(5_000_000, 1)]), None);
        assert_eq!(
            level(&[clock(0, 1_000), clock(-101_000, 1_000)]),
            Some(Level::Ok)
        );
        assert_eq!(
            level(&[clock(0, 1_000), clock(103_000, 1_000), clock(50, 1)]),
            Some(Level::Warning)
        );
        assert_eq!(
            level(&[clock(0, 1_000), clock(1_003_000, 1_000)]),
            Some(Level::Problem)
        );
        let found = difference(&[clock(0, 1_000), clock(103_250, 1_050)])
            .unwrap()
            .found;
        assert_eq!(found, "103.2 ms apart, give or take 2.0 ms");
    }
}
