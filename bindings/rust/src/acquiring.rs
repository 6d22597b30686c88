//! An acquire, as it is counted and traced.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tallylock_core::error::{Error, shown};
use tallylock_core::lock::{Acquire, Grant, Lock};
use tallylock_core::metrics::Counts;
use tallylock_core::time::{Instant, Wait};
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::backend::Backend;

/// An acquire from its start until its caller has an answer. What it has to undo after that is no wait of anybody.
pub(crate) struct Acquiring {
    counts: Arc<Counts>,
    started_at: Instant,
    asked: AtomicU32,
    /// Taken by the answer.
    span: Mutex<Option<Span>>,
}

impl Acquiring {
    /// Begins, in the span of the caller.
    pub(crate) fn begin(backend: &Backend, lock: &Lock, wait: Wait, now: Instant) -> Self {
        let span = info_span!(
            "acquire",
            key = %shown(lock.key().as_bytes()),
            wait_ms = wait.as_millis(),
            code = Empty,
            attempts = Empty,
            waited_ms = Empty,
            fence = Empty,
        );
        Self {
            counts: Arc::clone(backend.counts()),
            started_at: now,
            asked: AtomicU32::new(0),
            span: Mutex::new(Some(span)),
        }
    }

    /// Takes in how far it has come.
    pub(crate) fn observe(&self, acquire: &Acquire) {
        self.asked.store(acquire.asked(), Ordering::Relaxed);
    }

    /// Ends with what the caller is told, and when; what comes after that is not looked at.
    pub(crate) fn answer(
        &self,
        now: Instant,
        result: Result<Grant, Error>,
    ) -> Result<(Grant, Instant), Error> {
        self.end(now, result.as_ref().map(|grant| grant.fence));
        result.map(|grant| (grant, now))
    }

    fn end(&self, now: Instant, result: Result<u64, &Error>) {
        let span = self.span.lock();
        let Some(span) = span.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let asked = self.asked.load(Ordering::Relaxed);
        let waited = now.since(self.started_at);
        let refused = result.err().map(Error::code);
        self.counts.acquired(asked, waited, refused);
        if span.is_disabled() {
            return;
        }
        span.record("code", refused.map_or("granted", |code| code.as_str()));
        span.record("attempts", asked);
        span.record("waited_ms", waited);
        if let Ok(fence) = result {
            span.record("fence", fence);
        }
    }
}
