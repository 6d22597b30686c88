//! The background runtime: one a process, one thread, started when it is first needed.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use crate::fork::PerProcess;

static RUNTIME: PerProcess<Handle> = PerProcess::new();

/// What runs in the background.
pub(crate) fn handle() -> Handle {
    Handle::clone(&RUNTIME.get(|_parents| start()))
}

/// Runs a future in the background.
pub(crate) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    RUNTIME.get(|_parents| start()).spawn(future)
}

/// What has become of a future that was begun.
pub(crate) enum Begun<F: Future> {
    Over(F::Output),
    UnderWay(Pin<Box<F>>),
}

/// Begins a future on the calling thread; what is under way is to be awaited in the background.
pub(crate) fn begin<F: Future>(future: F) -> Begun<F> {
    let runtime = handle();
    let _entered = runtime.enter();
    let mut future = Box::pin(future);
    // Nobody is woken: it is polled again as soon as it is awaited.
    let nobody = &mut Context::from_waker(Waker::noop());
    match future.as_mut().poll(nobody) {
        Poll::Ready(output) => Begun::Over(output),
        Poll::Pending => Begun::UnderWay(future),
    }
}

/// Runs a future and waits for it on the calling thread, which is none of the runtime's.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.get(|_parents| start()).block_on(future)
}

/// Runs what blocks on a thread of its own, and awaits it in the background.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("the work neither panics nor is it aborted")
}

/// The scheduler for one thread: it costs a call less than a pool of one.
fn start() -> Handle {
    let runtime = Builder::new_current_thread()
        .thread_name("tallylock")
        .enable_all()
        .build()
        .expect("the system lets this process wait for sockets");
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("tallylock".into())
        .spawn(move || runtime.block_on(pending::<()>()))
        .expect("the system lets this process start a thread");
    handle
}
