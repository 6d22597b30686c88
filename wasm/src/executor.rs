//! Runs futures on JavaScript's one thread.
//!
//! A future is polled by whoever wakes it, at once: an answer of the transport's is on its way to the caller within the
//! same turn, without a queue in between. Tasks are known by number, so that a waker need not own one.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Promise;
use wasm_bindgen::JsValue;

use crate::host::Host;
use crate::slots::Number;

/// What a task runs. It is boxed, so that what runs it is compiled once.
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome>>>;

/// What the promise of a task is settled with.
pub(crate) type Outcome = Result<JsValue, JsValue>;

/// Runs a future to its end, of which nobody is told; it has run to its first await when this returns.
pub(crate) fn spawn(future: Running) {
    let place = TASKS.with_borrow_mut(|tasks| tasks.add(future, None));
    run(place);
}

/// Runs a future to its end; the promise is of its output.
pub(crate) fn promise(host: &Rc<Host>, future: Running) -> Promise {
    let (promise, settle) = Settle::new(host);
    let place = TASKS.with_borrow_mut(|tasks| tasks.add(future, Some(settle)));
    run(place);
    promise
}

/// How a promise is settled. Told twice, it keeps to the first.
pub(crate) struct Settle {
    host: Rc<Host>,
    number: Number,
}

impl Settle {
    pub(crate) fn new(host: &Rc<Host>) -> (Promise, Self) {
        let number = NEXT_PROMISE.replace(NEXT_PROMISE.get() + 1.0);
        let host = Rc::clone(host);
        (host.promise(number), Self { host, number })
    }

    pub(crate) fn with(&self, outcome: Outcome) {
        match outcome {
            Ok(value) => self.host.resolve(self.number, &value),
            Err(failure) => self.host.reject(self.number, &failure),
        }
    }
}

thread_local! {
    static NEXT_PROMISE: Cell<Number> = const { Cell::new(0.0) };
    static TASKS: RefCell<Tasks> = const { RefCell::new(Tasks { places: Vec::new(), free: Vec::new() }) };
}

struct Tasks {
    places: Vec<Task>,
    free: Vec<usize>,
}

struct Task {
    state: State,
    /// Who is told of its output.
    settle: Option<Settle>,
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
    fn add(&mut self, future: Running, settle: Option<Settle>) -> usize {
        let state = State::Parked(future);
        if let Some(place) = self.free.pop()
            && let Some(task) = self.places.get_mut(place)
        {
            (task.state, task.settle) = (state, settle);
            return place;
        }
        let place = self.places.len();
        let waker = Waker::from(Arc::new(Place(place)));
        self.places.push(Task {
            state,
            settle,
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

    /// Takes in that a poll has ended without an output, and says whether to poll once more.
    fn park(&mut self, place: usize, future: Running) -> bool {
        let Some(task) = self.places.get_mut(place) else {
            return false;
        };
        let again = matches!(task.state, State::Polled { again: true });
        task.state = State::Parked(future);
        again
    }

    /// Takes in that a task is over, and gives whom to tell.
    fn end(&mut self, place: usize) -> Option<Settle> {
        let task = self.places.get_mut(place)?;
        task.state = State::Free;
        self.free.push(place);
        task.settle.take()
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
        let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) else {
            if TASKS.with_borrow_mut(|tasks| tasks.park(place, future)) {
                continue;
            }
            return;
        };
        drop(future);
        if let Some(settle) = TASKS.with_borrow_mut(|tasks| tasks.end(place)) {
            settle.with(outcome);
        }
        return;
    }
}
