//! A guarded value's handle.

use std::time::Duration;

use tallylock_core::error::Error;

use super::Client;
use crate::spec::ValueSpec;

/// A text of any bytes that only the holder of a lock writes: once a holder with a higher fence was here, an earlier one is
/// refused with `fenced_off`. It is the guard of fenced drains and claims at the same key.
///
/// The highest fence is remembered for 7 days after its last use, also when the text is deleted or ends. Once it is
/// forgotten, a holder from before passes. Read it with [`Client::value`].
///
/// Only its verbs talk to the server. Each fails with `fenced_off`, with `wrong_type` if the key holds something else than a
/// text, `unavailable` if the server cannot be reached, `timeout`, `out_of_memory`, and `closed` after [`Client::close`]; and
/// with `outcome_unknown` if the reply is lost. It is not repeated then: the fence keeps other holders out, but not what the
/// same holder wrote in between. A holder who writes one after the other can repeat it.
#[derive(Clone, Debug)]
pub struct Guarded {
    client: Client,
    spec: ValueSpec,
}

impl Guarded {
    pub(super) fn new(client: Client, spec: ValueSpec) -> Self {
        Self { client, spec }
    }

    /// Writes `value` under the [fence](crate::blocking::Lease::fence) of a lease, and gives it `ttl` to live, whether the key is there or
    /// not.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years, and those of the [handle](Guarded).
    pub fn set(&self, value: impl AsRef<[u8]>, fence: u64, ttl: Duration) -> Result<(), Error> {
        self.client
            .request(self.spec.guarded_set(value.as_ref(), fence, ttl)?)
    }

    /// Deletes the value under the [fence](crate::blocking::Lease::fence) of a lease; gives whether there was one.
    ///
    /// # Errors
    /// Those of the [handle](Guarded).
    pub fn delete(&self, fence: u64) -> Result<bool, Error> {
        self.client.request(self.spec.guarded_delete(fence))
    }
}
