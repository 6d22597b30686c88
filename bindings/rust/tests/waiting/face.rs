//! The two clients, for tests that do the same with each.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tallylock::{Client, Error, Lease, Options, blocking};
use tokio::runtime::{Builder, Runtime};

const TTL: Duration = Duration::from_secs(60);

/// A client.
#[derive(Clone)]
pub(crate) enum Face {
    Blocking(blocking::Client),
    Futures(Client, Arc<Runtime>),
}

/// A lock that is held.
#[derive(Debug)]
pub(crate) enum Held {
    Blocking(blocking::Lease),
    Futures(Lease, Arc<Runtime>),
}

impl Face {
    pub(crate) fn all(url: &str) -> [Self; 2] {
        Self::with(&Options::new(url).unwrap())
    }

    pub(crate) fn without_scripts(url: &str) -> [Self; 2] {
        Self::with(&Options::new(url).unwrap().avoid_scripts())
    }

    fn with(options: &Options) -> [Self; 2] {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = Arc::new(runtime.unwrap());
        let client = runtime.block_on(Client::connect_with(options.clone()));
        [
            Self::Blocking(blocking::Client::connect_with(options.clone()).unwrap()),
            Self::Futures(client.unwrap(), runtime),
        ]
    }

    pub(crate) fn acquire(&self, key: &str, wait: Duration) -> Result<Held, Error> {
        Ok(match self {
            Self::Blocking(client) => Held::Blocking(client.lock(key, TTL)?.acquire(wait)?),
            Self::Futures(client, runtime) => {
                let lease = runtime.block_on(client.lock(key, TTL)?.acquire(wait))?;
                Held::Futures(lease, Arc::clone(runtime))
            }
        })
    }

    /// Waits for a lock on a thread.
    pub(crate) fn in_background(
        self,
        key: &str,
        wait: Duration,
    ) -> JoinHandle<Result<Held, Error>> {
        let key = key.to_owned();
        thread::spawn(move || self.acquire(&key, wait))
    }

    /// Takes a lock from its holder.
    pub(crate) fn steal(&self, key: &str) {
        let stolen = match self {
            Self::Blocking(client) => {
                let lock = client.lock(key, TTL).unwrap();
                let holder = lock.inspect().unwrap().expect("a holder");
                lock.steal(&holder.token, "it hangs")
            }
            Self::Futures(client, runtime) => runtime.block_on(async {
                let lock = client.lock(key, TTL).unwrap();
                let holder = lock.inspect().await.unwrap().expect("a holder");
                lock.steal(&holder.token, "it hangs").await
            }),
        };
        stolen.unwrap().expect("it was held");
    }

    pub(crate) fn close(&self) {
        match self {
            Self::Blocking(client) => client.close(),
            Self::Futures(client, _) => client.close(),
        }
    }
}

impl Held {
    pub(crate) fn ensure(&self) {
        match self {
            Self::Blocking(lease) => lease.ensure(Duration::ZERO),
            Self::Futures(lease, _) => lease.ensure(Duration::ZERO),
        }
        .unwrap();
    }

    pub(crate) fn release(self) {
        self.end().unwrap();
    }

    /// In memory the time of a holder who does nothing passes as soon as others wait.
    pub(crate) fn release_or_was_lost(self) {
        if let Err(error) = self.end() {
            assert_eq!(error.code().as_str(), "lost", "{error}");
        }
    }

    fn end(&self) -> Result<(), Error> {
        match self {
            Self::Blocking(lease) => lease.release(),
            Self::Futures(lease, runtime) => runtime.block_on(lease.release()),
        }
    }
}

/// Runs this with a client, all on one thread.
pub(crate) fn in_futures(url: &str, body: impl AsyncFnOnce(&Client)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(url).await.unwrap();
        body(&client).await;
    });
}
