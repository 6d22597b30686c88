//! Finishing in the background what a timed-out acquire has begun.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tallylock_core::drive::drive_blocking;
use tallylock_core::lock::Acquire;
use tallylock_core::step::Step;
use tallylock_core::time::Instant;

use super::lane::{Lane, Sleeper};

/// Drives an acquire that is undoing to its end on a thread of its own, with the connection that it began on: the
/// release travels behind the acquire. Its caller has been answered already.
pub(super) fn go_on(acquire: Acquire, until: Instant, lane: Lane) {
    let work = Arc::new(Mutex::new(Some((acquire, until, lane))));
    let finish = {
        let work = Arc::clone(&work);
        move || {
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((acquire, until, mut lane)) = work {
                // Its outcome is the refusal that the caller has been told.
                let _ = drive_blocking(acquire, Step::wait(until), &mut lane, &Sleeper, |_| {
                    ControlFlow::Continue(())
                });
            }
        }
    };
    if thread::Builder::new()
        .name("tallylock-undo".into())
        .spawn(finish.clone())
        .is_err()
    {
        // A late answer is better than a lock that is left behind.
        finish();
    }
}
