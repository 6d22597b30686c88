//! What happens in a generated sequence: our own operations, and what other programs do to the same keys.

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;
use tallylock_core::claim::{Abort, Commit, Open};
use tallylock_core::counter::{Add, AddOnce, Drain, Expiry, Finish, Read};
use tallylock_core::error::Error;
use tallylock_core::heal::Heal;
use tallylock_core::id::Id;
use tallylock_core::key::{Key, Part};
use tallylock_core::lock::{Acquire, Extend, Grant, Inspect, LeaseTtl, Lock, Release, Steal};
use tallylock_core::request::{Request, Single};
use tallylock_core::round::Effect;
use tallylock_core::script::{Invocation, Script};
use tallylock_core::settings::Settings;
use tallylock_core::step::{Call, Event, Next, Operation, Outcome, Reply, Step};
use tallylock_core::time::{Instant, Ttl, Wait};
use tallylock_core::token::Seed;
use tallylock_core::value::{
    CompareAndSet, Get, GuardedDelete, GuardedSet, ReplaceIfPresent, Touch,
};

use crate::compare::is_clock;

/// An untagged key and a tagged one; values, counters, claims and locks meet under one name.
const KEYS: [&str; 2] = ["session:42", "{invoice}:43"];

/// Far enough from each other that none can be taken for another, whatever the slowness.
const TTLS: [i64; 5] = [
    1_000_000,
    3_600_000,
    10_000_000,
    43_200_000,
    315_360_000_000,
];

/// Names of adds and of claims.
const IDS: [&str; 2] = ["event-1", "event:{2}"];

/// Texts that other programs leave under a counter, a value, a lock or one of our own side keys.
const TEXTS: [&[u8]; 23] = [
    b"",
    b"0",
    b"5",
    b"-5",
    b"007",
    b"1.5",
    b"-0",
    b"hello",
    b"\x00\xff\r\n",
    b"9007199254740993",
    b"999999999999999",
    b"-99999999999999999",
    b"8999999999999999999",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"open ",
    b"open 5",
    b"open hello",
    b"open 9223372036854775807",
    b"open 1\n2",
    b"committed 5",
    b"aborted 5",
];

/// Bytes that a failing sequence shows readably.
#[derive(Clone)]
pub(crate) struct Bytes(Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Add(Key, i64, Ttl, Expiry),
    AddOnce(Key, Id, i64, Ttl, Expiry),
    Read(Key),
    /// With the fence of a lock's holder, or without.
    Drain(Key, Ttl, Option<u64>),
    Finish(Key),
    Open(Key, Id, Ttl, Option<u64>),
    /// With that amount, or the one that the claim took.
    Commit(Key, Id, Option<i64>),
    Abort(Key, Id, Ttl, Option<u64>),
    Get(Key),
    Replace(Key, Bytes, Ttl),
    Touch(Key, Ttl),
    CompareAndSet(Key, Bytes, Bytes, Ttl),
    Acquire(Key, Ttl, [u8; 16]),
    Extend(Key, Ttl),
    Release(Key),
    Set(Key, Bytes, u64, Ttl),
    Delete(Key, u64),
    Inspect(Key),
    /// From the last holder of ours, or from another.
    Steal(Key, Ttl, Option<Bytes>),
    /// The holder writes back a fence that other nodes have given.
    RaiseFence(Key, u64, Ttl),
    /// A key of ours, of others or of another type.
    Heal(Bytes, Ttl),
    /// Another program writes a text, with a TTL or without.
    Put(Bytes, Bytes, Option<Ttl>),
    /// Another program writes another type, with a TTL or without.
    PutList(Bytes, Option<Ttl>),
    /// Another program deletes a key.
    Remove(Bytes),
    /// The server restarts without its scripts.
    ForgetScripts,
}

