//! How a caller, or the end of its client, tells an operation to stop.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A wish to stop, and whose it was.
#[derive(Default)]
pub(crate) struct Stop {
    wish: Cell<Option<Wish>>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The caller's own.
    Cancelled,
    /// The client is being closed.
    Closed,
}

impl Stop {
    /// Expresses the wish; only the first counts.
    pub(crate) fn fire(&self, wish: Wish) {
        if self.wish.get().is_some() {
            return;
        }
        self.wish.set(Some(wish));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn wish(&self) -> Option<Wish> {
        self.wish.get()
    }

    /// Ends once there is a wish.
    pub(crate) async fn fired(&self) {
        poll_fn(|context| {
            if self.wish.get().is_some() {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
