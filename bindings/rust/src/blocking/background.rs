//! The background runtime: one a process, one thread, started when it is first needed.

use std::future::Future;
use std::sync::mpsc;

use tallylock_core::error::{Code, Error};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::per_process::PerProcess;

static BACKGROUND: PerProcess<Background> = PerProcess::new();

struct Background {
    runtime: Option<Runtime>,
    handle: Handle,
}

/// The runtime. It lasts as long as the process: what a call has left to undo goes on there.
pub(super) fn runtime() -> Result<&'static Handle, Error> {
    BACKGROUND.get(start).map(|background| &background.handle)
}

/// Runs a future in the background and waits for its end on the calling thread, which may belong to another runtime.
pub(super) fn wait_for<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, Error> {
    let (end, ended) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // The caller waits for it.
        drop(end.send(future.await));
    });
    wait(&ended)
}

/// Waits for what a task in the background sends.
pub(super) fn wait<T>(sent: &mpsc::Receiver<T>) -> Result<T, Error> {
    sent.recv().map_err(|_| {
        let detail = "the background runtime was shut down";
        Error::new(Code::OutcomeUnknown, detail)
    })
}

fn start() -> Result<Background, Error> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("tallylock")
        .enable_all()
        .build()
        .map_err(|error| {
            let detail = format!("the system starts no thread: {error}");
            Error::new(Code::Unavailable, detail)
        })?;
    Ok(Background {
        handle: runtime.handle().clone(),
        runtime: Some(runtime),
    })
}

impl Drop for Background {
    fn drop(&mut self) {
        // Its thread is not waited for: whoever drops it may be a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