pub(crate) fn any() -> impl Strategy<Value = Action> {
    let key = || select(&KEYS[..]).prop_map(|key| Key::new(key).unwrap());
    let ttl = || select(&TTLS[..]).prop_map(|millis| Ttl::from_millis(millis).unwrap());
    let maybe_ttl = move || proptest::option::of(ttl());
    let text = || select(&TEXTS[..]).prop_map(|text| Bytes(text.to_vec()));
    // Few, so that what is expected is met by chance.
    let some = || select(&TEXTS[..4]).prop_map(|text| Bytes(text.to_vec()));
    let expiry = || select(&[Expiry::Sliding, Expiry::Fixed][..]);
    let id = || select(&IDS[..]).prop_map(|id| Id::new(id).unwrap());
    // Few, so that the amount of a claim is met by chance, and another one too.
    let few = || -3_i64..8;
    // Such that texts of them are compared by length and by digits.
    let some_fence = || select(&[7_u64, 9, 10, u64::MAX][..]);
    let fence = move || proptest::option::of(some_fence());
    // Behind every clock, one of them by its digits alone, and ahead of it; the last leaves no room for the next acquire.
    let raised = || {
        let fences = [
            7_u64,
            1_000_000_000_000_000,
            8_000_000_000_000_000,
            i64::MAX as u64,
        ];
        select(fences.to_vec())
    };
    let amount = prop_oneof![
        4 => -100_i64..100,
        1 => any_i64(),
        1 => select(&[i64::MIN, i64::MAX, 0, 1, -1][..]),
    ];
    // Side keys too: a script must not trust what it finds under its own name.
    let place = move || {
        (key(), id(), 0..7).prop_map(|(key, id, part)| {
            Bytes(match part {
                0 => key.side(Part::Fence),
                1 => key.side(Part::Once(&id)),
                2 => key.side(Part::Claim(&id)),
                3 => key.side(Part::Guard),
                _ => key.as_bytes().to_vec(),
            })
        })
    };
    prop_oneof![
        8 => (key(), amount, ttl(), expiry()).prop_map(|(key, n, ttl, expiry)| Action::Add(key, n, ttl, expiry)),
        2 => key().prop_map(Action::Read),
        6 => (key(), ttl(), fence()).prop_map(|(key, ttl, fence)| Action::Drain(key, ttl, fence)),
        2 => key().prop_map(Action::Finish),
        6 => (key(), id(), few(), ttl(), expiry()).prop_map(|(key, id, n, ttl, expiry)| Action::AddOnce(key, id, n, ttl, expiry)),
        6 => (key(), id(), ttl(), fence()).prop_map(|(key, id, ttl, fence)| Action::Open(key, id, ttl, fence)),
        4 => (key(), id(), proptest::option::of(few())).prop_map(|(key, id, n)| Action::Commit(key, id, n)),
        4 => (key(), id(), ttl(), fence()).prop_map(|(key, id, ttl, fence)| Action::Abort(key, id, ttl, fence)),
        2 => key().prop_map(Action::Get),
        3 => (key(), some(), ttl()).prop_map(|(key, text, ttl)| Action::Replace(key, text, ttl)),
        3 => (key(), ttl()).prop_map(|(key, ttl)| Action::Touch(key, ttl)),
        4 => (key(), some(), some(), ttl()).prop_map(|(key, seen, text, ttl)| Action::CompareAndSet(key, seen, text, ttl)),
        6 => (key(), ttl(), any_seed()).prop_map(|(key, ttl, seed)| Action::Acquire(key, ttl, seed)),
        3 => (key(), ttl()).prop_map(|(key, ttl)| Action::Extend(key, ttl)),
        4 => key().prop_map(Action::Release),
        4 => (key(), some(), some_fence(), ttl()).prop_map(|(key, text, fence, ttl)| Action::Set(key, text, fence, ttl)),
        4 => (key(), some_fence()).prop_map(|(key, fence)| Action::Delete(key, fence)),
        3 => key().prop_map(Action::Inspect),
        4 => (key(), ttl(), proptest::option::of(some())).prop_map(|(key, ttl, token)| Action::Steal(key, ttl, token)),
        4 => (key(), raised(), ttl()).prop_map(|(key, fence, ttl)| Action::RaiseFence(key, fence, ttl)),
        3 => (place(), ttl()).prop_map(|(key, ttl)| Action::Heal(key, ttl)),
        6 => (place(), text(), maybe_ttl()).prop_map(|(key, text, ttl)| Action::Put(key, text, ttl)),
        2 => (place(), maybe_ttl()).prop_map(|(key, ttl)| Action::PutList(key, ttl)),
        4 => place().prop_map(Action::Remove),
        1 => Just(Action::ForgetScripts),
    ]
}

