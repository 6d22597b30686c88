//! A counter's handle.

use std::time::Duration;

use tallylock_core::claim::Claimed;
use tallylock_core::counter::{Added, Entry};
use tallylock_core::error::Error;

use super::{Client, Scan};
use crate::claims::{self, OpenClaim, OpenClaims};
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
    pub(super) fn new(client: Client, spec: CounterSpec) -> Self {
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

    /// The same counter, whose keyed adds are remembered for `time`; 24 hours if not said. Each takes some 150 bytes of
    /// the server's memory for so long.
    ///
    /// # Errors
    /// `invalid_argument` if it is not within 1 ms and 10 years.
    pub fn remembering(self, time: Duration) -> Result<Self, Error> {
        Ok(Self {
            spec: self.spec.remembering(time)?,
            ..self
        })
    }

    /// The same counter, for the holder of a lock: its drains and claims fail with `fenced_off` once a holder with a
    /// higher fence has drained or claimed here, as long as the server remembers that (7 days after the last use).
    #[must_use]
    pub fn fenced(self, fence: u64) -> Self {
        Self {
            spec: self.spec.fenced(fence),
            ..self
        }
    }

    /// Adds `amount`, which may be negative or 0, and gives the total.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, `overflow` if the total does not fit into 64 bits, and
    /// `outcome_unknown` if the reply is lost: an add is never repeated by itself.
    pub fn add(&self, amount: i64) -> Result<i64, Error> {
        self.client.request(self.spec.add(amount))
    }

    /// Adds `amount` unless it was added under this idempotency key (1 to 512 bytes) before; gives the present total, and
    /// whether this call added.
    ///
    /// Repeated by itself after a lost reply, and may be repeated by the caller as long as the key is remembered.
    ///
    /// # Errors
    /// `conflict` if another amount was added under this key, `invalid_argument` if the key is empty or too long, and
    /// those of [`add`](Self::add).
    pub fn add_once(&self, amount: i64, idempotency_key: impl AsRef<[u8]>) -> Result<Added, Error> {
        self.client
            .request(self.spec.add_once(amount, idempotency_key.as_ref())?)
    }

    /// An [`add`](Self::add) for [`Client::add_many`]. Sends nothing.
    pub fn entry(&self, amount: i64) -> Entry {
        self.spec.entry(amount)
    }

    /// An [`add_once`](Self::add_once) for [`Client::add_many`]. Sends nothing.
    ///
    /// # Errors
    /// `invalid_argument` if the idempotency key is empty or too long.
    pub fn entry_once(
        &self,
        amount: i64,
        idempotency_key: impl AsRef<[u8]>,
    ) -> Result<Entry, Error> {
        self.spec.entry_once(amount, idempotency_key.as_ref())
    }

    /// Gives the total; nothing if there is no counter.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text.
    pub fn read(&self) -> Result<Option<i64>, Error> {
        self.client.request(self.spec.read())
    }

    /// Takes what is in the counter, leaving 0 with the remaining time that it has; nothing if there is no counter. One
    /// that has lost its TTL is given the handle's (see [`Client::healed`]).
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, and `outcome_unknown` if the reply is lost: a drain is never
    /// repeated by itself.
    pub fn drain(&self) -> Result<Option<i64>, Error> {
        let drained = self.client.request(self.spec.drain())?;
        Ok(self.client.backend().drained(drained))
    }

    /// Deletes the counter and gives what was left in it; nothing if there is none.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, and `outcome_unknown` if the reply is lost: a finish is never
    /// repeated by itself.
    pub fn finish(&self) -> Result<Option<i64>, Error> {
        self.client.request(self.spec.finish())
    }

    /// Takes what is in the counter for the claim of this id (1 to 512 bytes), to be [committed](Self::commit) once it is
    /// billed; gives nothing, and writes nothing, if there is nothing to take.
    ///
    /// Asked again with the same id it gives the same amount, and what has become of the claim: a biller that died asks
    /// again. An open claim is kept for 7 days, an ended one for 24 hours. Repeated by itself after a lost reply.
    ///
    /// # Errors
    /// `not_an_integer` if the key holds another text, `fenced_off` for a [fenced](Self::fenced) handle that was overtaken,
    /// `invalid_argument` if the id is empty or too long.
    pub fn claim(&self, id: impl AsRef<[u8]>) -> Result<Option<Claimed>, Error> {
        let claimed = self.client.request(self.spec.claim(id.as_ref())?)?;
        Ok(self.client.backend().claimed(claimed))
    }

    /// Ends the claim of this id as billed with this amount; done again, it changes nothing. Repeated by itself after a lost
    /// reply.
    ///
    /// # Errors
    /// `conflict` if the claim took another amount, was aborted, or is not there; `invalid_argument` if the id is empty or
    /// too long.
    pub fn commit(&self, id: impl AsRef<[u8]>, amount: i64) -> Result<(), Error> {
        self.client.request(self.spec.commit(id.as_ref(), amount)?)
    }

    /// Ends the claim of this id as not billed, adds its amount to the counter again and gives it; done again, it changes
    /// nothing. A counter that is gone is made anew. Repeated by itself after a lost reply.
    ///
    /// # Errors
    /// `conflict` if the claim was committed or is not there; `overflow` if the counter cannot take the amount, and
    /// `fenced_off` for a [fenced](Self::fenced) handle that was overtaken, whose successor may have billed the claim: it then
    /// stays open; `invalid_argument` if the id is empty or too long.
    pub fn abort(&self, id: impl AsRef<[u8]>) -> Result<i64, Error> {
        self.client.request(self.spec.abort(id.as_ref())?)
    }

    /// The open claims of this counter, in the order of their ids. Goes through all keys of the server: for billing jobs
    /// that start and for people, not for each call.
    ///
    /// # Errors
    /// `forbidden` if the account may not SCAN.
    pub fn claims(&self) -> Result<Vec<OpenClaim>, Error> {
        let mut scan = Scan::new(self.client.clone(), claims::walk(self.spec.key()));
        let mut open = OpenClaims::default();
        while let Some(page) = scan.next_page()? {
            open.take_in(&page);
        }
        Ok(open.into_list())
    }
}
