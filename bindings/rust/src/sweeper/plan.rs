//! What a sweeper is to do.

use std::sync::Arc;
use std::time::Duration;

use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{self, Keeping};
use tallylock_core::scan::Found;
use tallylock_core::time::{Ttl, Wait};

use super::claims::Names;
use super::pass::Sweep;
use crate::spec::{self, LockSpec};
use crate::{Client, Lock};

/// What a sweeper is to do, and under which lock.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The pattern of the counters' keys (`*`, `?`, `[a-z]`). It should match counters and nothing else.
    pub pattern: Vec<u8>,
    /// Which of them are to be billed.
    pub due: Due,
    /// The TTL for a counter that has lost its own, or that is gone when a claim on it is aborted.
    pub ttl: Duration,
    /// The key of the lock: one sweeper works under it at a time. It is a part of the claims' ids.
    pub lock: String,
    /// How long the lock lasts without being extended. That is done between two claims: so long a callback may take.
    pub lock_ttl: Duration,
    /// How long to wait for the lock if another sweeper is at work.
    pub wait: Duration,
}

/// Which counters are to be billed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Those that hold something and end within this time, or have lost their TTL.
    Within(Duration),
    /// Those that hold at least so much; at least 1.
    AtLeast(i64),
    /// Those that are due by one of the two.
    Either(Duration, i64),
}

/// Bills counters before they end, or once they hold much; in passes, of which there is one at a time under its lock.
///
/// Its claims are known by their ids, `sweep.<lock>.<32 hexadecimal digits>`. One that stays open, because the sweeper died
/// or could not bill it, is handed out again by the next pass, whoever makes it, for the 7 days that a claim is kept.
#[derive(Clone, Debug)]
pub struct Sweeper {
    client: Client,
    plan: Arc<Plan>,
}

impl Due {
    /// What is due by the one or by the other, of which at least one is given; else `invalid_argument`.
    pub fn new(within: Option<Duration>, at_least: Option<i64>) -> Result<Self, Error> {
        match (within, at_least) {
            (Some(within), Some(least)) => Ok(Self::Either(within, least)),
            (Some(within), None) => Ok(Self::Within(within)),
            (None, Some(least)) => Ok(Self::AtLeast(least)),
            (None, None) => Err(Error::new(
                Code::InvalidArgument,
                "a sweeper is told within what time counters end or how much they hold at least",
            )),
        }
    }

    fn check(self) -> Result<(), Error> {
        match self {
            Self::AtLeast(least) | Self::Either(_, least) if least < 1 => Err(Error::new(
                Code::InvalidArgument,
                format!("what a counter holds at least is 1 or more, not {least}"),
            )),
            _ => Ok(()),
        }
    }
}

impl SweepOptions {
    /// Checks them, without a client.
    ///
    /// # Errors
    /// Those of [`Client::sweeper`].
    pub fn check(self) -> Result<(), Error> {
        Plan::new(self).map(|_| ())
    }
}

impl Sweeper {
    pub(crate) fn new(client: Client, options: SweepOptions) -> Result<Self, Error> {
        let plan = Arc::new(Plan::new(options)?);
        Ok(Self { client, plan })
    }

    /// Begins a pass: takes the lock.
    ///
    /// # Errors
    /// `busy` if another sweeper is at work until the wait is over, and those of [`Lock::acquire`].
    pub async fn begin(&self) -> Result<Sweep, Error> {
        // A callback that hangs must not hold the lock for ever: the pass extends it itself, between two claims.
        let spec = LockSpec::of(self.plan.lock.clone(), Keeping::default().never());
        let lock = Lock::new(self.client.clone(), spec);
        let lease = lock.acquire(self.plan.wait).await?;
        Ok(Sweep::new(
            self.client.clone(),
            Arc::clone(&self.plan),
            lease,
        ))
    }
}

/// The options, checked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) pattern: Vec<u8>,
    due: Due,
    pub(super) ttl: Duration,
    pub(super) names: Names,
    lock: lock::Lock,
    pub(super) lock_ttl: Duration,
    wait: Duration,
}

impl Plan {
    fn new(options: SweepOptions) -> Result<Self, Error> {
        options.due.check()?;
        let ttl = Ttl::from_duration(options.ttl)?;
        let wait = Wait::from_duration(options.wait)?;
        Ok(Self {
            pattern: options.pattern,
            due: options.due,
            ttl: Duration::from_millis(ttl.as_millis()),
            names: Names::new(&options.lock)?,
            lock: spec::lock(options.lock.as_bytes(), options.lock_ttl)?,
            lock_ttl: options.lock_ttl,
            wait: Duration::from_millis(wait.as_millis()),
        })
    }

    /// Whether this counter is to be billed.
    pub(super) fn is_due(&self, found: &Found) -> bool {
        let ends = |within| found.is_expiring(within);
        let holds = |least| found.counter().is_some_and(|amount| amount >= least);
        match self.due {
            Due::Within(within) => ends(within),
            Due::AtLeast(least) => holds(least),
            Due::Either(within, least) => ends(within) || holds(least),
        }
    }

    /// Whether this is the key of the sweeper's own lock.
    pub(super) fn is_lock(&self, key: &[u8]) -> bool {
        self.lock.key().as_bytes() == key
    }
}
