//! An acquire that outlives its caller.

use tallylock_core::drive::drive;
use tallylock_core::error::{Code, Error};
use tallylock_core::lock::{Acquire, Lock as LockSpec};
use tallylock_core::time::Wait;
use tokio::sync::oneshot;

use crate::{Client, Lease, random};

/// Takes a lock in a task of its own: when the caller goes away, the task undoes what it did, and what it must undo after
/// the caller's deadline it undoes after the caller has its answer.
pub(crate) async fn acquire(client: &Client, lock: LockSpec, wait: Wait) -> Result<Lease, Error> {
    let backend = client.backend();
    backend.check_open()?;
    let (settings, seed, now) = (backend.settings(), random::secret()?, backend.now());
    let way = client.way(now.plus(settings.patience(wait)));
    let (operation, step) = Acquire::start(lock.clone(), wait, settings, seed, now);
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
            let result = drive(operation, step, &way, &way, cancelled, |acquire| {
                client.backend().observe(acquire);
                if let Some(refusal) = acquire.refusal() {
                    reply(&mut answer, Err(refusal.clone()));
                }
            });
            let result = result.await;
            client.clear_if_closed();
            reply(
                &mut answer,
                result.map(|grant| Unclaimed(Some(Lease::new(client, lock, grant)))),
            );
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