fn any_i64() -> impl Strategy<Value = i64> {
    proptest::num::i64::ANY
}

fn any_seed() -> impl Strategy<Value = [u8; 16]> {
    proptest::array::uniform16(proptest::num::u8::ANY)
}

/// What a sequence is done to.
pub(crate) trait Side {
    /// How operations behave here.
    fn settings(&self) -> &Settings;
    /// Sends a call of an operation.
    fn send(&mut self, call: Call) -> Result<Outcome, TestCaseError>;
    /// Another program writes a text, with a TTL or without.
    fn put(&mut self, key: &[u8], text: &[u8], ttl: Option<Ttl>);
    /// Another program writes a key of another type, with a TTL or without.
    fn put_list(&mut self, key: &[u8], ttl: Option<Ttl>);
    /// Another program deletes a key.
    fn remove(&mut self, key: &[u8]);
    /// The server forgets its scripts.
    fn forget_scripts(&mut self);
}

/// What the caller knows from earlier actions.
#[derive(Default)]
pub(crate) struct Known {
    /// The last grant of each lock; it may have lost its right meanwhile.
    granted: BTreeMap<Key, Grant>,
    /// What each claim took.
    claimed: BTreeMap<(Key, Id), i64>,
}

/// When everything happens on the caller's clock: generated sequences take no time.
const NOW: Instant = Instant::from_millis(0);

impl Action {
    /// Does it to a side, and says in words how it ended.
    pub(crate) fn perform(
        &self,
        side: &mut impl Side,
        known: &mut Known,
    ) -> Result<String, TestCaseError> {
        match self.clone() {
            Self::Add(key, amount, ttl, expiry) => single(
                side,
                Add {
                    key,
                    amount,
                    ttl,
                    expiry,
                },
            ),
            Self::AddOnce(key, id, amount, ttl, expiry) => {
                let remembered = Some(Ttl::from_millis(TTLS[2]).unwrap());
                single(
                    side,
                    AddOnce {
                        key,
                        id,
                        amount,
                        ttl,
                        expiry,
                        remembered,
                    },
                )
            }
            Self::Read(key) => single(side, Read { key }),
            Self::Drain(key, ttl, fence) => single(side, Drain { key, ttl, fence }),
            Self::Finish(key) => single(side, Finish { key }),
            Self::Open(key, id, ttl, fence) => open(
                side,
                known,
                Open {
                    key,
                    id,
                    ttl,
                    fence,
                },
            ),
            Self::Commit(key, id, amount) => {
                let taken = known.claimed.get(&(key.clone(), id.clone())).copied();
                let amount = amount.or(taken).unwrap_or_default();
                single(side, Commit { key, id, amount })
            }
            Self::Abort(key, id, ttl, fence) => single(
                side,
                Abort {
                    key,
                    id,
                    ttl,
                    fence,
                },
            ),
            Self::Get(key) => single(side, Get { key }),
            Self::Replace(key, Bytes(value), ttl) => {
                single(side, ReplaceIfPresent { key, value, ttl })
            }
            Self::Touch(key, ttl) => single(side, Touch { key, ttl }),
            Self::CompareAndSet(key, Bytes(expected), Bytes(value), ttl) => single(
                side,
                CompareAndSet {
                    key,
                    expected,
                    value,
                    ttl,
                },
            ),
            Self::Acquire(key, ttl, seed) => acquire(side, known, key, ttl, seed),
            Self::Extend(key, ttl) => extend(side, known, &key, ttl),
            Self::Release(key) => release(side, known, &key),
            Self::Set(key, Bytes(value), fence, ttl) => single(
                side,
                GuardedSet {
                    key,
                    value,
                    fence,
                    ttl,
                },
            ),
            Self::Delete(key, fence) => single(side, GuardedDelete { key, fence }),
            Self::Inspect(key) => inspect(side, &key),
            Self::Steal(key, ttl, token) => steal(side, known, &key, ttl, token),
            Self::RaiseFence(key, fence, ttl) => raise_fence(side, known, key, fence, ttl),
            Self::Heal(Bytes(key), ttl) => single(side, Heal { key, ttl }),
            Self::Put(Bytes(key), Bytes(text), ttl) => {
                side.put(&key, &text, ttl);
                Ok("put".to_owned())
            }
            Self::PutList(Bytes(key), ttl) => {
                side.put_list(&key, ttl);
                Ok("put".to_owned())
            }
            Self::Remove(Bytes(key)) => {
                side.remove(&key);
                Ok("removed".to_owned())
            }
            Self::ForgetScripts => {
                side.forget_scripts();
                Ok("forgotten".to_owned())
            }
        }
    }
}

