//! Runs one case and says what is not as the case expects.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tallylock::Error;

use crate::expected::Fence;
use crate::face::{Face, Stopped};
use crate::format::{
    Acquire, Adopt, Adoption, Block, Case, Expiry, Fault, Handle, Inspect, Step, Transfer,
};
use crate::judge::{
    are_claims, are_counters, are_results, compare_left, fault, is, is_added, is_claim, is_holder,
    judge, matches_fence, maybe, silent,
};
use crate::literals::{Bytes, Integer, Text};
use crate::stage::Stage;

/// Runs a case and compares what is left.
pub(crate) async fn run<F: Face>(case: &Case, client: &F, stage: &Stage<'_>) -> Result<(), String> {
    for plant in &case.given {
        stage.plant(plant);
    }
    let mut runner = Runner {
        client,
        stage,
        handles: &case.handles,
        leases: BTreeMap::new(),
        locks: RefCell::default(),
        tokens: BTreeMap::new(),
        given: BTreeMap::new(),
    };
    runner.steps(&case.steps, None).await?;
    compare_left(&case.left, &stage.left())
}

struct Runner<'a, F: Face> {
    client: &'a F,
    stage: &'a Stage<'a>,
    handles: &'a [Handle],
    /// The locks' handles that were used, by name: a handle knows what it holds.
    locks: RefCell<BTreeMap<String, Rc<F::Lock>>>,
    /// The leases that were acquired, by name, each with its lock's TTL.
    leases: BTreeMap<String, (F::Lease, Duration)>,
    /// The tokens that were looked at, by name, and those that were given away.
    tokens: BTreeMap<String, Vec<u8>>,
    given: BTreeMap<String, String>,
}

/// The lease of the block that a step is inside of; blocks in a block have theirs around them.
struct Inside<'a, L> {
    name: Option<&'a str>,
    lease: &'a L,
    ttl: Duration,
    outer: Option<&'a Inside<'a, L>>,
}

