//! The two public faces of the Rust client behind one trait, so that one runner drives both.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tallylock::{
    Added, Claimed, Entry, Error, Found, Holder, Memory, OpenClaim, Options, Stolen, blocking,
};

/// Why a block of code ended early: an error of the client, or the runner's own exception.
#[derive(Debug)]
pub(crate) enum Stopped {
    Refused(Error),
    /// What the runner raised inside a block.
    Raised,
    /// A step inside a block did not do what the case expects.
    Failed(String),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A client, its handles and their verbs.
pub(crate) trait Face: Sized {
    type Counter;
    type Value;
    type Guarded;
    type Lock: Clone;
    type Lease;

    async fn connect(options: Options) -> Self;
    fn memory(&self) -> Option<Memory>;
    async fn pause(&self, time: Duration);
    fn counter(&self, key: &[u8], ttl: Duration, is_fixed: bool) -> Result<Self::Counter, Error>;
    fn value(&self, key: &[u8]) -> Result<Self::Value, Error>;
    fn guarded(&self, key: &[u8]) -> Result<Self::Guarded, Error>;
    fn lock(&self, key: &[u8], ttl: Duration, is_renewed: bool) -> Result<Self::Lock, Error>;

    async fn add(counter: &Self::Counter, amount: i64) -> Result<i64, Error>;
    async fn read(counter: &Self::Counter) -> Result<Option<i64>, Error>;
    async fn drain(counter: &Self::Counter) -> Result<Option<i64>, Error>;
    async fn finish(counter: &Self::Counter) -> Result<Option<i64>, Error>;

    async fn add_once(counter: &Self::Counter, amount: i64, id: &[u8]) -> Result<Added, Error>;
    async fn claim(counter: &Self::Counter, id: &[u8]) -> Result<Option<Claimed>, Error>;
    async fn commit(counter: &Self::Counter, id: &[u8], amount: i64) -> Result<(), Error>;
    async fn abort(counter: &Self::Counter, id: &[u8]) -> Result<i64, Error>;
    async fn claims(counter: &Self::Counter) -> Result<Vec<OpenClaim>, Error>;
    fn fenced(counter: Self::Counter, fence: u64) -> Self::Counter;
    fn remembering(counter: Self::Counter, time: Duration) -> Result<Self::Counter, Error>;
    fn entry(counter: &Self::Counter, amount: i64, id: Option<&[u8]>) -> Result<Entry, Error>;
    async fn add_many(&self, entries: Vec<Entry>) -> Result<Vec<Result<Added, Error>>, Error>;
    async fn scan(&self, pattern: &[u8]) -> Result<Vec<Found>, Error>;

