//! What a step is expected to give.

use serde::Deserialize;

use crate::format::present;
use crate::literals::{Bytes, Integer, Text};

/// A verb that returns nothing has no result to expect.
#[derive(Deserialize)]
pub(crate) enum Never {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Total {
    pub(crate) total: Integer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Added {
    pub(crate) total: Integer,
    pub(crate) applied: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failed {
    pub(crate) code: String,
}

/// What has become of an entry.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum EntryResult {
    Added(Added),
    Failed(Failed),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    pub(crate) results: Vec<EntryResult>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) amount: Integer,
    pub(crate) state: ClaimState,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClaimState {
    Open,
    Committed,
    Aborted,
}

impl ClaimState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeClaim {
    #[serde(deserialize_with = "present")]
    pub(crate) claim: Option<Claim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenBack {
    pub(crate) amount: Integer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedClaim {
    pub(crate) id: Text,
    pub(crate) amount: Integer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    pub(crate) claims: Vec<ListedClaim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedCounter {
    pub(crate) key: Text,
    pub(crate) total: Integer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counters {
    pub(crate) counters: Vec<ListedCounter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeTotal {
    #[serde(deserialize_with = "present")]
    pub(crate) total: Option<Integer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeAmount {
    #[serde(deserialize_with = "present")]
    pub(crate) amount: Option<Integer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeValue {
    #[serde(deserialize_with = "present")]
    pub(crate) value: Option<Bytes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
    pub(crate) done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeHolder {
    #[serde(deserialize_with = "present")]
    pub(crate) holder: Option<Holder>,
}

/// The token, the label and the fence are patterns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holder {
    pub(crate) token: String,
    #[serde(deserialize_with = "present")]
    pub(crate) label: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(crate) remaining_ms: Option<[u64; 2]>,
    #[serde(deserialize_with = "present")]
    pub(crate) fence: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MaybeFencePattern {
    #[serde(deserialize_with = "present")]
    pub(crate) fence: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Fence {
    Above(String),
    Equals(String),
    Is(Integer),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remaining {
    pub(crate) ms: [u64; 2],
}
