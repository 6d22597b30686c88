//! A deadline, with the time when the clock was last looked at.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tallylock_core::time::Instant;

use crate::clock;

/// The moment at which waiting ends.
///
/// The clock is read when one is made and after everything that may have taken long, and not before each read and write:
/// all of these readings together would be a good part of what a call costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    until: Instant,
    now: Instant,
}

impl Deadline {
    pub(super) fn new(until: Instant) -> Self {
        Self {
            until,
            now: clock::now(),
        }
    }

    /// The time when the clock was last looked at.
    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// The same deadline, or one in so many milliseconds if that is earlier.
    pub(super) fn at_most(self, millis: u64) -> Self {
        Self {
            until: self.until.min(self.now.plus(millis)),
            ..self
        }
    }

    /// Looks at the clock.
    pub(super) fn refresh(&mut self) {
        self.now = clock::now();
    }

    /// How long it is until then, or a time-out.
    pub(super) fn left(&self) -> io::Result<Duration> {
        match self.until.since(self.now) {
            0 => Err(ErrorKind::TimedOut.into()),
            millis => Ok(Duration::from_millis(millis)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_passes_when_the_clock_is_looked_at() {
        let mut deadline = Deadline::new(clock::now().plus(20));
        std::thread::sleep(Duration::from_millis(25));
        assert!(deadline.left().unwrap() <= Duration::from_millis(20));
        deadline.refresh();
        assert_eq!(deadline.left().unwrap_err().kind(), ErrorKind::TimedOut);
        let near = Deadline::new(clock::now().plus(60_000)).at_most(100);
        assert!(near.left().unwrap() <= Duration::from_millis(100));
        assert!(near.at_most(60_000).left().unwrap() <= Duration::from_millis(100));
    }
}
