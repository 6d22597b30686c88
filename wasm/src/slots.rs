//! Answers that are waited for: JavaScript puts an answer under its number, and the future that waits for it wakes.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Names a slot: its place, and how often that place was taken before, so that a late answer does not reach the next
/// one there. A whole number below 2^53, which JavaScript keeps exactly.
pub(crate) type Number = f64;

/// How many places there is room for in a number: two million calls at once.
const PLACES: u32 = 1 << 21;

/// Numbers are smaller.
const END: f64 = 9_007_199_254_740_992.0;

/// Answers that are waited for, by number.
pub(crate) struct Slots<T> {
    table: RefCell<Table<T>>,
}

struct Table<T> {
    slots: Vec<Slot<T>>,
    /// The places that nobody uses.
    free: Vec<usize>,
}

struct Slot<T> {
    number: Number,
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            table: RefCell::new(Table {
                slots: Vec::new(),
                free: Vec::new(),
            }),
        }
    }
}

impl<T> Slots<T> {
    /// A new slot.
    pub(crate) fn open(&self) -> Number {
        let mut table = self.table.borrow_mut();
        if let Some(slot) = table
            .free
            .pop()
            .and_then(|place| table.slots.get_mut(place))
        {
            return slot.number;
        }
        let number = table.slots.len() as Number;
        table.slots.push(Slot {
            number,
            answer: None,
            waker: None,
        });
        number
    }

    /// Puts the answer under a number; one that nobody waits for any more is dropped.
    pub(crate) fn put(&self, number: Number, answer: T) {
        // The waker is called after the table is free again: it may run what uses the table.
        let waker = self.table.borrow_mut().find(number).and_then(|slot| {
            slot.answer = Some(answer);
            slot.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The answer under a number, once it is there; `forget` is called if the future is dropped before.
    pub(crate) fn wait<F: Fn(Number)>(&self, number: Number, forget: F) -> Wait<'_, T, F> {
        Wait {
            slots: self,
            number,
            forget,
        }
    }
}

impl<T: Clone> Slots<T> {
    /// What was put under a number, which stays there.
    pub(crate) fn look(&self, number: Number) -> Option<T> {
        self.table.borrow_mut().find(number)?.answer.clone()
    }

    /// Forgets a number with what was put under it.
    pub(crate) fn close(&self, number: Number) {
        let kept = self.look(number);
        self.table.borrow_mut().close(number);
        // The table is free again: what is dropped may use it.
        drop(kept);
    }
}

impl<T> Table<T> {
    fn find(&mut self, number: Number) -> Option<&mut Slot<T>> {
        self.slots
            .get_mut(place(number))
            .filter(|slot| slot.number == number)
    }

    /// Gives the place to whoever comes next, under another number.
    fn close(&mut self, number: Number) {
        if let Some(slot) = self.find(number) {
            let next = number + Number::from(PLACES);
            slot.number = if next < END {
                next
            } else {
                place(number) as Number
            };
            slot.answer = None;
            slot.waker = None;
            self.free.push(place(number));
        }
    }
}

fn place(number: Number) -> usize {
    (number as u64 % u64::from(PLACES)) as usize
}

/// A future of [`Slots::wait`].
pub(crate) struct Wait<'a, T, F: Fn(Number)> {
    slots: &'a Slots<T>,
    number: Number,
    forget: F,
}

impl<T, F: Fn(Number)> Future for Wait<'_, T, F> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut table = self.slots.table.borrow_mut();
        let Some(slot) = table.find(self.number) else {
            return Poll::Pending;
        };
        if let Some(answer) = slot.answer.take() {
            table.close(self.number);
            return Poll::Ready(answer);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T, F: Fn(Number)> Drop for Wait<'_, T, F> {
    fn drop(&mut self) {
        let waiting = match self.slots.table.borrow_mut().find(self.number) {
            Some(slot) => slot.answer.is_none(),
            None => return,
        };
        self.slots.table.borrow_mut().close(self.number);
        if waiting {
            (self.forget)(self.number);
        }
    }
}
