//! An acquire that outlives its caller.

use std::sync::Arc;
use std::task::Context;

use tallylock_core::drive::drive;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Acquire, Grant, Keeping, Lock as LockSpec};
use tallylock_core::time::{Instant, Wait};
use tokio::sync::oneshot;

use crate::acquiring::Acquiring;
use crate::course::Course;
use crate::held::Held;
use crate::{Client, Lease, random};

/// Takes a lock in a task of its own: when the caller goes away, the task undoes what it did, and what it must undo after
/// the caller's deadline it undoes after the caller has its answer.
pub(crate) async fn acquire(
    client: &Client,
    lock: LockSpec,
    keeping: Keeping,
    wait: Wait,
) -> Result<Lease, Error> {
    let backend = client.backend();
    backend.check_open()?;
    let (settings, seed) = (backend.settings(), random::secret()?);
    let (way, now) = client.begin(settings.patience(wait));
    let acquiring = Acquiring::begin(backend, &lock, wait, now);
    let waiter = client.join(&lock, wait);
    let (operation, step) = waiter.start(lock.clone(), wait, settings, seed, now);
    let (answer, answered) = oneshot::channel();
    let (caller, caller_is_gone) = oneshot::channel::<()>();
    let task = {
        let client = client.clone();
        async move {
            let mut answer = Some(answer);
            let cancelled = async {
                // Nothing is ever sent: the sender's drop is the message.
                let _ = caller_is_gone.await;
            };
            let notified = |context: &mut Context<'_>| waiter.poll_notice(context);
            let observe = |acquire: &Acquire| {
                client.backend().observe(acquire);
                acquiring.observe(acquire);
                if waiter.observe(acquire) {
                    client.hear();
                }
                if let (Some(_), Some(refusal)) = (&answer, acquire.refusal()) {
                    let refused = waiter.leave_with(Err(refusal.clone()));
                    if let Err(error) = acquiring.answer(client.backend().now(), refused) {
                        reply(&mut answer, Err(error));
                    }
                }
            };
            let result = drive(operation, step, &way, &way, cancelled, notified, observe).await;
            client.clear_if_closed();
            let now = client.backend().now();
            let granted = acquiring.answer(now, waiter.leave_with(result));
            let lease = granted
                .map(|(grant, now)| Unclaimed::new(hold(&client, lock, keeping, grant, now)));
            reply(&mut answer, lease);
        }
    };
    client.runtime().spawn(task);
    let result = answered.await;
    drop(caller);
    match result {
        Ok(result) => {
            let lease = result?.claim();
            lease.held().trace();
            Ok(lease)
        }
        Err(_) => Err(Error::new(
            Code::Cancelled,
            "the client's runtime was shut down",
        )),
    }
}

/// The lease that was granted.
pub(crate) fn hold(
    client: &Client,
    lock: LockSpec,
    keeping: Keeping,
    grant: Grant,
    now: Instant,
) -> Lease {
    let backend = client.backend();
    let keeping = backend.keeping(keeping);
    let (settings, seed) = (backend.settings(), random::jitter(now));
    let course = Course::new(Arc::clone(backend.counts()));
    let held = Held::new(lock, grant, keeping, settings, seed, now, course);
    Lease::new(client.clone(), Arc::new(held))
}

type Answer = Result<Unclaimed, Error>;

/// Answers the caller, unless that was done. Where the caller is gone, a lease is released by being dropped.
fn reply(answer: &mut Option<oneshot::Sender<Answer>>, result: Answer) {
    if let Some(answer) = answer.take() {
        drop(answer.send(result));
    }
}

/// A lease that is released, in the background, if nobody claims it.
pub(crate) struct Unclaimed(Option<Lease>);

impl Unclaimed {
    pub(crate) fn new(lease: Lease) -> Self {
        Self(Some(lease))
    }

    pub(crate) fn lease(&self) -> &Lease {
        self.0
            .as_ref()
            .unwrap_or_else(|| unreachable!("it is taken by those only who consume this"))
    }

    pub(crate) fn claim(mut self) -> Lease {
        self.0
            .take()
            .unwrap_or_else(|| unreachable!("it is taken by those only who consume this"))
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            lease.release_in_background();
        }
    }
}
