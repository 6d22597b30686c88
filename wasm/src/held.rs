//! A lease as its client holds it: what the core knows of it, and who is told what becomes of it.
//!
//! Nothing runs for a lease that rests: the host has a timer for it, set anew after whatever changes its time. When that runs
//! out, the core says whether to renew it; only then there is a task, for as long as the renewal is under way.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::Function;
use tallylock_core::error::Error;
use tallylock_core::lock::{Grant, Keeping, Lock, Renewal};
use tallylock_core::step::{Event, Next, Operation, Step};
use tallylock_core::time::Instant;
use wasm_bindgen::JsValue;

use crate::client::Shared;
use crate::executor::spawn;
use crate::slots::Number;

/// A granted lock. What the core knows of it is borrowed between awaits only, so that calls may overlap.
pub(crate) struct Held {
    pub(crate) shared: Rc<Shared>,
    pub(crate) fence: u64,
    /// Names it to JavaScript.
    pub(crate) number: Number,
    renewal: RefCell<Renewal>,
    /// Who waits until no renewal is under way.
    settling: RefCell<Vec<Waker>>,
    /// Whom to tell of its loss.
    on_lost: RefCell<Option<Function>>,
}

impl Held {
    /// Holds what was granted, and has it looked at in time.
    pub(crate) fn new(shared: &Rc<Shared>, lock: Lock, keeping: Keeping, grant: Grant) -> Rc<Self> {
        let (settings, seed, now) = shared.at_start();
        let (number, fence) = (shared.leases.open(), grant.fence);
        let renewal = Renewal::new(lock, grant, keeping, settings, seed, now);
        let held = Rc::new(Self {
            shared: Rc::clone(shared),
            fence,
            number,
            renewal: RefCell::new(renewal),
            settling: RefCell::default(),
            on_lost: RefCell::default(),
        });
        shared.leases.put(number, Rc::clone(&held));
        held.look_in_time();
        held
    }

    /// Does something with the lease, and tells of its loss if that is found out by it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Renewal, Instant) -> T) -> T {
        let now = self.shared.now();
        let result = act(&mut self.renewal.borrow_mut(), now);
        self.tell(now);
        result
    }

    /// Why it is no longer ours, if it was lost.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.with(|renewal, now| renewal.lease().lost(now).cloned())
    }

    /// Has a function called with the error when it is lost, at once if it is lost already.
    pub(crate) fn on_lost(&self, callback: Function) {
        self.on_lost.replace(Some(callback));
        self.lost();
    }

    /// Whether it is ours, and the holder has not let go of it.
    pub(crate) fn is_ours(&self) -> bool {
        self.lost().is_none() && !self.renewal.borrow_mut().lease().is_left()
    }

    /// Has it looked at when it is to be renewed or its time is over, unless it has ended.
    pub(crate) fn look_in_time(self: &Rc<Self>) {
        match self.with(Renewal::next) {
            Some(at) => self.shared.link.watch(self, at),
            None => self.shared.link.unwatch(self, false),
        }
    }

    /// Lets JavaScript's number stand for nothing any more.
    pub(crate) fn forget(&self) {
        self.shared.leases.close(self.number);
    }

    /// Goes on with it after its timer has run out.
    pub(crate) fn look(self: &Rc<Self>) {
        if self.shared.is_closed() {
            self.renewal.borrow_mut().keep_no_longer();
        }
        let (step, is_renewing) = self.step(Event::Woke);
        match step.next {
            Next::WaitUntil(_) if !is_renewing => self.look_in_time(),
            // Without calls there is a task already.
            Next::WaitUntil(until) if !step.calls.is_empty() => self.renew(Step {
                calls: step.calls,
                next: Next::WaitUntil(until),
            }),
            Next::WaitUntil(_) | Next::Done(_) => {}
        }
    }

    /// Waits until no renewal is under way that a release must not overtake.
    pub(crate) async fn settled(&self) {
        poll_fn(|context| {
            if self.renewal.borrow().is_over() {
                return Poll::Ready(());
            }
            self.settling.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn renew(self: &Rc<Self>, first: Step<Result<(), Error>>) {
        let held = Rc::clone(self);
        spawn(Box::pin(async move {
            let _turn = held.shared.begin();
            let turn = Turn(Rc::clone(&held));
            // How the lease fares, its holder learns from the lease.
            let _ = held.shared.run((turn, first).into()).await;
            held.look_in_time();
            Ok(JsValue::UNDEFINED)
        }));
    }

    fn step(&self, event: Event) -> (Step<Result<(), Error>>, bool) {
        self.with(|renewal, now| (renewal.handle(now, event), renewal.is_renewing()))
    }

    /// Tells those who wait what is to be told, once what the core knows is not borrowed any more: they may ask at once.
    fn tell(&self, now: Instant) {
        let mut renewal = self.renewal.borrow_mut();
        if let Some(news) = renewal.lease().news(now) {
            self.shared.counts.learn(&news);
        }
        let is_over = renewal.is_over();
        let lost = renewal.lease().lost(now);
        let told = lost.and_then(|lost| Some((self.on_lost.take()?, lost.clone())));
        drop(renewal);
        if is_over {
            self.settling.take().into_iter().for_each(Waker::wake);
        }
        if let Some((callback, lost)) = told {
            // What it throws is its own affair.
            let _ = callback.call1(&JsValue::UNDEFINED, &self.shared.link.failure(&lost));
        }
    }
}

impl Drop for Held {
    /// A lease that is forgotten is renewed no more, and nobody is told of its end.
    fn drop(&mut self) {
        self.shared.link.unwatch(self, true);
        if !self.renewal.get_mut().lease().has_told_its_end() {
            self.shared.counts.abandoned();
        }
    }
}

/// A renewal of a lease that others look at meanwhile, from its first call until nothing is under way.
#[derive(Clone)]
pub(crate) struct Turn(Rc<Held>);

impl Operation for Turn {
    type Output = Result<(), Error>;

    fn handle(&mut self, _now: Instant, event: Event) -> Step<Self::Output> {
        let (step, is_renewing) = self.0.step(event);
        match step.next {
            Next::WaitUntil(_) if !is_renewing => Step::done(Ok(())),
            _ => step,
        }
    }

    fn met_refusal_of_scripts(&self) -> bool {
        self.0.renewal.borrow().met_refusal_of_scripts()
    }
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Turn {}

impl Hash for Turn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.to_bits().hash(state);
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(&self.0.number).finish()
    }
}