fn single<R: Request>(side: &mut impl Side, request: R) -> Result<String, TestCaseError>
where
    R::Output: fmt::Debug,
{
    let started = Single::start(request, side.settings(), Seed::new([0; 16]), NOW);
    ended(run(side, started)?)
}

fn open(side: &mut impl Side, known: &mut Known, request: Open) -> Result<String, TestCaseError> {
    let claim = (request.key.clone(), request.id.clone());
    let started = Single::start(request, side.settings(), Seed::new([0; 16]), NOW);
    let claimed = run(side, started)?;
    if let Ok(Some(taken)) = &claimed {
        known.claimed.insert(claim, taken.amount);
    }
    ended(claimed)
}

fn acquire(
    side: &mut impl Side,
    known: &mut Known,
    key: Key,
    ttl: Ttl,
    seed: [u8; 16],
) -> Result<String, TestCaseError> {
    let started = Acquire::start(
        lock(&key, ttl),
        Wait::NONE,
        side.settings(),
        Seed::new(seed),
        NOW,
    );
    let granted = run(side, started)?;
    if let Ok(grant) = &granted {
        known.granted.insert(key, grant.clone());
    }
    ended(granted.map(|grant| fence(grant.fence)))
}

/// What is found, but for how long it lasts: that is compared by the replies.
fn inspect(side: &mut impl Side, key: &Key) -> Result<String, TestCaseError> {
    let lock = lock(key, Ttl::from_millis(TTLS[0]).unwrap());
    let started = Single::start(Inspect { lock }, side.settings(), Seed::new([3; 16]), NOW);
    let found = run(side, started)?;
    ended(found.map(|found| {
        found.map(|holder| {
            let is_mortal = holder.remaining.is_some();
            (Bytes(holder.token), is_mortal, holder.fence.map(fence))
        })
    }))
}

fn steal(
    side: &mut impl Side,
    known: &Known,
    key: &Key,
    ttl: Ttl,
    token: Option<Bytes>,
) -> Result<String, TestCaseError> {
    let granted = known.granted.get(key);
    let granted = granted.map(|grant| Bytes(grant.token.as_bytes().to_vec()));
    let Some(Bytes(token)) = token.or(granted) else {
        return Ok("was never held".to_owned());
    };
    let steal = Steal::new(lock(key, ttl), &token, "it hangs").unwrap();
    let started = Single::start(steal, side.settings(), Seed::new([4; 16]), NOW);
    let stolen = run(side, started)?;
    ended(stolen.map(|stolen| stolen.map(|stolen| fence(stolen.fence))))
}

fn fence(fence: u64) -> String {
    let fence = fence.to_string();
    if is_clock(fence.as_bytes()) {
        return "a fence from the clock".to_owned();
    }
    fence
}