    async fn get(value: &Self::Value) -> Result<Option<Vec<u8>>, Error>;
    async fn replace_if_present(
        value: &Self::Value,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<bool, Error>;
    async fn touch(value: &Self::Value, ttl: Duration) -> Result<bool, Error>;
    async fn compare_and_set(
        value: &Self::Value,
        expected: &[u8],
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<bool, Error>;

    async fn set(
        guarded: &Self::Guarded,
        bytes: &[u8],
        fence: u64,
        ttl: Duration,
    ) -> Result<(), Error>;
    async fn delete(guarded: &Self::Guarded, fence: u64) -> Result<bool, Error>;

    async fn inspect(lock: &Self::Lock) -> Result<Option<Holder>, Error>;
    async fn steal(
        lock: &Self::Lock,
        expected: &[u8],
        reason: &str,
    ) -> Result<Option<Stolen>, Error>;

    /// Writes what is there with more bytes behind it.
    async fn append(
        value: &Self::Value,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, Error>;

    async fn acquire(lock: &Self::Lock, wait: Duration) -> Result<Self::Lease, Error>;
    async fn with_lock(
        lock: &Self::Lock,
        wait: Duration,
        body: impl AsyncFnOnce(&Self::Lease) -> Result<(), Stopped>,
    ) -> Result<(), Stopped>;
    async fn extend(lease: &Self::Lease, ttl: Duration) -> Result<(), Error>;
    async fn release(lease: &Self::Lease) -> Result<(), Error>;
    async fn adopt(lock: &Self::Lock, token: &str) -> Result<Self::Lease, Error>;
    async fn verify(lease: &Self::Lease, margin: Duration) -> Result<(), Error>;
    async fn transfer(lease: &Self::Lease) -> Result<String, Error>;
    fn fence(lease: &Self::Lease) -> u64;
    fn remaining(lease: &Self::Lease) -> Duration;
    fn ensure(lease: &Self::Lease, margin: Duration) -> Result<(), Error>;
}

/// What both faces spell alike; `$wait` is `.await` for the one and nothing for the other.
macro_rules! verbs {
    ([$($wait:tt)*], $client:ty, $counter:ty, $value:ty, $guarded:ty, $lock:ty, $lease:ty) => {
        type Counter = $counter;
        type Value = $value;
        type Guarded = $guarded;
        type Lock = $lock;
        type Lease = $lease;

        async fn connect(options: Options) -> Self {
            <$client>::connect_with(options)$($wait)*.expect("a client")
        }

        fn memory(&self) -> Option<Memory> {
            self.memory()
        }

        fn counter(&self, key: &[u8], ttl: Duration, is_fixed: bool) -> Result<$counter, Error> {
            let counter = self.counter(key, ttl)?;
            // Sliding is what a counter is unless told otherwise.
            Ok(if is_fixed { counter.fixed() } else { counter })
        }

        fn value(&self, key: &[u8]) -> Result<$value, Error> {
            self.value(key)
        }

        fn guarded(&self, key: &[u8]) -> Result<$guarded, Error> {
            self.guarded(key)
        }

        fn lock(&self, key: &[u8], ttl: Duration, is_renewed: bool) -> Result<$lock, Error> {
            let lock = self.lock(key, ttl)?;
            Ok(if is_renewed { lock } else { lock.without_renewal() })
        }

        async fn add(counter: &$counter, amount: i64) -> Result<i64, Error> {
            counter.add(amount)$($wait)*
        }

        async fn read(counter: &$counter) -> Result<Option<i64>, Error> {
            counter.read()$($wait)*
        }

        async fn drain(counter: &$counter) -> Result<Option<i64>, Error> {
            counter.drain()$($wait)*
        }

        async fn finish(counter: &$counter) -> Result<Option<i64>, Error> {
            counter.finish()$($wait)*
        }

        async fn add_once(counter: &$counter, amount: i64, id: &[u8]) -> Result<Added, Error> {
            counter.add_once(amount, id)$($wait)*
        }

        async fn claim(counter: &$counter, id: &[u8]) -> Result<Option<Claimed>, Error> {
            counter.claim(id)$($wait)*
        }

        async fn commit(counter: &$counter, id: &[u8], amount: i64) -> Result<(), Error> {
            counter.commit(id, amount)$($wait)*
        }

        async fn abort(counter: &$counter, id: &[u8]) -> Result<i64, Error> {
            counter.abort(id)$($wait)*
        }

        async fn claims(counter: &$counter) -> Result<Vec<OpenClaim>, Error> {
            counter.claims()$($wait)*
        }

        fn fenced(counter: $counter, fence: u64) -> $counter {
            counter.fenced(fence)
        }

        fn remembering(counter: $counter, time: Duration) -> Result<$counter, Error> {
            counter.remembering(time)
        }

        fn entry(counter: &$counter, amount: i64, id: Option<&[u8]>) -> Result<Entry, Error> {
            match id {
                None => Ok(counter.entry(amount)),
                Some(id) => counter.entry_once(amount, id),
            }
        }

        async fn add_many(&self, entries: Vec<Entry>) -> Result<Vec<Result<Added, Error>>, Error> {
            self.add_many(entries)$($wait)*
        }

        async fn scan(&self, pattern: &[u8]) -> Result<Vec<Found>, Error> {
            let mut scan = self.scan(pattern);
            let mut all = Vec::new();
            while let Some(page) = scan.next_page()$($wait)*? {
                all.extend(page);
            }
            Ok(all)
        }

        async fn get(value: &$value) -> Result<Option<Vec<u8>>, Error> {
            value.get()$($wait)*
        }

        async fn replace_if_present(value: &$value, bytes: &[u8], ttl: Duration) -> Result<bool, Error> {
            value.replace_if_present(bytes, ttl)$($wait)*
        }

        async fn touch(value: &$value, ttl: Duration) -> Result<bool, Error> {
            value.touch(ttl)$($wait)*
        }

        async fn compare_and_set(value: &$value, expected: &[u8], bytes: &[u8], ttl: Duration) -> Result<bool, Error> {
            value.compare_and_set(expected, bytes, ttl)$($wait)*
        }

        async fn set(guarded: &$guarded, bytes: &[u8], fence: u64, ttl: Duration) -> Result<(), Error> {
            guarded.set(bytes, fence, ttl)$($wait)*
        }

        async fn delete(guarded: &$guarded, fence: u64) -> Result<bool, Error> {
            guarded.delete(fence)$($wait)*
        }

        async fn inspect(lock: &$lock) -> Result<Option<Holder>, Error> {
            lock.inspect()$($wait)*
        }

        async fn steal(lock: &$lock, expected: &[u8], reason: &str) -> Result<Option<Stolen>, Error> {
            lock.steal(expected, reason)$($wait)*
        }

        async fn acquire(lock: &$lock, wait: Duration) -> Result<$lease, Error> {
            lock.acquire(wait)$($wait)*
        }

        async fn extend(lease: &$lease, ttl: Duration) -> Result<(), Error> {
            lease.extend(ttl)$($wait)*
        }

        async fn release(lease: &$lease) -> Result<(), Error> {
            lease.release()$($wait)*
        }

        async fn adopt(lock: &$lock, token: &str) -> Result<$lease, Error> {
            lock.adopt(token)$($wait)*
        }

        async fn verify(lease: &$lease, margin: Duration) -> Result<(), Error> {
            lease.verify(margin)$($wait)*
        }

        async fn transfer(lease: &$lease) -> Result<String, Error> {
            lease.transfer()$($wait)*
        }

        fn fence(lease: &$lease) -> u64 {
            lease.fence()
        }

        fn remaining(lease: &$lease) -> Duration {
            lease.remaining()
        }

        fn ensure(lease: &$lease, margin: Duration) -> Result<(), Error> {
            lease.ensure(margin)
        }
    };
}

impl Face for tallylock::Client {
    verbs!([.await], Self, tallylock::Counter, tallylock::Value, tallylock::Guarded, tallylock::Lock, tallylock::Lease);

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn append(
        value: &Self::Value,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, Error> {
        let longer = async |present: &[u8]| Ok([present, bytes].concat());
        value.update(ttl, longer).await
    }

    async fn with_lock(
        lock: &Self::Lock,
        wait: Duration,
        body: impl AsyncFnOnce(&Self::Lease) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        lock.with_lock(wait, body).await
    }
}

impl Face for blocking::Client {
    verbs!(
        [],
        Self,
        blocking::Counter,
        blocking::Value,
        blocking::Guarded,
        blocking::Lock,
        blocking::Lease
    );

    async fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    async fn append(
        value: &Self::Value,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<Option<Vec<u8>>, Error> {
        value.update(ttl, |present| Ok([present, bytes].concat()))
    }

    async fn with_lock(
        lock: &Self::Lock,
        wait: Duration,
        body: impl AsyncFnOnce(&Self::Lease) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        lock.with_lock(wait, |lease| at_once(body(lease)))
    }
}

/// The output of a future that waits for nothing, as every one of the blocking face is.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a blocking call has given its thread away"),
    }
}
