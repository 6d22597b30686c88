//! Adds that are summed in memory and sent in batches, so that no unit is lost or counted twice on the way.
//!
//! [`Tally`] decides everything: what an add may do, what is sent when, and what each answer means. It is told the time and
//! given randomness; it sends nothing, waits for nothing and writes no file.
//!
//! The sums between two flushes are a [`Segment`]. Its random id is the idempotency key of each of its entries, and nothing is
//! added to it once it may have been sent: so it can be sent again, by a later process too, as long as its id is remembered.

mod admitted;
mod amount;
mod batch;
mod segment;
mod tally;

pub use admitted::{Admitted, Counted};
pub use batch::{Batch, Flushed, Pass, Settled};
pub use segment::{Refused, Segment};
pub use tally::{Refusals, Taken, Tally};

use core::num::{NonZeroU64, NonZeroUsize};

use crate::counter::Expiry;
use crate::error::{Code, Error};
use crate::time::{Ttl, drift};

/// What all entries of a segment have in common; it goes with the segment where that is kept for a later process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// The TTL to give to the counters.
    pub ttl: Ttl,
    /// When to give it.
    pub expiry: Expiry,
    /// How long the server remembers a segment's id at each counter, counted from when that entry is applied. Default 1 h.
    pub remember: Ttl,
}

/// How a meter gathers and flushes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeterSettings {
    /// What all entries have in common.
    pub terms: Terms,
    /// How often what has gathered is flushed. Default 1 s.
    pub interval: Ttl,
    /// Flush as soon as so many units, by their absolute values, have gathered. Default none.
    pub max_units: Option<NonZeroU64>,
    /// How many sums are held at most, those that wait for the server or are refused included. Default 100,000.
    pub max_counters: NonZeroUsize,
}

/// How often is flushed unless the caller says otherwise.
const INTERVAL: Ttl = Ttl::known(1_000);

/// How long a flush is remembered unless the caller says otherwise. Less than what one add is: each flush leaves a key at
/// each counter that it touches.
const REMEMBERED: Ttl = Ttl::known(3_600_000);

/// How many sums are held unless the caller says otherwise.
const MAX_COUNTERS: NonZeroUsize = NonZeroUsize::new(100_000).expect("it is not 0");

impl MeterSettings {
    /// The default settings, for counters with this TTL.
    pub fn new(ttl: Ttl) -> Self {
        Self {
            terms: Terms {
                ttl,
                expiry: Expiry::default(),
                remember: REMEMBERED,
            },
            interval: INTERVAL,
            max_units: None,
            max_counters: MAX_COUNTERS,
        }
    }

    /// `invalid_argument` if an id would be forgotten before an add of a client with this time-out has ended: what is sent
    /// again must still be known.
    pub fn check(&self, timeout: Ttl) -> Result<(), Error> {
        let remember = self.terms.remember;
        let needed = 2 * margin(remember, timeout);
        if remember.as_millis() > needed {
            return Ok(());
        }
        let detail = format!(
            "what is flushed must be remembered for more than {needed} ms with calls of up to {} ms, not for {} ms",
            timeout.as_millis(),
            remember.as_millis()
        );
        Err(Error::new(Code::InvalidArgument, detail))
    }
}

/// How long before the server may forget an id nothing is sent under it any more, in milliseconds: a call repeats itself until
/// its deadline, and clocks differ.
pub(crate) fn margin(remember: Ttl, timeout: Ttl) -> u64 {
    timeout.as_millis() + drift(remember)
}

/// Whether an entry that failed like this fails again however often it is sent.
pub(crate) const fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::WrongType
            | Code::NotAnInteger
            | Code::Overflow
            | Code::Conflict
            | Code::InvalidArgument
    )
}

/// Whether nothing else can be sent with better luck right now. (To try it would only close the segment that is open, and hold
/// one more sum for each counter from then on.)
pub(crate) const fn is_out_of_reach(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::Timeout
            | Code::OutcomeUnknown
            | Code::OutOfMemory
            | Code::ReadOnly
            | Code::Closed
            | Code::Cancelled
    )
}
