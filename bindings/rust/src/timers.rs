//! Timers that are kept after their use: to move one takes less than to make one, and does not wake a runtime that rests.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tallylock_core::time::Instant;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::clock;

/// How many unused timers are kept.
const MOST_IDLE: usize = 16;

/// Whoever waits for longer looks at the clock meanwhile.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Timers of one runtime.
pub(crate) struct Timers {
    runtime: Handle,
    /// They still run, for nobody.
    idle: Mutex<Vec<Pin<Box<Sleep>>>>,
}

impl Timers {
    pub(crate) fn new(runtime: Handle) -> Self {
        let idle = Mutex::default();
        Self { runtime, idle }
    }

    /// Waits on the machine's clock.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        self.take(until).await;
        // After a stall a reply may be in the socket that is as old as the timer: its reader goes first.
        tokio::task::yield_now().await;
    }

    fn take(&self, until: Instant) -> Borrowed<'_> {
        let ends_at = tokio::time::Instant::now() + clock::left_until(until).min(LONGEST);
        let idle = self.idle().pop();
        let sleep = if let Some(mut sleep) = idle {
            sleep.as_mut().reset(ends_at);
            sleep
        } else {
            let _entered = self.runtime.enter();
            Box::pin(tokio::time::sleep_until(ends_at))
        };
        Borrowed {
            timers: self,
            sleep: Some(sleep),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A timer that goes back to the others when nobody waits for it any more.
struct Borrowed<'a> {
    timers: &'a Timers,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for Borrowed<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let mut idle = self.timers.idle();
        if idle.len() < MOST_IDLE {
            idle.extend(self.sleep.take());
        }
    }
}