impl<F: Face> Runner<'_, F> {
    async fn steps(
        &mut self,
        steps: &[Step],
        inside: Option<&Inside<'_, F::Lease>>,
    ) -> Result<(), String> {
        for (place, step) in steps.iter().enumerate() {
            // Boxed, since a block has steps of its own.
            let ended = Box::pin(self.step(step, inside)).await;
            ended.map_err(|why| format!("step {}: {why}", place + 1))?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm a verb, and nothing else")]
    async fn step(
        &mut self,
        step: &Step,
        inside: Option<&Inside<'_, F::Lease>>,
    ) -> Result<(), String> {
        match step {
            Step::Add(call) => {
                let amount = integer(&call.with().amount);
                let total = async { F::add(&self.counter(&call.on)?, amount).await }.await;
                call.judge(total, |total, expect| is(&expect.total, total))
            }
            Step::Read(call) => {
                let total = async { F::read(&self.counter(&call.on)?).await }.await;
                call.judge(total, |total, expect| maybe(expect.total.as_ref(), total))
            }
            Step::AddOnce(call) => {
                let with = call.with();
                let added = async {
                    let counter = self.counter(&call.on)?;
                    let counter = match with.remember_ms {
                        Some(time) => F::remembering(counter, millis(time))?,
                        None => counter,
                    };
                    F::add_once(&counter, integer(&with.amount), &with.id.bytes()).await
                };
                call.judge(added.await, |added, expect| is_added(expect, added))
            }
            Step::Drain(call) => {
                let fence = call.with().fence.as_ref();
                let amount = async { F::drain(&self.fenced(&call.on, fence)?).await }.await;
                call.judge(amount, |amount, expect| {
                    maybe(expect.amount.as_ref(), amount)
                })
            }
            Step::Finish(call) => {
                let amount = async { F::finish(&self.counter(&call.on)?).await }.await;
                call.judge(amount, |amount, expect| {
                    maybe(expect.amount.as_ref(), amount)
                })
            }
            Step::Claim(call) => {
                let with = call.with();
                let claimed = async {
                    let counter = self.fenced(&call.on, with.fence.as_ref())?;
                    F::claim(&counter, &with.id.bytes()).await
                };
                call.judge(claimed.await, |claimed, expect| {
                    is_claim(expect.claim.as_ref(), claimed)
                })
            }
            Step::Commit(call) => {
                let (id, amount) = (call.with().id.bytes(), integer(&call.with().amount));
                let done = async { F::commit(&self.counter(&call.on)?, &id, amount).await };
                silent(done.await, call.error.as_ref())
            }
            Step::Abort(call) => {
                let with = call.with();
                let amount = async {
                    let counter = self.fenced(&call.on, with.fence.as_ref())?;
                    F::abort(&counter, &with.id.bytes()).await
                };
                call.judge(amount.await, |amount, expect| is(&expect.amount, amount))
            }
            Step::Claims(call) => {
                let claims = async { F::claims(&self.counter(&call.on)?).await }.await;
                call.judge(claims, |claims, expect| are_claims(&expect.claims, &claims))
            }
            Step::Get(call) => {
                let bytes = async { F::get(&self.value(&call.on)?).await }.await;
                call.judge(bytes, |bytes, expect| {
                    bytes == expect.value.as_ref().map(Bytes::bytes)
                })
            }
            Step::Replace(call) => {
                let (bytes, ttl) = (call.with().value.bytes(), millis(call.with().ttl_ms));
                let done =
                    async { F::replace_if_present(&self.value(&call.on)?, &bytes, ttl).await }
                        .await;
                call.judge(done, |done, expect| done == expect.done)
            }
            Step::Touch(call) => {
                let ttl = millis(call.with().ttl_ms);
                let done = async { F::touch(&self.value(&call.on)?, ttl).await }.await;
                call.judge(done, |done, expect| done == expect.done)
            }
            Step::CompareAndSet(call) => {
                let with = call.with();
                let (expected, bytes, ttl) = (
                    with.expected.bytes(),
                    with.value.bytes(),
                    millis(with.ttl_ms),
                );
                let done = async {
                    F::compare_and_set(&self.value(&call.on)?, &expected, &bytes, ttl).await
                }
                .await;
                call.judge(done, |done, expect| done == expect.done)
            }
            Step::Update(call) => {
                let (bytes, ttl) = (call.with().append.bytes(), millis(call.with().ttl_ms));
                let value = async { F::append(&self.value(&call.on)?, &bytes, ttl).await }.await;
                call.judge(value, |value, expect| {
                    value == expect.value.as_ref().map(Bytes::bytes)
                })
            }
            Step::AddMany(ask) => {
                let results = async {
                    let entries = ask.with.entries.iter().map(|entry| {
                        let id = entry.id.as_ref().map(Text::bytes);
                        F::entry(
                            &self.counter(&entry.on)?,
                            integer(&entry.amount),
                            id.as_deref(),
                        )
                    });
                    let entries = entries.collect::<Result<Vec<_>, Error>>()?;
                    self.client.add_many(entries).await
                };
                ask.judge(results.await, |results, expect| {
                    are_results(&expect.results, &results)
                })
            }
            Step::Scan(ask) => {
                let found = self.client.scan(&ask.with.pattern.bytes()).await;
                ask.judge(found, |found, expect| {
                    are_counters(&expect.counters, found.iter())
                })
            }
            Step::Expiring(ask) => {
                let found = self.client.scan(&ask.with.pattern.bytes()).await;
                let within = millis(ask.with.within_ms);
                ask.judge(found, |found, expect| {
                    let expiring = found.iter().filter(|found| found.is_expiring(within));
                    are_counters(&expect.counters, expiring)
                })
            }
            Step::Set(call) => {
                let with = call.with();
                let done = async {
                    let (fence, ttl) = (unsigned(&with.fence), millis(with.ttl_ms));
                    F::set(&self.guarded(&call.on)?, &with.value.bytes(), fence, ttl).await
                };
                silent(done.await, call.error.as_ref())
            }
            Step::Delete(call) => {
                let fence = unsigned(&call.with().fence);
                let done = async { F::delete(&self.guarded(&call.on)?, fence).await }.await;
                call.judge(done, |done, expect| done == expect.done)
            }
            Step::Inspect(look) => self.inspect(look).await,
            Step::Steal(call) => {
                let with = call.with();
                let token = match (&with.token, &with.seen) {
                    (Some(token), _) => token.bytes(),
                    (None, seen) => {
                        self.tokens[seen.as_ref().expect("the format was checked")].clone()
                    }
                };
                let stolen =
                    async { F::steal(&self.lock(&call.on)?.0, &token, &with.reason).await };
                call.judge(stolen.await, |stolen, expect| {
                    matches_fence(expect.fence.as_deref(), stolen.map(|stolen| stolen.fence))
                })
            }
            Step::Acquire(step) => self.acquire(step).await,
            Step::Adopt(step) => self.adopt(step).await,
            Step::Transfer(step) => self.transfer(step, inside).await,
            Step::Block(step) => self.block(step, inside).await,
            Step::Extend(call) => {
                let (lease, lock_ttl) = self.lease(&call.on, inside);
                let ttl = call.with().ttl_ms.map_or(lock_ttl, millis);
                silent(F::extend(lease, ttl).await, call.error.as_ref())
            }
            Step::Release(call) => silent(
                F::release(self.lease(&call.on, inside).0).await,
                call.error.as_ref(),
            ),
            Step::Ensure(call) => {
                let margin = millis(call.with().margin_ms);
                silent(
                    F::ensure(self.lease(&call.on, inside).0, margin),
                    call.error.as_ref(),
                )
            }
            Step::Verify(call) => {
                let margin = millis(call.with().margin_ms);
                let verified = F::verify(self.lease(&call.on, inside).0, margin).await;
                silent(verified, call.error.as_ref())
            }
            Step::Fence(told) => {
                let fence = F::fence(self.lease(&told.on, inside).0);
                let is_so = match &told.expect {
                    Fence::Above(other) => fence > F::fence(self.lease(other, inside).0),
                    Fence::Equals(other) => fence == F::fence(self.lease(other, inside).0),
                    Fence::Is(number) => number.0 == fence.to_string(),
                };
                if is_so {
                    Ok(())
                } else {
                    Err(format!("the fence is {fence}"))
                }
            }
            Step::Remaining(told) => {
                let remaining = F::remaining(self.lease(&told.on, inside).0).as_millis();
                let [least, most] = told.expect.ms.map(u128::from);
                if (least..=most).contains(&remaining) {
                    Ok(())
                } else {
                    Err(format!("{remaining} ms are left"))
                }
            }
            Step::Advance { with } => {
                self.advance(Duration::from_millis(with.ms)).await;
                Ok(())
            }
            Step::Plant { with } => {
                self.stage.plant(with);
                Ok(())
            }
            Step::Remove { with } => {
                self.stage.remove(&with.key.bytes());
                Ok(())
            }
            Step::LoseNextReply {} => match self.stage {
                Stage::Memory(memory) => {
                    memory.lose_next_reply();
                    Ok(())
                }
                Stage::Server(_) => unreachable!("the format keeps such a case from a server"),
            },
        }
    }

    async fn inspect(&mut self, look: &Inspect) -> Result<(), String> {
        let holder = async { F::inspect(&self.lock(&look.on)?.0).await }.await;
        if let (Some(name), Ok(Some(holder))) = (&look.seen, &holder) {
            self.tokens.insert(name.clone(), holder.token.clone());
        }
        judge(
            holder,
            look.expect.as_ref(),
            look.error.as_ref(),
            |holder, expect| is_holder(expect.holder.as_ref(), holder.as_ref()),
        )
    }

    async fn acquire(&mut self, step: &Acquire) -> Result<(), String> {
        let wait = millis(step.with.wait_ms.unwrap_or(0.0));
        let acquired = async {
            let (lock, ttl) = self.lock(&step.on)?;
            Ok((F::acquire(&lock, wait).await?, ttl))
        };
        let acquired = acquired.await;
        keep(
            acquired,
            step.lease.as_ref(),
            step.error.as_ref(),
            &mut self.leases,
        )
    }

    async fn adopt(&mut self, step: &Adopt) -> Result<(), String> {
        let token = match &step.with {
            Adoption::Token(token) => token,
            Adoption::Given(name) => &self.given[name],
        };
        let adopted = async {
            let (lock, ttl) = self.lock(&step.on)?;
            Ok((F::adopt(&lock, token).await?, ttl))
        };
        let adopted = adopted.await;
        keep(
            adopted,
            step.lease.as_ref(),
            step.error.as_ref(),
            &mut self.leases,
        )
    }

    async fn transfer(
        &mut self,
        step: &Transfer,
        inside: Option<&Inside<'_, F::Lease>>,
    ) -> Result<(), String> {
        let token = F::transfer(self.lease(&step.on, inside).0).await;
        keep(
            token,
            step.token.as_ref(),
            step.error.as_ref(),
            &mut self.given,
        )
    }

    async fn block(
        &mut self,
        step: &Block,
        outer: Option<&Inside<'_, F::Lease>>,
    ) -> Result<(), String> {
        let wait = millis(step.with.wait_ms.unwrap_or(0.0));
        let (lock, ttl) = match self.lock(&step.on) {
            Ok(lock) => lock,
            Err(error) => return fault(&error, step.error.as_ref()),
        };
        let mut has_run = false;
        let ended = F::with_lock(&lock, wait, async |lease| {
            has_run = true;
            let inside = Inside {
                name: step.lease.as_deref(),
                lease,
                ttl,
                outer,
            };
            self.steps(&step.inside, Some(&inside))
                .await
                .map_err(Stopped::Failed)?;
            if step.raises {
                Err(Stopped::Raised)
            } else {
                Ok(())
            }
        });
        match (ended.await, &step.error) {
            (Err(Stopped::Failed(why)), _) => Err(format!("inside, {why}")),
            (Err(Stopped::Refused(error)), Some(_)) if has_run => {
                Err(format!("it was entered, and then: {error}"))
            }
            (Err(Stopped::Refused(error)), expected) => fault(&error, expected.as_ref()),
            (_, Some(expected)) => Err(format!("{} is expected", expected.code)),
            (Err(Stopped::Raised), None) if step.raises => Ok(()),
            (Ok(()), None) if !step.raises => Ok(()),
            (ended, None) => Err(format!(
                "it raises: {}, and it ended with {ended:?}",
                step.raises
            )),
        }
    }

    async fn advance(&self, time: Duration) {
        match self.stage {
            Stage::Memory(memory) => memory.advance(time),
            Stage::Server(_) => self.client.pause(time).await,
        }
    }

    fn counter(&self, name: &str) -> Result<F::Counter, Error> {
        match self.handle(name) {
            Handle::Counter {
                key,
                ttl_ms,
                expiry,
                ..
            } => self.client.counter(
                &key.bytes(),
                millis(*ttl_ms),
                *expiry == Some(Expiry::Fixed),
            ),
            _ => unreachable!("the format was checked"),
        }
    }

    fn fenced(&self, name: &str, fence: Option<&Integer>) -> Result<F::Counter, Error> {
        let counter = self.counter(name)?;
        Ok(match fence {
            Some(fence) => F::fenced(counter, unsigned(fence)),
            None => counter,
        })
    }

    fn value(&self, name: &str) -> Result<F::Value, Error> {
        match self.handle(name) {
            Handle::Value { key, .. } => self.client.value(&key.bytes()),
            _ => unreachable!("the format was checked"),
        }
    }

    fn guarded(&self, name: &str) -> Result<F::Guarded, Error> {
        match self.handle(name) {
            Handle::Guarded { key, .. } => self.client.guarded(&key.bytes()),
            _ => unreachable!("the format was checked"),
        }
    }

    fn lock(&self, name: &str) -> Result<(Rc<F::Lock>, Duration), Error> {
        let Handle::Lock {
            key,
            ttl_ms,
            renewal,
            ..
        } = self.handle(name)
        else {
            unreachable!("the format was checked")
        };
        let ttl = millis(*ttl_ms);
        let mut locks = self.locks.borrow_mut();
        let lock = match locks.get(name) {
            Some(lock) => Rc::clone(lock),
            None => Rc::new(self.client.lock(&key.bytes(), ttl, *renewal)?),
        };
        locks.insert(name.to_owned(), Rc::clone(&lock));
        Ok((lock, ttl))
    }

    fn handle(&self, name: &str) -> &Handle {
        self.handles
            .iter()
            .find(|handle| handle.name() == name)
            .expect("the format was checked")
    }

    fn lease<'l>(
        &'l self,
        name: &str,
        inside: Option<&'l Inside<'l, F::Lease>>,
    ) -> (&'l F::Lease, Duration) {
        let mut around = inside;
        while let Some(inside) = around {
            if inside.name == Some(name) {
                return (inside.lease, inside.ttl);
            }
            around = inside.outer;
        }
        let (lease, ttl) = self
            .leases
            .get(name)
            .expect("the format was checked, and each failed step ends the case");
        (lease, *ttl)
    }
}

/// Keeps what was given, or compares why it was not.
fn keep<T>(
    given: Result<T, Error>,
    name: Option<&String>,
    error: Option<&Fault>,
    kept: &mut BTreeMap<String, T>,
) -> Result<(), String> {
    match (given, name) {
        (Ok(given), Some(name)) => {
            kept.insert(name.clone(), given);
            Ok(())
        }
        (Ok(_), None) => Err("it succeeded".to_owned()),
        (Err(why), _) => fault(&why, error),
    }
}

fn unsigned(integer: &Integer) -> u64 {
    integer.0.parse().expect("a fence of 64 bits")
}

fn integer(integer: &Integer) -> i64 {
    integer.0.parse().expect("an integer of 64 bits")
}

/// A duration of so many milliseconds. Cases with negative ones are left out, since the type has none.
fn millis(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis / 1000.0).expect("a duration that is not negative")
}
