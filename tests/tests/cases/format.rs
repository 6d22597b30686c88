//! The files of cases, as `cases/README.md` describes them. What the format does not have is refused.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::expected::{
    Added, Claims, Counters, Done, Fence, GivenBack, MaybeAmount, MaybeClaim, MaybeFencePattern,
    MaybeHolder, MaybeTotal, MaybeValue, Never, Remaining, Results, Total,
};
use crate::literals::{Bytes, Integer, Text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    pub(crate) files: Vec<Listed>,
    pub(crate) bad: Vec<Bad>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    pub(crate) file: String,
    pub(crate) cases: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bad {
    pub(crate) file: String,
    pub(crate) must: Must,
    pub(crate) because: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Must {
    #[serde(rename = "be refused")]
    BeRefused,
    #[serde(rename = "fail")]
    Fail,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(rename = "about")]
    _about: String,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) only: Option<Only>,
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    #[serde(default)]
    pub(crate) given: Vec<Plant>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) steps: Vec<Step>,
    pub(crate) left: Vec<Left>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Only {
    Memory,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Need {
    NegativeDuration,
    BigAmount,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Handle {
    Counter {
        name: String,
        key: Text,
        ttl_ms: f64,
        expiry: Option<Expiry>,
    },
    Value {
        name: String,
        key: Text,
    },
    Guarded {
        name: String,
        key: Text,
    },
    Lock {
        name: String,
        key: Text,
        ttl_ms: f64,
        #[serde(default = "renewed")]
        renewal: bool,
    },
}

impl Handle {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Counter { name, .. }
            | Self::Value { name, .. }
            | Self::Guarded { name, .. }
            | Self::Lock { name, .. } => name,
        }
    }
}

