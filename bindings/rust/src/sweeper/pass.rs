//! One pass of a sweeper.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::claim::State;
use tallylock_core::error::{Code, Error};
use tallylock_core::scan::{Found, Page};
use tallylock_core::time::Instant;

use super::claims::LeftOpen;
use super::plan::Plan;
use crate::scan::Walk;
use crate::{Client, Counter, Lease};

/// How many claims a pass leaves open at most: it ends then, since what bills them seems to be out of order.
const MOST_LEFT_OPEN: usize = 10_000;

/// How many keys that are no counters a pass tells of one by one; the others are only counted.
const MOST_TOLD: u64 = 1_000;

/// One pass of a sweeper, under its lock: first the claims that earlier passes left open, then the counters that are due.
///
/// What [`next`](Self::next) gives is [committed](Self::commit), [aborted](Self::abort) or [left open](Self::leave_open)
/// before the next is asked for. At the end comes [`end`](Self::end); a pass that is dropped releases its lock in the
/// background. At no time is more than a page of keys in memory.
pub struct Sweep {
    client: Client,
    plan: Arc<Plan>,
    lease: Lease,
    stage: Stage,
    waiting: VecDeque<Candidate>,
    in_hand: Option<ToBill>,
    left_open: BTreeSet<String>,
    totals: Totals,
}

/// What a pass has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Met {
    /// A claim, to be billed.
    ToBill(ToBill),
    /// A key that cannot be billed.
    Unusable(Unusable),
}

/// A claim that is to be billed. It may have been handed out before, to a biller that died: the id tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToBill {
    /// The counter's key.
    pub key: Vec<u8>,
    /// The claim's id.
    pub claim_id: String,
    /// What it took from the counter.
    pub amount: i64,
    /// Whether it was left open by an earlier pass.
    pub resumed: bool,
}

/// A key that matches the pattern, or has a claim, and cannot be billed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable {
    /// The key.
    pub key: Vec<u8>,
    /// Why: such as `wrong_type`, `not_an_integer`, `forbidden`, `fenced_off`.
    pub error: Error,
}

/// What a pass has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// The claims that were handed out.
    pub offered: u64,
    /// Those of them that earlier passes had left open.
    pub resumed: u64,
    /// The claims that were committed.
    pub committed: u64,
    /// What they had taken. More than 64 bits, since many counters may be full.
    pub committed_units: i128,
    /// The claims that were aborted.
    pub aborted: u64,
    /// What they gave back.
    pub aborted_units: i128,
    /// The claims that were left open.
    pub left_open: u64,
    /// The keys that could not be billed, including those that were not told of one by one.
    pub unusable: u64,
}

/// Which keys are looked through.
enum Stage {
    Claims(Walk),
    Counters(Walk),
    Over,
}

/// What was found on a page.
enum Candidate {
    /// A claim that was left open, and until when it is there for certain.
    LeftOpen(LeftOpen, Instant),
    Due(Vec<u8>),
    Unusable(Unusable),
}

impl Sweep {
    pub(super) fn new(client: Client, plan: Arc<Plan>, lease: Lease) -> Self {
        let claims = Walk::new(&plan.names.pattern());
        Self {
            client,
            plan,
            lease,
            stage: Stage::Claims(claims),
            waiting: VecDeque::new(),
            in_hand: None,
            left_open: BTreeSet::new(),
            totals: Totals::default(),
        }
    }

    /// What is to be billed next; nothing at the end, and once 10,000 claims were left open. One that is still in the
    /// caller's hand is left open.
    ///
    /// If the future is dropped, or fails, a claim that it was making may be open; the next pass hands it out.
    ///
    /// # Errors
    /// `lost` if the lock is no longer ours: nothing is claimed any more. `forbidden` if the account may not SCAN;
    /// `unavailable`, `timeout`, `outcome_unknown`, `read_only`, `out_of_memory`, `unsupported`, `closed`.
    pub async fn next(&mut self) -> Result<Option<Met>, Error> {
        self.leave_open();
        while self.left_open.len() < MOST_LEFT_OPEN {
            self.hold().await?;
            let met = match self.waiting.pop_front() {
                Some(Candidate::Due(key)) => self.claim(key).await?,
                Some(Candidate::LeftOpen(claim, until)) => self.resume(claim, until).await?,
                Some(Candidate::Unusable(unusable)) => self.tell(unusable),
                None if self.turn_page().await? => None,
                None => break,
            };
            if let Some(Met::ToBill(to_bill)) = &met {
                self.totals.offered += 1;
                self.totals.resumed += u64::from(to_bill.resumed);
                self.in_hand = Some(to_bill.clone());
            }
            if met.is_some() {
                return Ok(met);
            }
        }
        Ok(None)
    }

