//! Both faces of the meter behind one trait.

use tallylock::{Client, Error, Flushed, Meter, MeterOptions, Options, Refused, blocking};

/// A client and its meter.
pub(crate) trait Face: Sized {
    async fn open(options: Options, meter: MeterOptions) -> Result<Self, Error>;
    fn close_client(&self);
    fn add(&self, key: &str, amount: i64) -> Result<(), Error>;
    async fn flush(&self) -> Result<Flushed, Error>;
    async fn close(&self) -> Result<Flushed, Error>;
    fn take_refused(&self) -> Result<Vec<Refused>, Error>;
    fn trouble(&self) -> Option<Error>;
}

pub(crate) struct Async(Client, Meter);
pub(crate) struct Blocking(blocking::Client, blocking::Meter);

impl Face for Async {
    async fn open(options: Options, meter: MeterOptions) -> Result<Self, Error> {
        let client = Client::connect_with(options).await?;
        let meter = client.meter(meter)?;
        Ok(Self(client, meter))
    }

    fn close_client(&self) {
        self.0.close();
    }

    fn add(&self, key: &str, amount: i64) -> Result<(), Error> {
        self.1.add(key, amount)
    }

    async fn flush(&self) -> Result<Flushed, Error> {
        self.1.flush().await
    }

    async fn close(&self) -> Result<Flushed, Error> {
        self.1.close().await
    }

    fn take_refused(&self) -> Result<Vec<Refused>, Error> {
        self.1.take_refused()
    }

    fn trouble(&self) -> Option<Error> {
        self.1.trouble()
    }
}

impl Face for Blocking {
    async fn open(options: Options, meter: MeterOptions) -> Result<Self, Error> {
        let client = blocking::Client::connect_with(options)?;
        let meter = client.meter(meter)?;
        Ok(Self(client, meter))
    }

    fn close_client(&self) {
        self.0.close();
    }

    fn add(&self, key: &str, amount: i64) -> Result<(), Error> {
        self.1.add(key, amount)
    }

    async fn flush(&self) -> Result<Flushed, Error> {
        self.1.flush()
    }

    async fn close(&self) -> Result<Flushed, Error> {
        self.1.close()
    }

    fn take_refused(&self) -> Result<Vec<Refused>, Error> {
        self.1.take_refused()
    }

    fn trouble(&self) -> Option<Error> {
        self.1.trouble()
    }
}

/// Runs a future to its end on a runtime of its own.
pub(crate) fn in_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Makes of one scenario a test for each face on each server.
macro_rules! for_each_face {
    ($($(#[$attribute:meta])* $scenario:ident => $blocking:ident, $asynchronous:ident;)+) => {
        tallylock_testkit::on_each_server! {$(
            $(#[$attribute])*
            fn $blocking(server: tallylock_testkit::Server) {
                crate::face::in_runtime($scenario::<crate::face::Blocking>(server));
            }

            $(#[$attribute])*
            fn $asynchronous(server: tallylock_testkit::Server) {
                crate::face::in_runtime($scenario::<crate::face::Async>(server));
            }
        )+}
    };
}

pub(crate) use for_each_face;