fn renewed() -> bool {
    true
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expiry {
    Sliding,
    Fixed,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Plant {
    Text(PlantText),
    List(PlantList),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlantText {
    pub(crate) key: Text,
    pub(crate) value: Bytes,
    #[serde(deserialize_with = "present")]
    pub(crate) ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlantList {
    pub(crate) key: Text,
    #[serde(rename = "type")]
    _type: OtherType,
    #[serde(deserialize_with = "present")]
    pub(crate) ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OtherType {
    List,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Left {
    pub(crate) key: Text,
    pub(crate) value: Option<Bytes>,
    pub(crate) pattern: Option<String>,
    #[serde(rename = "type")]
    pub(crate) other: Option<OtherType>,
    #[serde(deserialize_with = "present")]
    pub(crate) ttl_ms: Option<[u64; 2]>,
}

#[derive(Deserialize)]
#[serde(tag = "do", deny_unknown_fields)]
pub(crate) enum Step {
    #[serde(rename = "counter.add")]
    Add(Call<Amount, Total>),
    #[serde(rename = "counter.read")]
    Read(Call<Nothing, MaybeTotal>),
    #[serde(rename = "counter.add_once")]
    AddOnce(Call<AmountOnce, Added>),
    #[serde(rename = "counter.drain")]
    Drain(Call<MaybeFence, MaybeAmount>),
    #[serde(rename = "counter.finish")]
    Finish(Call<Nothing, MaybeAmount>),
    #[serde(rename = "counter.claim")]
    Claim(Call<ClaimArguments, MaybeClaim>),
    #[serde(rename = "counter.commit")]
    Commit(Call<AmountOfClaim, Never>),
    #[serde(rename = "counter.abort")]
    Abort(Call<ClaimArguments, GivenBack>),
    #[serde(rename = "counter.claims")]
    Claims(Call<Nothing, Claims>),
    #[serde(rename = "value.get")]
    Get(Call<Nothing, MaybeValue>),
    #[serde(rename = "value.replace_if_present")]
    Replace(Call<ValueAndTtl, Done>),
    #[serde(rename = "value.touch")]
    Touch(Call<Ttl, Done>),
    #[serde(rename = "value.compare_and_set")]
    CompareAndSet(Call<Comparison, Done>),
    #[serde(rename = "value.update")]
    Update(Call<Append, MaybeValue>),
    #[serde(rename = "guarded.set")]
    Set(Call<GuardedValue, Never>),
    #[serde(rename = "guarded.delete")]
    Delete(Call<Fenced, Done>),
    #[serde(rename = "lock.inspect")]
    Inspect(Inspect),
    #[serde(rename = "lock.steal")]
    Steal(Call<Theft, MaybeFencePattern>),
    #[serde(rename = "lock.acquire")]
    Acquire(Acquire),
    #[serde(rename = "lock.adopt")]
    Adopt(Adopt),
    #[serde(rename = "lock.block")]
    Block(Block),
    #[serde(rename = "lease.extend")]
    Extend(Call<MaybeTtl, Never>),
    #[serde(rename = "lease.release")]
    Release(Call<Nothing, Never>),
    #[serde(rename = "lease.transfer")]
    Transfer(Transfer),
    #[serde(rename = "lease.fence")]
    Fence(Told<Fence>),
    #[serde(rename = "lease.remaining")]
    Remaining(Told<Remaining>),
    #[serde(rename = "lease.ensure")]
    Ensure(Call<Margin, Never>),
    #[serde(rename = "lease.verify")]
    Verify(Call<Margin, Never>),
    #[serde(rename = "client.add_many")]
    AddMany(Ask<Batch, Results>),
    #[serde(rename = "client.scan")]
    Scan(Ask<Pattern, Counters>),
    #[serde(rename = "client.expiring")]
    Expiring(Ask<Expiring, Counters>),
    #[serde(rename = "advance")]
    Advance { with: Advance },
    #[serde(rename = "plant")]
    Plant { with: Plant },
    #[serde(rename = "remove")]
    Remove { with: Remove },
    #[serde(rename = "lose_next_reply")]
    LoseNextReply {},
}

/// A verb on a handle or a lease, its arguments, and its result or error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "W: Arguments, E: DeserializeOwned")]
pub(crate) struct Call<W, E> {
    pub(crate) on: String,
    #[serde(default = "W::none_given", deserialize_with = "given")]
    with: Option<W>,
    pub(crate) expect: Option<E>,
    pub(crate) error: Option<Fault>,
}

impl<W: Arguments, E> Call<W, E> {
    /// The arguments.
    ///
    /// # Panics
    /// If they are missing, which a checked case does not.
    pub(crate) fn with(&self) -> &W {
        self.with.as_ref().expect("the format was checked")
    }

    /// Whether the verb cannot do without arguments, and has none.
    pub(crate) fn lacks_arguments(&self) -> bool {
        self.with.is_none()
    }
}

/// A verb of the client itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask<W, E> {
    pub(crate) with: W,
    pub(crate) expect: Option<E>,
    pub(crate) error: Option<Fault>,
}

/// What is told of a lease without a way to fail.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told<E> {
    pub(crate) on: String,
    pub(crate) expect: E,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inspect {
    pub(crate) on: String,
    pub(crate) seen: Option<String>,
    pub(crate) expect: Option<MaybeHolder>,
    pub(crate) error: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acquire {
    pub(crate) on: String,
    #[serde(rename = "as")]
    pub(crate) lease: Option<String>,
    #[serde(default)]
    pub(crate) with: MaybeWait,
    pub(crate) error: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Adopt {
    pub(crate) on: String,
    #[serde(rename = "as")]
    pub(crate) lease: Option<String>,
    pub(crate) with: Adoption,
    pub(crate) error: Option<Fault>,
}

/// A token, or one that was given.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Adoption {
    Token(String),
    Given(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    pub(crate) on: String,
    /// The name of the token.
    #[serde(rename = "as")]
    pub(crate) token: Option<String>,
    pub(crate) error: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Block {
    pub(crate) on: String,
    #[serde(rename = "as")]
    pub(crate) lease: Option<String>,
    #[serde(default)]
    pub(crate) with: MaybeWait,
    pub(crate) inside: Vec<Step>,
    pub(crate) raises: bool,
    pub(crate) error: Option<Fault>,
}

/// What a verb is given.
pub(crate) trait Arguments: DeserializeOwned {
    /// What it is given if `with` is missing; nothing if it cannot do without.
    fn none_given() -> Option<Self>;
}

macro_rules! arguments {
    ($($name:ident, $none_given:expr, { $($field:ident: $type:ty),* })+) => {$(
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        impl Arguments for $name {
            fn none_given() -> Option<Self> {
                $none_given
            }
        }
    )+};
}

arguments! {
    Nothing, Some(Self {}), {}
    Amount, None, { amount: Integer }
    AmountOnce, None, { amount: Integer, id: Text, remember_ms: Option<f64> }
    MaybeFence, Some(Self { fence: None }), { fence: Option<Integer> }
    ClaimArguments, None, { id: Text, fence: Option<Integer> }
    AmountOfClaim, None, { id: Text, amount: Integer }
    Append, None, { append: Bytes, ttl_ms: f64 }
    Ttl, None, { ttl_ms: f64 }
    MaybeTtl, Some(Self { ttl_ms: None }), { ttl_ms: Option<f64> }
    ValueAndTtl, None, { value: Bytes, ttl_ms: f64 }
    Comparison, None, { expected: Bytes, value: Bytes, ttl_ms: f64 }
    GuardedValue, None, { value: Bytes, fence: Integer, ttl_ms: f64 }
    Fenced, None, { fence: Integer }
    Theft, None, { token: Option<Bytes>, seen: Option<String>, reason: String }
    Margin, None, { margin_ms: f64 }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeWait {
    pub(crate) wait_ms: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Advance {
    pub(crate) ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    pub(crate) key: Text,
}

/// The one entry of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) on: String,
    pub(crate) amount: Integer,
    pub(crate) id: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pattern {
    pub(crate) pattern: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expiring {
    pub(crate) pattern: Text,
    pub(crate) within_ms: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) code: String,
    pub(crate) applied: Applied,
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) mentions: Vec<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Applied {
    No,
    Maybe,
}

impl Applied {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
        }
    }
}

/// A field that must be there, if only as null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

fn given<'de, D: Deserializer<'de>, W: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<W>, D::Error> {
    W::deserialize(deserializer).map(Some)
}
