//! A value's handle.

use std::time::Duration;

use tallylock_core::error::Error;

use crate::Client;
use crate::spec::ValueSpec;

/// A text of any bytes that is written together with its TTL, and only where it is still there.
///
/// Only its verbs talk to the server. Each fails with `wrong_type` if the key holds something else than a text,
/// `unavailable` if the server cannot be reached, `timeout` or, where the request may have been applied,
/// `outcome_unknown` if it does not answer in time, and `closed` after [`Client::close`].
#[derive(Clone, Debug)]
pub struct Value {
    client: Client,
    spec: ValueSpec,
}

impl Value {
    pub(crate) fn new(client: Client, spec: ValueSpec) -> Self {
        Self { client, spec }
    }

    /// Gives the value; nothing if there is none.
    ///
    /// # Errors
    /// Those of the [handle](Value).
    pub async fn get(&self) -> Result<Option<Vec<u8>>, Error> {
        self.client.request(self.spec.get()).await
    }

    /// Writes `value` and gives it `ttl` to live, if the key is still there; gives whether it was.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years, and `outcome_unknown` if the reply is lost:
    /// repeated, it could overwrite what another wrote in between.
    pub async fn replace_if_present(
        &self,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<bool, Error> {
        self.client
            .request(self.spec.replace_if_present(value.as_ref(), ttl)?)
            .await
    }

    /// Gives the key `ttl` to live, if it is still there; gives whether it was.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years.
    pub async fn touch(&self, ttl: Duration) -> Result<bool, Error> {
        self.client.request(self.spec.touch(ttl)?).await
    }

    /// Writes `value` and gives it `ttl` to live, if the key still holds `expected`; gives whether it did.
    ///
    /// # Errors
    /// `invalid_argument` if the TTL is not within 1 ms and 10 years, and `outcome_unknown` if the reply is lost:
    /// repeated, it would deny its own success.
    pub async fn compare_and_set(
        &self,
        expected: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<bool, Error> {
        self.client
            .request(
                self.spec
                    .compare_and_set(expected.as_ref(), value.as_ref(), ttl)?,
            )
            .await
    }
}
