//! A lease as both clients hold it: what the core knows of it, in the process that acquired it, and who is told of its end.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tallylock_core::error::{Error, Reason};
use tallylock_core::lock::{
    Extend, Extending, Grant, Keeping, LeaseTtl, Lock, Release, Renewal, Transferred, Verify,
};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Event, Next, Operation, Step};
use tallylock_core::time::{Instant, Ttl, Wait};
use tallylock_core::token::Seed;
use tokio::sync::Notify;

use crate::clock;
use crate::course::Course;

/// A granted lock, with what has become of it since.
pub(crate) struct Held {
    lock: Lock,
    fence: u64,
    /// Names it among those of this process.
    number: u64,
    /// The process that acquired it: a lease does not pass to a child.
    process: u32,
    /// Whether it is renewed, or somebody wants to be told of its loss.
    is_watched: AtomicBool,
    state: Mutex<State>,
    course: Course,
    /// Tell of each change that somebody may wait for: to tasks, and to threads.
    changed: Notify,
    changed_for_threads: Condvar,
}

struct State {
    renewal: Renewal,
    /// What those who wait were told last.
    told: Told,
    on_lost: Vec<OnLost>,
}

type OnLost = Box<dyn FnOnce(Error) + Send>;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Told {
    lost: bool,
    left: bool,
    over: bool,
}

/// What somebody who waits for the end of a lease finds.
pub(crate) enum End {
    NotYet,
    /// The holder let go of it.
    LetGo,
    Lost(Error),
}

/// An operation that was started, with its first step.
pub(crate) type Started<O, T> = (O, Step<Result<T, Error>>);

impl Held {
    pub(crate) fn new(
        lock: Lock,
        grant: Grant,
        keeping: Keeping,
        settings: &Settings,
        seed: Seed,
        now: Instant,
        course: Course,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let fence = grant.fence;
        let renewal = Renewal::new(lock.clone(), grant, keeping, settings, seed, now);
        Self {
            lock,
            fence,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            process: std::process::id(),
            is_watched: AtomicBool::new(keeping.is_renewed()),
            state: Mutex::new(State {
                renewal,
                told: Told::default(),
                on_lost: Vec::new(),
            }),
            course,
            changed: Notify::const_new(),
            changed_for_threads: Condvar::new(),
        }
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Has it traced from now on, in the span of the caller.
    pub(crate) fn trace(&self) {
        self.course.trace(&self.lock, self.fence);
    }

    /// Has it looked at without being asked from now on.
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether this is the process that acquired it.
    pub(crate) fn is_here(&self) -> bool {
        std::process::id() == self.process
    }

    /// How long it is still ours by our clock.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        let left = self.with(now, |renewal| renewal.lease().remaining(now));
        Duration::from_millis(left.unwrap_or(0))
    }

    /// `lost` if less than `margin`, or nothing, is left of it by our clock.
    pub(crate) fn ensure(&self, now: Instant, margin: Duration) -> Result<(), Error> {
        let margin = self.margin(margin)?;
        self.with(now, |renewal| renewal.lease().ensure(now, margin))?
    }

