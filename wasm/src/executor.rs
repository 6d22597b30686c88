//! Runs futures on JavaScript's one thread.
//!
//! A future is polled by whoever wakes it, at once: an answer of the transport's is on its way to the caller within the
//! same turn, without a queue in between. Tasks are known by number, so that a waker need not own one.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::JsValue;

/// Runs a future to its end; it has run to its first await when this returns.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) {
    let place = TASKS.with_borrow_mut(|tasks| tasks.add(Box::pin(future)));
    run(place);
}

/// Runs a future to its end; the promise is of its output.
pub(crate) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let (promise, settle) = Settle::new();
    spawn(async move {
        match future.await {
            Ok(value) => settle.resolve(&value),
            Err(failure) => settle.reject(&failure),
        }
    });
    promise
}

/// The two ends of a promise.
pub(crate) struct Settle {
    ends: Option<(Function, Function)>,
}

impl Settle {
    pub(crate) fn new() -> (Promise, Self) {
        let mut ends = None;
        let promise = Promise::new(&mut |resolve, reject| ends = Some((resolve, reject)));
        (promise, Self { ends })
    }

    pub(crate) fn resolve(&self, value: &JsValue) {
        if let Some((resolve, _)) = &self.ends {
            // A promise's own functions do not throw.
            let _ = resolve.call1(&JsValue::UNDEFINED, value);
        }
    }

    pub(crate) fn reject(&self, failure: &JsValue) {
        if let Some((_, reject)) = &self.ends {
            let _ = reject.call1(&JsValue::UNDEFINED, failure);
        }
    }
}

thread_local! {
    static TASKS: RefCell<Tasks> = const { RefCell::new(Tasks { places: Vec::new(), free: Vec::new() }) };
}

type Running = Pin<Box<dyn Future<Output = ()>>>;

struct Tasks {
    places: Vec<Task>,
    free: Vec<usize>,
}

struct Task {
    state: State,
    /// One for each place: a waker of an earlier task there at worst wakes the present one for nothing.
    waker: Waker,
}

enum State {
    Free,
    Parked(Running),
    /// It is being polled; and whether it was woken meanwhile.
    Polled {
        again: bool,
    },
}

impl Tasks {
    fn add(&mut self, future: Running) -> usize {
        if let Some(place) = self.free.pop()
            && let Some(task) = self.places.get_mut(place)
        {
            task.state = State::Parked(future);
            return place;
        }
        let place = self.places.len();
        let waker = Waker::from(Arc::new(Place(place)));
        self.places.push(Task {
            state: State::Parked(future),
            waker,
        });
        place
    }

    /// The future at a place, if it is parked; one that is being polled will be polled again.
    fn take(&mut self, place: usize) -> Option<(Running, Waker)> {
        let task = self.places.get_mut(place)?;
        match std::mem::replace(&mut task.state, State::Polled { again: false }) {
            State::Parked(future) => Some((future, task.waker.clone())),
            State::Polled { .. } => {
                task.state = State::Polled { again: true };
                None
            }
            State::Free => {
                task.state = State::Free;
                None
            }
        }
    }

    /// Takes in that a poll has ended, and says whether to poll once more.
    fn park(&mut self, place: usize, future: Option<Running>) -> bool {
        let Some(task) = self.places.get_mut(place) else {
            return false;
        };
        let again = matches!(task.state, State::Polled { again: true });
        if let Some(future) = future {
            task.state = State::Parked(future);
            return again;
        }
        task.state = State::Free;
        self.free.push(place);
        false
    }
}

/// Where a task is.
struct Place(usize);

impl Wake for Place {
    fn wake(self: Arc<Self>) {
        run(self.0);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        run(self.0);
    }
}

fn run(place: usize) {
    // The table is free while a future is polled: it may wake or spawn others.
    while let Some((mut future, waker)) = TASKS.with_borrow_mut(|tasks| tasks.take(place)) {
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(());
        let future = if done {
            drop(future);
            None
        } else {
            Some(future)
        };
        if !TASKS.with_borrow_mut(|tasks| tasks.park(place, future)) {
            break;
        }
    }
}
