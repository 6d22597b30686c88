//! What a client counts of its locks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use crate::error::{Code, Reason};
use crate::lock::{End, Ended, News, Tried};

/// What a client has counted: numbers that only grow, and the extremes, since it was made.
///
/// `granted + adopted` leases came to be; of them `released + transferred + abandoned + lost` are over, and the others are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Acquires that were granted the lock.
    pub granted: u64,
    /// Acquires that ended as `busy`.
    pub busy: u64,
    /// Acquires that their callers gave up.
    pub cancelled: u64,
    /// Acquires that ended with another error.
    pub failed: u64,
    /// How often these have asked for the lock, each time all servers.
    pub attempts: u64,
    /// How long these have taken, all together.
    pub waited: Duration,
    /// How long the longest of these took.
    pub longest_wait: Duration,
    /// Leases that were taken over by `adopt`.
    pub adopted: u64,
    /// Leases that were released.
    pub released: u64,
    /// Leases that were given away by `transfer`.
    pub transferred: u64,
    /// Leases that their holders forgot without a release, or whose release has an unknown outcome.
    pub abandoned: u64,
    /// Leases that were lost, by reason.
    pub lost: Losses,
    /// How long leases were held that were released, given away or lost, all together.
    pub held: Duration,
    /// How long the one of these was held that was held the longest.
    pub longest_hold: Duration,
    /// Renewals that gave a lease its TTL again. An `extend` by the holder is none.
    pub renewals: u64,
    /// Renewals that had no success; each is tried again while there is time.
    pub failed_renewals: u64,
    /// The least that was left of a lease when it was renewed; nothing before the first renewal.
    pub smallest_margin: Option<Duration>,
    /// Locks that were stolen through this client.
    pub stolen: u64,
    /// Counters that had lost their TTL and were given one by a drain or a claim.
    pub healed: u64,
}

/// How many leases were lost, by reason. A lease in a child of `fork` is its parent's, and lost by nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Their time ran out, or the server had them no more: restarted, evicted, stolen.
    pub expired: u64,
    /// Another token was in their place.
    pub taken_over: u64,
    /// Their time ran out while the server could not be asked for more.
    pub unreachable: u64,
}

/// The numbers of a client, which threads count up at the same time without waiting for each other.
#[derive(Debug)]
pub struct Counts([AtomicU64; Figure::COUNT]);

/// A number of a client, in the order in which [`Counts::figure`] knows them. Times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    Granted,
    Busy,
    Cancelled,
    Failed,
    Attempts,
    Waited,
    LongestWait,
    Adopted,
    Released,
    Transferred,
    Abandoned,
    Expired,
    TakenOver,
    Unreachable,
    Held,
    LongestHold,
    Renewals,
    FailedRenewals,
    SmallestMargin,
    Stolen,
    Healed,
}

impl Figure {
    const COUNT: usize = Self::Healed as usize + 1;
}

impl Counts {
    /// An acquire has ended: after `asked` requests for the lock and so many milliseconds, granted or refused like this.
    pub fn acquired(&self, asked: u32, waited: u64, refused: Option<Code>) {
        self.add(match refused {
            None => Figure::Granted,
            Some(Code::Busy) => Figure::Busy,
            Some(Code::Cancelled) => Figure::Cancelled,
            Some(_) => Figure::Failed,
        });
        self.add_many(Figure::Attempts, u64::from(asked));
        self.add_time(Figure::Waited, Figure::LongestWait, waited);
    }

    /// A lease was taken over.
    pub fn adopted(&self) {
        self.add(Figure::Adopted);
    }

    /// Something has become of a lease.
    pub fn learn(&self, news: &News) {
        match news.renewal {
            Some(Tried::Renewed { margin }) => {
                self.add(Figure::Renewals);
                self.of(Figure::SmallestMargin).fetch_min(margin, Relaxed);
            }
            Some(Tried::Failed) => self.add(Figure::FailedRenewals),
            None => {}
        }
        if let Some(Ended { how, held }) = news.ended {
            self.add(match how {
                End::Released => Figure::Released,
                End::Transferred => Figure::Transferred,
                End::Lost(Reason::TakenOver) => Figure::TakenOver,
                End::Lost(Reason::Unreachable) => Figure::Unreachable,
                End::Lost(Reason::Expired | Reason::Forked) => Figure::Expired,
            });
            self.add_time(Figure::Held, Figure::LongestHold, held);
        }
    }