    /// Starts to extend it to `ttl` from now.
    pub(crate) fn extend(
        &self,
        ttl: Duration,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<(Started<Extend, Instant>, Extending), Error> {
        let ttl = Ttl::from_duration(ttl)
            .and_then(LeaseTtl::new)
            .map_err(|error| self.about(error))?;
        self.with(now, |renewal| {
            renewal.lease().extend(ttl, settings, seed, now)
        })?
    }

    /// Takes in how an extend ended.
    pub(crate) fn extended(
        &self,
        extending: Extending,
        result: Result<Instant, Error>,
        now: Instant,
    ) -> Result<(), Error> {
        self.with(now, |renewal| renewal.lease().extended(extending, result))?
    }

    /// Starts to ask the server whether it is ours.
    pub(crate) fn verify(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<Started<Verify, Instant>, Error> {
        self.with(now, |renewal| renewal.lease().verify(settings, seed, now))?
    }

    /// Takes in what the server said.
    pub(crate) fn verified(
        &self,
        result: Result<Instant, Error>,
        now: Instant,
        margin: Wait,
    ) -> Result<(), Error> {
        self.with(now, |renewal| renewal.lease().verified(result, now, margin))?
    }

    /// A margin, if it is no longer than a wait may be.
    pub(crate) fn margin(&self, margin: Duration) -> Result<Wait, Error> {
        Wait::from_duration(margin).map_err(|error| self.about(error))
    }

    /// Lets go of it because a release comes; whether one is to be sent, once [it is over](Self::is_over).
    pub(crate) fn leave(&self, now: Instant) -> Result<bool, Error> {
        self.with(now, |renewal| renewal.leave(now))
    }

    /// Starts the release of what was left.
    pub(crate) fn release(
        &self,
        settings: &Settings,
        seed: Seed,
        now: Instant,
    ) -> Result<Started<Release, ()>, Error> {
        self.with(now, |renewal| renewal.release(settings, seed, now))
    }

    /// Takes in how a release ended.
    pub(crate) fn released(&self, result: Result<(), Error>, now: Instant) -> Result<(), Error> {
        self.with(now, |renewal| renewal.lease().released(result))?
    }

    /// Gives it away; good once [it is over](Self::is_over).
    pub(crate) fn transfer(&self, now: Instant) -> Result<Transferred, Error> {
        self.with(now, |renewal| renewal.transfer(now))?
    }

    /// Why it was lost, if it was.
    pub(crate) fn lost(&self, now: Instant) -> Option<Error> {
        self.with(now, |renewal| renewal.lease().lost(now).cloned())
            .unwrap_or_else(Some)
    }

    /// Has the renewal go on with what happened; and whether something is under way then.
    pub(crate) fn step(
        &self,
        now: Instant,
        event: Event,
    ) -> Result<(Step<Result<(), Error>>, bool), Error> {
        self.with(now, |renewal| {
            let step = renewal.handle(now, event);
            (step, renewal.is_renewing())
        })
    }

    /// When it is to be looked at next; nothing if it is not watched, something is under way, or it has ended.
    pub(crate) fn rests_until(&self, now: Instant) -> Option<Instant> {
        if !self.is_watched.load(Ordering::Relaxed) {
            return None;
        }
        self.with(now, |renewal| renewal.next(now))
            .unwrap_or_default()
    }

    /// Whether the renewal has met a refusal of scripts.
    pub(crate) fn met_refusal_of_scripts(&self) -> bool {
        self.state().renewal.met_refusal_of_scripts()
    }

    /// Has it renewed no more.
    pub(crate) fn keep_no_longer(&self) {
        self.state().renewal.keep_no_longer();
    }

    /// Calls back when it is lost, on a thread of its own; never if the holder lets go of it before.
    pub(crate) fn on_lost(&self, now: Instant, callback: OnLost) {
        match self.end(now) {
            End::Lost(error) => call_back(callback, error),
            End::LetGo => {}
            End::NotYet => {
                self.state().on_lost.push(callback);
                // It may have been lost just before.
                self.lost(now);
            }
        }
    }

    /// Whether it has ended by now.
    pub(crate) fn end(&self, now: Instant) -> End {
        let end = self.with(now, |renewal| {
            let lease = renewal.lease();
            match lease.lost(now).cloned() {
                Some(error) => End::Lost(error),
                None if lease.is_left() => End::LetGo,
                None => End::NotYet,
            }
        });
        end.unwrap_or_else(End::Lost)
    }

    /// Waits until the holder lets go of it or it is lost, and gives why.
    pub(crate) async fn until_lost(&self, now: impl Fn() -> Instant) -> Option<Error> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.end(now()) {
                End::Lost(error) => return Some(error),
                End::LetGo => return None,
                End::NotYet => changed.await,
            }
        }
    }

    /// Waits on this thread until the holder lets go of it or it is lost, and gives why; nothing if it is ours after `longest`
    /// on the machine's clock.
    pub(crate) fn wait_until_lost(
        &self,
        now: impl Fn() -> Instant,
        longest: Duration,
    ) -> Option<Error> {
        let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        let until = clock::now().plus(longest);
        loop {
            let present = now();
            match self.end(present) {
                End::Lost(error) => return Some(error),
                End::LetGo => return None,
                End::NotYet => {}
            }
            let left = clock::left_until(until);
            if left.is_zero() {
                return None;
            }
            let longest = left.min(self.remaining(present));
            self.wait(|state| state.told == Told::default(), longest);
        }
    }

    /// Waits on this thread until no renewal is under way that a release must not overtake.
    pub(crate) fn settle(&self, now: impl Fn() -> Instant) {
        while let Some(until) = self.under_way(now()) {
            let left = Duration::from_millis(until.since(now()));
            self.wait(|state| !state.told.over, left);
        }
    }

    /// Waits on this thread for a change while it is awaited, and no longer than it takes to see that the machine has slept.
    fn wait(&self, is_awaited: impl Fn(&State) -> bool, longest: Duration) {
        let state = self.state();
        if is_awaited(&state) {
            let slice = longest.min(Duration::from_secs(1));
            drop(self.changed_for_threads.wait_timeout(state, slice));
        }
    }

    /// Until when something is under way that a release must not overtake; nothing if there is nothing.
    pub(crate) fn under_way(&self, now: Instant) -> Option<Instant> {
        match self.step(now, Event::Woke) {
            Ok((step, true)) => match step.next {
                Next::WaitUntil(until) => Some(until),
                Next::Done(_) => None,
            },
            _ => None,
        }
    }

