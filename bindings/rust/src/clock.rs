//! The process's monotonic clock, in milliseconds since it was first read, and the virtual one of a server in memory.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tallylock_core::time::Instant;

use crate::memory::{Caller, Server};

/// What a client's leases run by.
#[derive(Clone)]
pub(crate) enum Clock {
    Machine,
    Virtual(Arc<Server>),
}

impl Clock {
    /// The time on it.
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Machine => now(),
            Self::Virtual(server) => server.now(),
        }
    }

    /// Keeps a virtual one from jumping until this is dropped.
    pub(crate) fn hold(&self) -> Option<Caller> {
        self.memory().map(Caller::new)
    }

    /// The server in memory whose clock it is.
    pub(crate) fn memory(&self) -> Option<&Arc<Server>> {
        match self {
            Self::Machine => None,
            Self::Virtual(server) => Some(server),
        }
    }
}

/// The time now.
///
/// On Linux it goes on while the machine sleeps (`CLOCK_BOOTTIME`): the servers' clocks do too, so a lease that ran
/// out meanwhile is seen to have run out.
pub(crate) fn now() -> Instant {
    static BEGINNING: LazyLock<Duration> = LazyLock::new(reading);
    // Read before the reading that is subtracted, so that the difference is never negative.
    let beginning = *BEGINNING;
    let elapsed = reading().saturating_sub(beginning);
    Instant::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// How long it is from now until that moment; zero if it has passed.
pub(crate) fn left_until(until: Instant) -> Duration {
    Duration::from_millis(until.since(now()))
}

#[cfg(target_os = "linux")]
fn reading() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

#[cfg(not(target_os = "linux"))]
fn reading() -> Duration {
    static FIRST: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    FIRST.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_never_goes_back() {
        let first = now();
        std::thread::sleep(Duration::from_millis(20));
        let second = now();
        assert!(
            (20..2_000).contains(&second.since(first)),
            "{first:?} {second:?}"
        );
        assert_eq!(left_until(first), Duration::ZERO);
        assert!(left_until(second.plus(1_000)) > Duration::from_millis(500));
    }
}