    /// Ends the claim that was given last as billed. Done also when the lock was lost meanwhile: what is billed is billed.
    ///
    /// # Errors
    /// `conflict` if somebody aborted it meanwhile, `invalid_argument` if no claim is in the caller's hand, and those of
    /// [`Counter::commit`]; the claim may then be open yet.
    pub async fn commit(&mut self) -> Result<(), Error> {
        let billed = self.take_in_hand()?;
        let counter = self.counter(&billed.key)?;
        counter
            .commit(&billed.claim_id, billed.amount)
            .await
            .inspect_err(|_| self.keep_open(&billed))?;
        self.totals.committed += 1;
        self.totals.committed_units += i128::from(billed.amount);
        Ok(())
    }

    /// Ends the claim that was given last as not billed: its amount is in the counter again, with a TTL. Gives it.
    ///
    /// # Errors
    /// `lost` or `fenced_off` if the lock is no longer ours, when another sweeper may have billed it; `conflict` if somebody committed it
    /// meanwhile, `overflow` if the counter cannot take the amount, `invalid_argument` if no claim is in the caller's hand,
    /// and those of [`Counter::abort`]; the claim may then be open yet.
    pub async fn abort(&mut self) -> Result<i64, Error> {
        let refused = self.take_in_hand()?;
        let aborted = match self.hold().await {
            // It may be under way for longer than the lock lasts.
            Ok(()) => match self.counter(&refused.key) {
                Ok(counter) => {
                    let counter = counter.fenced(self.lease.fence());
                    counter.abort(&refused.claim_id).await
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let amount = aborted.inspect_err(|_| self.keep_open(&refused))?;
        self.totals.aborted += 1;
        self.totals.aborted_units += i128::from(amount);
        Ok(amount)
    }

    /// Leaves the claim that was given last open, if one was: the next pass hands it out again.
    pub fn leave_open(&mut self) {
        if let Some(left) = self.in_hand.take() {
            self.keep_open(&left);
        }
    }

    /// What this pass has done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Ends the pass: releases the lock.
    ///
    /// # Errors
    /// Those of [`Lease::release`]: `lost` if it was no longer ours.
    pub async fn end(&mut self) -> Result<(), Error> {
        self.leave_open();
        self.stage = Stage::Over;
        self.waiting.clear();
        self.lease.release().await
    }

    /// Makes sure that the lock is ours, and stays so for a while.
    async fn hold(&self) -> Result<(), Error> {
        if self.lease.remaining() < self.plan.lock_ttl * 2 / 3 {
            self.lease.extend(self.plan.lock_ttl).await?;
        }
        self.lease.ensure(Duration::ZERO)
    }

    /// Looks at the next page; gives whether there was one.
    async fn turn_page(&mut self) -> Result<bool, Error> {
        let asked_at = self.client.backend().now();
        let walk = match &mut self.stage {
            Stage::Claims(walk) | Stage::Counters(walk) => walk,
            Stage::Over => return Ok(false),
        };
        let page = next_page(&self.client, walk).await?;
        let is_over = walk.is_over();
        match self.stage {
            Stage::Claims(_) => self.take_claims(&page.found, asked_at),
            Stage::Counters(_) => self.take_counters(page),
            Stage::Over => {}
        }
        if is_over {
            self.stage = match self.stage {
                Stage::Claims(_) => Stage::Counters(Walk::new(&self.plan.pattern)),
                Stage::Counters(_) | Stage::Over => Stage::Over,
            };
        }
        Ok(true)
    }

    fn take_claims(&mut self, page: &[Found], asked_at: Instant) {
        for found in page {
            if let Some(claim) = self.plan.names.left_open(found) {
                let until = asked_at.plus(found.ttl.unwrap_or(u64::MAX));
                self.waiting.push_back(Candidate::LeftOpen(claim, until));
            }
        }
    }

    fn take_counters(&mut self, page: Page) {
        for found in page.found {
            if self.plan.is_due(&found) {
                self.waiting.push_back(Candidate::Due(found.key));
            } else if let Some(error) =
                no_counter(&found).filter(|_| !self.plan.is_lock(&found.key))
            {
                let key = found.key;
                self.waiting
                    .push_back(Candidate::Unusable(Unusable { key, error }));
            }
        }
        for (key, error) in page.forbidden {
            self.waiting
                .push_back(Candidate::Unusable(Unusable { key, error }));
        }
    }

    /// Claims what a counter holds. It may hold nothing any more, or may have been on an earlier page already.
    async fn claim(&mut self, key: Vec<u8>) -> Result<Option<Met>, Error> {
        let id = self.plan.names.draw()?;
        self.ask(key, id, false).await
    }

    /// Asks again for a claim that was left open: another may have ended it since it was found.
    async fn resume(&mut self, claim: LeftOpen, until: Instant) -> Result<Option<Met>, Error> {
        if self.left_open.contains(&claim.id) {
            // Found twice, and handed out already.
            return Ok(None);
        }
        let backend = self.client.backend();
        let latest = backend.now().plus(backend.settings().timeout.as_millis());
        if latest >= until {
            // Where it is gone, asking for it would make another of the same id.
            let detail = format!("the 7 days of the claim {} are over", claim.id);
            let error = Error::new(Code::Conflict, detail).about(&claim.counter);
            let key = claim.counter;
            return Ok(self.tell(Unusable { key, error }));
        }
        self.ask(claim.counter, claim.id, true).await
    }

    async fn ask(
        &mut self,
        key: Vec<u8>,
        claim_id: String,
        resumed: bool,
    ) -> Result<Option<Met>, Error> {
        let claimed = match self.counter(&key) {
            Ok(counter) => counter.fenced(self.lease.fence()).claim(&claim_id).await,
            Err(error) => Err(error),
        };
        let error = match claimed {
            Ok(claimed) => {
                let open = claimed.filter(|claimed| claimed.state == State::Open);
                return Ok(open.map(|claimed| {
                    Met::ToBill(ToBill {
                        key,
                        claim_id,
                        amount: claimed.amount,
                        resumed,
                    })
                }));
            }
            Err(error) => error,
        };
        match error.code() {
            Code::WrongType
            | Code::NotAnInteger
            | Code::Overflow
            | Code::Forbidden
            | Code::Conflict
            | Code::InvalidArgument => {}
            // Either we were overtaken, or it is the fence of another lock.
            Code::FencedOff => self.lease.extend(self.plan.lock_ttl).await?,
            _ => return Err(error),
        }
        Ok(self.tell(Unusable { key, error }))
    }

    /// Counts a key that cannot be billed, and tells of it unless there were many.
    fn tell(&mut self, unusable: Unusable) -> Option<Met> {
        self.totals.unusable += 1;
        (self.totals.unusable <= MOST_TOLD).then_some(Met::Unusable(unusable))
    }

    fn counter(&self, key: &[u8]) -> Result<Counter, Error> {
        self.client.counter(key, self.plan.ttl)
    }

    fn take_in_hand(&mut self) -> Result<ToBill, Error> {
        self.in_hand.take().ok_or_else(|| {
            Error::new(
                Code::InvalidArgument,
                "the pass has given no claim that was not committed, aborted or left open",
            )
        })
    }

    fn keep_open(&mut self, claim: &ToBill) {
        self.totals.left_open += 1;
        self.left_open.insert(claim.claim_id.clone());
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.lease.release_in_background();
    }
}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("lease", &self.lease)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

async fn next_page(client: &Client, walk: &mut Walk) -> Result<Page, Error> {
    let backend = client.backend();
    backend.check_open()?;
    let settings = backend.settings();
    let (way, now) = client.begin(settings.timeout.as_millis());
    let (look, step) = walk.go_on(settings, now);
    let page = client
        .run(look.passing_over_forbidden(), step, &way)
        .await?;
    Ok(walk.turn(page))
}

/// Why this key is no counter, unless it is one or a side key.
fn no_counter(found: &Found) -> Option<Error> {
    if found.side().is_some() || found.counter().is_some() {
        return None;
    }
    let error = match found.text {
        None => Error::new(Code::WrongType, "the key holds another type than a text"),
        Some(_) => Error::new(
            Code::NotAnInteger,
            "the key holds another text than a whole number",
        ),
    };
    Some(error.about(&found.key))
}