    /// Is told of the next change.
    pub(crate) fn changes(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Does something with the lease, in the process that acquired it, and tells who waits for what comes of it.
    fn with<T>(&self, now: Instant, act: impl FnOnce(&mut Renewal) -> T) -> Result<T, Error> {
        if !self.is_here() {
            let detail = "it belongs to the process that forked this one";
            return Err(self.lock.lost(Reason::Forked, detail));
        }
        let mut state = self.state();
        let result = act(&mut state.renewal);
        let news = state.renewal.lease().news(now);
        if let Some(news) = &news {
            // Who is told of it finds it counted.
            self.course.count(news);
        }
        let lease = state.renewal.lease();
        let lost = news.and_then(|_| lease.lost(now).cloned());
        let told = Told {
            lost: lease.lost(now).is_some(),
            left: state.renewal.lease().is_left(),
            over: state.renewal.is_over(),
        };
        if told != state.told || (told.lost && !state.on_lost.is_empty()) {
            state.told = told;
            self.tell(state, now);
        } else {
            drop(state);
        }
        if let Some(news) = news {
            self.course.tell(&news, self.fence, lost.as_ref());
        }
        Ok(result)
    }

    #[cold]
    fn tell(&self, mut state: MutexGuard<'_, State>, now: Instant) {
        let lost = state.renewal.lease().lost(now).cloned();
        let is_over = lost.is_some() || state.told.left;
        let callbacks = if is_over {
            std::mem::take(&mut state.on_lost)
        } else {
            Vec::new()
        };
        // Whoever is woken finds the lock free.
        drop(state);
        self.changed.notify_waiters();
        self.changed_for_threads.notify_all();
        if let Some(lost) = lost {
            for callback in callbacks {
                call_back(callback, lost.clone());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the mutex.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn about(&self, error: Error) -> Error {
        error.about(self.lock.key().as_bytes())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let renewal = &mut state.unwrap_or_else(PoisonError::into_inner).renewal;
        if !renewal.lease().has_told_its_end() && self.process == std::process::id() {
            self.course.abandon();
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

/// Calls back on a thread of its own: whoever found out must not wait for what the callback does, nor end with its panic.
fn call_back(callback: OnLost, error: Error) {
    let spawned = thread::Builder::new()
        .name("tallylock-lost".into())
        .spawn(move || callback(error));
    // Without a thread the holder finds out when it asks.
    drop(spawned);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tallylock_core::error::Code;
    use tallylock_core::lock::Acquire;
    use tallylock_core::memory::Memory;

    use super::*;
    use crate::spec;

    const TTL: Duration = Duration::from_secs(60);
    const START: Instant = Instant::from_millis(0);

    fn seed() -> Seed {
        Seed::new([7; 16])
    }

    fn held() -> Held {
        let lock = spec::lock(b"l", TTL).unwrap();
        let mut node = Memory::default();
        let settings = Settings::default();
        let (mut acquire, mut step) =
            Acquire::start(lock.clone(), Wait::NONE, &settings, seed(), START);
        loop {
            match step.next {
                Next::Done(grant) => {
                    let (grant, keeping) = (grant.unwrap(), Keeping::default());
                    return Held::new(
                        lock,
                        grant,
                        keeping,
                        &settings,
                        seed(),
                        START,
                        Course::new(Arc::default()),
                    );
                }
                Next::WaitUntil(_) => {
                    let call = &step.calls[0];
                    let replied = Event::Replied {
                        call: call.id,
                        outcome: node.execute(call),
                    };
                    step = acquire.handle(START, replied);
                }
            }
        }
    }

    #[test]
    fn a_child_process_holds_nothing() {
        let mut held = held();
        held.process += 1;
        let settings = Settings::default();
        assert_eq!(held.remaining(START), Duration::ZERO);
        let forked = [
            held.ensure(START, Duration::ZERO).unwrap_err(),
            held.extend(TTL, &settings, seed(), START).unwrap_err(),
            held.verify(&settings, seed(), START).unwrap_err(),
            held.transfer(START).unwrap_err(),
            held.leave(START).unwrap_err(),
            held.lost(START).unwrap(),
        ];
        assert!(
            forked
                .iter()
                .all(|error| error.code() == Code::Lost(Reason::Forked))
        );
        assert_eq!(held.rests_until(START), None, "nothing is renewed");
    }

    #[test]
    fn a_margin_that_is_no_time_is_refused_by_name() {
        let error = held().ensure(START, Duration::MAX).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("\"l\""), "{error}");
    }

    #[test]
    fn who_looks_at_the_clock_first_tells_those_who_wait() {
        let held = held();
        let (tell, told) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let tell = tell.clone();
            held.on_lost(START, Box::new(move |error| tell.send(error).unwrap()));
        }
        let late = START.plus(60_000);
        assert_eq!(held.remaining(late), Duration::ZERO);
        for _ in 0..2 {
            let error = told.recv_timeout(TTL).unwrap();
            assert_eq!(error.code(), Code::Lost(Reason::Expired));
        }
        held.on_lost(late, Box::new(move |error| tell.send(error).unwrap()));
        assert!(told.recv_timeout(TTL).is_ok(), "also who comes later");
    }
}
