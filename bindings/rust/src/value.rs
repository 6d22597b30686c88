//! A value's handle.

use std::time::Duration;

use tallylock_core::error::Error;
use tallylock_core::value::{Offered, Update};

use crate::spec::ValueSpec;
use crate::{Client, random};

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

    /// Replaces the value by what `change` makes of it, and gives it `ttl` to live; gives what was written, or nothing if
    /// the key is not there.
    ///
    /// `change` may be called several times: where another writes in between, it is asked again with what is there then. It
    /// runs while nothing is locked and no connection is kept.
    ///
    /// # Errors
    /// `conflict` if others were faster until the call's deadline, `invalid_argument` if the TTL is not within 1 ms and 10
    /// years, `outcome_unknown` if the reply to a write is lost; and those of `change`, in which case nothing is written.
    pub async fn update<E: From<Error>>(
        &self,
        ttl: Duration,
        mut change: impl AsyncFnMut(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        let mut read = self.read_for_update().await?;
        while let Some(update) = read {
            let value = change(update.present()).await?;
            read = match self.offer(update, &value, ttl).await? {
                Offered::Written => return Ok(Some(value)),
                Offered::Overtaken(update) => Some(update),
                Offered::Gone => None,
            };
        }
        Ok(None)
    }

    /// Reads the value to change it: the first half of [`update`](Self::update), for callers with a loop of their own.
    ///
    /// # Errors
    /// Those of the [handle](Value).
    pub async fn read_for_update(&self) -> Result<Option<Update>, Error> {
        let backend = self.client.backend();
        let begun = backend.now();
        let present = self.get().await?;
        Ok(present.map(|present| {
            Update::new(self.spec.key().clone(), present, backend.settings(), begun)
        }))
    }

    /// Writes `value` and gives it `ttl` to live, if the key still holds what was read: the second half of
    /// [`update`](Self::update). Where another was faster, it waits a little and reads what is there now.
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub async fn offer(
        &self,
        update: Update,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Offered, Error> {
        let backend = self.client.backend();
        backend.check_open()?;
        let ttl = self.spec.ttl(ttl)?;
        let settings = backend.settings();
        let (way, now) = self.client.begin(settings.timeout.as_millis());
        let (offer, step) = update.offer(
            value.as_ref().to_vec(),
            ttl,
            settings,
            random::jitter(now),
            now,
        );
        self.client.run(offer, step, &way).await
    }
}