fn extend(
    side: &mut impl Side,
    known: &mut Known,
    key: &Key,
    ttl: Ttl,
) -> Result<String, TestCaseError> {
    let Some(grant) = known.granted.get_mut(key) else {
        return Ok("was never held".to_owned());
    };
    let started = Extend::start(
        lock(key, ttl),
        &grant.token,
        grant.valid_until,
        side.settings(),
        Seed::new([1; 16]),
        NOW,
    );
    let extended = run(side, started)?;
    if let Ok(valid_until) = &extended {
        grant.valid_until = *valid_until;
    }
    ended(extended)
}

fn release(side: &mut impl Side, known: &Known, key: &Key) -> Result<String, TestCaseError> {
    let Some(grant) = known.granted.get(key) else {
        return Ok("was never held".to_owned());
    };
    let lock = lock(key, Ttl::from_millis(TTLS[0]).unwrap());
    let started = Release::start(
        lock,
        &grant.token,
        grant.valid_until,
        side.settings(),
        Seed::new([2; 16]),
        NOW,
    );
    ended(run(side, started)?)
}

fn raise_fence(
    side: &mut impl Side,
    known: &Known,
    key: Key,
    fence: u64,
    ttl: Ttl,
) -> Result<String, TestCaseError> {
    let Some(grant) = known.granted.get(&key) else {
        return Ok("was never held".to_owned());
    };
    let token = grant.token.as_bytes().to_vec();
    let request = RaiseFence {
        key,
        token,
        fence,
        ttl,
    };
    single(side, request)
}

/// What an acquire over several nodes asks of each of them at its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct RaiseFence {
    key: Key,
    token: Vec<u8>,
    fence: u64,
    ttl: Ttl,
}

impl Request for RaiseFence {
    type Output = String;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Undone
    }

    fn invocation(&self) -> Invocation {
        let text = |number: u64| number.to_string().into_bytes().into();
        Invocation {
            script: Script::LockRaiseFence,
            keys: vec![
                self.key.as_bytes().to_vec().into(),
                self.key.side(Part::Fence).into(),
            ],
            arguments: vec![
                self.token.clone().into(),
                text(self.fence),
                text(self.ttl.as_millis()),
            ],
        }
    }

    fn understand(&self, reply: Reply) -> Result<Self::Output, Error> {
        Ok(match reply {
            Reply::Array(parts) => match parts.as_slice() {
                [_, Reply::Text(fence)] if is_clock(fence) => "higher, by a clock".to_owned(),
                parts => format!("{parts:?}"),
            },
            word => format!("{word:?}"),
        })
    }
}

/// Runs an operation, one call after the other.
fn run<O: Operation>(
    side: &mut impl Side,
    (mut operation, mut step): (O, Step<O::Output>),
) -> Result<O::Output, TestCaseError> {
    loop {
        let call = match (step.calls.pop(), step.next) {
            (None, Next::Done(output)) => return Ok(output),
            (Some(call), Next::WaitUntil(_)) => call,
            (call, _) => {
                return Err(TestCaseError::fail(format!(
                    "{operation:?} neither asks nor ends: {call:?}"
                )));
            }
        };
        let event = Event::Replied {
            call: call.id,
            outcome: side.send(call)?,
        };
        step = operation.handle(NOW, event);
    }
}

/// The outcome in words. Only errors that these sequences can cause may come.
fn ended<T: fmt::Debug>(outcome: Result<T, Error>) -> Result<String, TestCaseError> {
    const CODES: [&str; 7] = [
        "wrong_type",
        "not_an_integer",
        "overflow",
        "busy",
        "lost",
        "conflict",
        "fenced_off",
    ];
    match outcome {
        Ok(output) => Ok(format!("{output:?}")),
        Err(error) if CODES.contains(&error.code().as_str()) => {
            Ok(format!("{:?} about {:?}", error.code(), error.key()))
        }
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

fn lock(key: &Key, ttl: Ttl) -> Lock {
    Lock::new(key.clone(), LeaseTtl::new(ttl).unwrap())
}
