//! An acquire that outlives its caller.

use std::sync::Arc;
use std::task::Context;

use tallylock_core::drive::drive;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Acquire, Grant, Keeping, Lock as LockSpec};
use tallylock_core::time::Wait;
use tokio::sync::oneshot;

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
    let (settings, seed, now) = (backend.settings(), random::secret()?, backend.now());
    let way = client.way(now.plus(settings.patience(wait)));
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
                if waiter.observe(acquire) {
                    client.hear();
                }
                if let Some(refusal) = acquire.refusal() {
                    reply(&mut answer, waiter.leave_with(Err(refusal.clone())));
                }
            };
            let result = drive(operation, step, &way, &way, cancelled, notified, observe).await;
            client.clear_if_closed();
            let result = waiter.leave_with(result);
            let lease = result.map(|grant| Unclaimed(Some(hold(&client, lock, keeping, grant))));
            reply(&mut answer, lease);
        }
    };
    client.runtime().spawn(task);
    let result = answered.await;
    drop(caller);
    match result {
        Ok(result) => result.map(Unclaimed::claim),
        Err(_) => Err(Error::new(
            Code::Cancelled,
            "the client's runtime was shut down",
        )),
    }
}

/// The lease that was granted.
pub(crate) fn hold(client: &Client, lock: LockSpec, keeping: Keeping, grant: Grant) -> Lease {
    let backend = client.backend();
    let (keeping, now) = (backend.keeping(keeping), backend.now());
    let (settings, seed) = (backend.settings(), random::jitter(now));
    let held = Held::new(lock, grant, keeping, settings, seed, now);
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
