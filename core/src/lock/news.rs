//! What becomes of a lease, for those who count and trace it.

use crate::error::Reason;
use crate::time::Instant;

/// What has become of a lease since that was last asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// How a renewal of its own ended.
    pub renewal: Option<Tried>,
    /// That it is over; said once.
    pub ended: Option<Ended>,
}

/// How a renewal ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tried {
    /// The lease has its TTL again.
    Renewed {
        /// What was left of it at that moment, in milliseconds.
        margin: u64,
    },
    /// It had no success.
    Failed,
}

/// That a lease is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How.
    pub how: End,
    /// For how long it was held, in milliseconds: from the request that took it until the holder let go of it, or it was lost.
    pub held: u64,
}

/// How a lease ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The server has confirmed the release.
    Released,
    /// Another holds it now.
    Transferred,
    /// It was lost.
    Lost(Reason),
}

impl End {
    /// A word for it; that of the reason if it was lost.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Transferred => "transferred",
            Self::Lost(reason) => reason.as_str(),
        }
    }
}

/// What a lease notes of its course.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notes {
    since: Instant,
    let_go_at: Option<Instant>,
    renewal: Option<Tried>,
    has_ended: bool,
}

impl Notes {
    pub(super) const fn new(since: Instant) -> Self {
        Self {
            since,
            let_go_at: None,
            renewal: None,
            has_ended: false,
        }
    }

    /// The holder lets go of it.
    pub(super) const fn let_go(&mut self, now: Instant) {
        self.let_go_at = Some(now);
    }

    /// The holder holds it still: what was to end it was not done.
    pub(super) const fn hold_on(&mut self) {
        self.let_go_at = None;
    }

    pub(super) const fn tried(&mut self, renewal: Tried) {
        self.renewal = Some(renewal);
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What is new, of a lease that has ended like this, at `over_at` unless its holder let go of it before.
    pub(super) fn news(&mut self, end: Option<End>, over_at: Instant) -> Option<News> {
        let ended = end.filter(|_| !self.has_ended).map(|how| Ended {
            how,
            held: self.let_go_at.unwrap_or(over_at).since(self.since),
        });
        self.has_ended |= ended.is_some();
        let renewal = self.renewal.take();
        (renewal.is_some() || ended.is_some()).then_some(News { renewal, ended })
    }
}
