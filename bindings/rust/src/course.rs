//! The course of a lease, as it is counted and traced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tallylock_core::error::{Error, shown};
use tallylock_core::lock::{End, Ended, Lock, News, Tried};
use tallylock_core::metrics::Counts;
use tracing::field::Empty;
use tracing::{Span, debug, debug_span, warn};

/// Where a lease is counted, and the span that lasts as long as it is held.
pub(crate) struct Course {
    counts: Arc<Counts>,
    span: Mutex<Span>,
}

impl Course {
    pub(crate) fn new(counts: Arc<Counts>) -> Self {
        Self {
            counts,
            span: Mutex::new(Span::none()),
        }
    }

    /// Is traced from now on, in the span of the caller.
    pub(crate) fn trace(&self, lock: &Lock, fence: u64) {
        let span = debug_span!(
            "lease",
            key = %shown(lock.key().as_bytes()),
            fence,
            end = Empty,
            held_ms = Empty,
        );
        *self.span() = span;
    }

    /// Counts what has become of the lease.
    pub(crate) fn count(&self, news: &News) {
        self.counts.learn(news);
    }

    /// Tells who traces it; with the error if it was lost. Nothing is to be locked: a subscriber may use the lease.
    #[cold]
    pub(crate) fn tell(&self, news: &News, fence: u64, lost: Option<&Error>) {
        let span = self.span().clone();
        span.in_scope(|| match news.renewal {
            Some(Tried::Renewed { margin }) => debug!(fence, margin_ms = margin, "renewed"),
            Some(Tried::Failed) => debug!(fence, "a renewal had no success"),
            None => {}
        });
        let Some(Ended { how, held }) = news.ended else {
            return;
        };
        if let (End::Lost(reason), Some(error)) = (how, lost) {
            let reason = reason.as_str();
            span.in_scope(|| warn!(fence, reason, held_ms = held, "{error}"));
        }
        span.record("end", how.as_str());
        span.record("held_ms", held);
        *self.span() = Span::none();
    }

    /// Nobody has the lease any more, and it had not ended.
    pub(crate) fn abandon(&self) {
        self.counts.abandoned();
    }

    fn span(&self) -> MutexGuard<'_, Span> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