    /// A lease was forgotten before it ended.
    pub fn abandoned(&self) {
        self.add(Figure::Abandoned);
    }

    /// A lock was stolen.
    pub fn stolen(&self) {
        self.add(Figure::Stolen);
    }

    /// A counter was given a TTL that it had lost.
    pub fn healed(&self) {
        self.add(Figure::Healed);
    }

    /// The number in this place, times in milliseconds; nothing if there is none: no such place, or no renewal yet.
    pub fn figure(&self, place: usize) -> Option<u64> {
        let figure = self.0.get(place)?.load(Relaxed);
        (figure != NONE_YET).then_some(figure)
    }

    /// All of it. Each number is right by itself; taken while others count, one may be a step ahead of another.
    pub fn metrics(&self) -> Metrics {
        let number = |figure| self.figure(figure as usize).unwrap_or_default();
        let time = |figure| Duration::from_millis(number(figure));
        Metrics {
            granted: number(Figure::Granted),
            busy: number(Figure::Busy),
            cancelled: number(Figure::Cancelled),
            failed: number(Figure::Failed),
            attempts: number(Figure::Attempts),
            waited: time(Figure::Waited),
            longest_wait: time(Figure::LongestWait),
            adopted: number(Figure::Adopted),
            released: number(Figure::Released),
            transferred: number(Figure::Transferred),
            abandoned: number(Figure::Abandoned),
            lost: Losses {
                expired: number(Figure::Expired),
                taken_over: number(Figure::TakenOver),
                unreachable: number(Figure::Unreachable),
            },
            held: time(Figure::Held),
            longest_hold: time(Figure::LongestHold),
            renewals: number(Figure::Renewals),
            failed_renewals: number(Figure::FailedRenewals),
            smallest_margin: self
                .figure(Figure::SmallestMargin as usize)
                .map(Duration::from_millis),
            stolen: number(Figure::Stolen),
            healed: number(Figure::Healed),
        }
    }

    fn add(&self, figure: Figure) {
        self.add_many(figure, 1);
    }

    fn add_many(&self, figure: Figure, amount: u64) {
        self.of(figure).fetch_add(amount, Relaxed);
    }

    fn add_time(&self, total: Figure, longest: Figure, millis: u64) {
        self.add_many(total, millis);
        self.of(longest).fetch_max(millis, Relaxed);
    }

    fn of(&self, figure: Figure) -> &AtomicU64 {
        &self.0[figure as usize]
    }
}

/// Stands for the smallest of no numbers.
const NONE_YET: u64 = u64::MAX;

impl Default for Counts {
    fn default() -> Self {
        let counts = Self(core::array::from_fn(|_| AtomicU64::new(0)));
        counts.of(Figure::SmallestMargin).store(NONE_YET, Relaxed);
        counts
    }
}

impl Losses {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.expired + self.taken_over + self.unreachable
    }
}

impl Metrics {
    /// What two clients have counted together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let margins = [self.smallest_margin, other.smallest_margin];
        Self {
            granted: self.granted + other.granted,
            busy: self.busy + other.busy,
            cancelled: self.cancelled + other.cancelled,
            failed: self.failed + other.failed,
            attempts: self.attempts + other.attempts,
            waited: self.waited + other.waited,
            longest_wait: self.longest_wait.max(other.longest_wait),
            adopted: self.adopted + other.adopted,
            released: self.released + other.released,
            transferred: self.transferred + other.transferred,
            abandoned: self.abandoned + other.abandoned,
            lost: Losses {
                expired: self.lost.expired + other.lost.expired,
                taken_over: self.lost.taken_over + other.lost.taken_over,
                unreachable: self.lost.unreachable + other.lost.unreachable,
            },
            held: self.held + other.held,
            longest_hold: self.longest_hold.max(other.longest_hold),
            renewals: self.renewals + other.renewals,
            failed_renewals: self.failed_renewals + other.failed_renewals,
            smallest_margin: margins.into_iter().flatten().min(),
            stolen: self.stolen + other.stolen,
            healed: self.healed + other.healed,
        }
    }
}
