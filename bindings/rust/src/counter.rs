//! A counter's handle.

use tallylock_core::error::Error;

use crate::Client;
use crate::spec::CounterSpec;

/// A whole number of 64 bits that always has a TTL.
///
/// Only its verbs talk to the server. Each fails with `wrong_type` if the key holds something else than a text,
/// `unavailable` if the server cannot be reached, `timeout` or, where the request may have been applied,
/// `outcome_unknown` if it does not answer in time, and `closed` after [`Client::close`].
#[derive(Clone, Debug)]
pub struct Counter {
    client: Client,
    spec: CounterSpec,
}

impl Counter {
    pub(crate) fn new(client: Client, spec: CounterSpec) -> Self {
        Self { client, spec }
    }

    /// The same counter with a fixed expiry: an add sets the TTL only if the counter has none, so that it ends a TTL
    /// after it began. Otherwise each add sets it anew.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self {
            spec: self.spec.fixed(),
            ..self
        }
    }

    /// Adds `amount`, which may be negative or 0, and gives the total.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, `overflow` if the total does not fit into 64 bits, and
    /// `outcome_unknown` if the reply is lost: an add is never repeated by itself.
    pub async fn add(&self, amount: i64) -> Result<i64, Error> {
        self.client.request(self.spec.add(amount)).await
    }

    /// Gives the total; nothing if there is no counter.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text.
    pub async fn read(&self) -> Result<Option<i64>, Error> {
        self.client.request(self.spec.read()).await
    }

    /// Takes what is in the counter, leaving 0 with the remaining time that it has; nothing if there is no counter. One
    /// that has lost its TTL is given the handle's (see [`Client::healed`]).
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, and `outcome_unknown` if the reply is lost: a drain is never
    /// repeated by itself.
    pub async fn drain(&self) -> Result<Option<i64>, Error> {
        let drained = self.client.request(self.spec.drain()).await?;
        Ok(self.client.backend().drained(drained))
    }

    /// Deletes the counter and gives what was left in it; nothing if there is none.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, and `outcome_unknown` if the reply is lost: a finish is never
    /// repeated by itself.
    pub async fn finish(&self) -> Result<Option<i64>, Error> {
        self.client.request(self.spec.finish()).await
    }
}
