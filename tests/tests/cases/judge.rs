//! Compares what came with what is expected.

use std::fmt::Debug;

use regex_lite::Regex;
use tallylock::{Added, Claimed, Error, Holder, OpenClaim};

use crate::expected::{self, Claim, EntryResult, ListedClaim, ListedCounter};
use crate::format::{Arguments, Ask, Call, Fault, Left};
use crate::literals::Integer;
use crate::stage::Found;

impl<W: Arguments, E> Call<W, E> {
    /// Compares a result with what is expected of it.
    pub(crate) fn judge<T: Debug + Clone>(
        &self,
        result: Result<T, Error>,
        is_so: impl FnOnce(T, &E) -> bool,
    ) -> Result<(), String> {
        judge(result, self.expect.as_ref(), self.error.as_ref(), is_so)
    }
}

impl<W, E> Ask<W, E> {
    /// Compares a result with what is expected of it.
    pub(crate) fn judge<T: Debug + Clone>(
        &self,
        result: Result<T, Error>,
        is_so: impl FnOnce(T, &E) -> bool,
    ) -> Result<(), String> {
        judge(result, self.expect.as_ref(), self.error.as_ref(), is_so)
    }
}

pub(crate) fn judge<T: Debug + Clone, E>(
    result: Result<T, Error>,
    expect: Option<&E>,
    error: Option<&Fault>,
    is_so: impl FnOnce(T, &E) -> bool,
) -> Result<(), String> {
    match (result, expect) {
        (Ok(got), Some(expect)) if is_so(got.clone(), expect) => Ok(()),
        (Ok(got), _) => Err(format!("it returned {got:?}")),
        (Err(refused), _) => fault(&refused, error),
    }
}

/// Compares the end of a verb that returns nothing.
pub(crate) fn silent(result: Result<(), Error>, expected: Option<&Fault>) -> Result<(), String> {
    match (result, expected) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(expected)) => Err(format!("it succeeded, and {} is expected", expected.code)),
        (Err(error), expected) => fault(&error, expected),
    }
}

/// Compares an error with the one that is expected, if one is.
pub(crate) fn fault(error: &Error, expected: Option<&Fault>) -> Result<(), String> {
    let text = error.to_string();
    let Some(expected) = expected else {
        return Err(text);
    };
    let reason = error
        .code()
        .reason()
        .map(|reason| reason.as_str().to_owned());
    let same = error.code().as_str() == expected.code
        && error.applied().as_str() == expected.applied.as_str()
        && reason == expected.reason
        && expected.mentions.iter().all(|part| text.contains(part));
    if same {
        return Ok(());
    }
    Err(format!(
        "it failed otherwise than expected (applied: {}): {text}",
        error.applied().as_str()
    ))
}

pub(crate) fn is(expected: &Integer, got: i64) -> bool {
    expected.0 == got.to_string()
}

pub(crate) fn maybe(expected: Option<&Integer>, got: Option<i64>) -> bool {
    expected.map(|expected| expected.0.clone()) == got.map(|got| got.to_string())
}

/// Whether the results of a batch are these.
pub(crate) fn are_results(expected: &[EntryResult], got: &[Result<Added, Error>]) -> bool {
    let is_one = |(expected, got): (&EntryResult, &Result<Added, Error>)| match (expected, got) {
        (EntryResult::Added(expected), Ok(got)) => is_added(expected, *got),
        (EntryResult::Failed(expected), Err(error)) => error.code().as_str() == expected.code,
        _ => false,
    };
    expected.len() == got.len() && expected.iter().zip(got).all(is_one)
}

pub(crate) fn is_added(expected: &expected::Added, got: Added) -> bool {
    is(&expected.total, got.total) && expected.applied == got.applied
}

pub(crate) fn is_claim(expected: Option<&Claim>, got: Option<Claimed>) -> bool {
    match (expected, got) {
        (None, None) => true,
        (Some(expected), Some(got)) => {
            is(&expected.amount, got.amount) && expected.state.as_str() == got.state.as_str()
        }
        _ => false,
    }
}

/// Whether this is the holder.
pub(crate) fn is_holder(expected: Option<&expected::Holder>, got: Option<&Holder>) -> bool {
    let (Some(expected), Some(got)) = (expected, got) else {
        return expected.is_none() && got.is_none();
    };
    let remaining = got.remaining.map(|left| left.as_millis());
    let is_in_time = match (expected.remaining_ms, remaining) {
        (Some([least, most]), Some(left)) => (u128::from(least)..=u128::from(most)).contains(&left),
        (expected, left) => expected.is_none() && left.is_none(),
    };
    let token = String::from_utf8_lossy(&got.token);
    is_in_time
        && matches(Some(&expected.token), Some(&token))
        && matches(expected.label.as_deref(), got.label().as_deref())
        && matches_fence(expected.fence.as_deref(), got.fence)
}

/// Whether a fence matches a pattern, or both are nothing.
pub(crate) fn matches_fence(pattern: Option<&str>, fence: Option<u64>) -> bool {
    matches(pattern, fence.map(|fence| fence.to_string()).as_deref())
}

fn matches(pattern: Option<&str>, text: Option<&str>) -> bool {
    match (pattern, text) {
        (Some(pattern), Some(text)) => Regex::new(pattern).expect("a pattern").is_match(text),
        (pattern, text) => pattern.is_none() && text.is_none(),
    }
}

/// Whether these are the open claims.
pub(crate) fn are_claims(expected: &[ListedClaim], got: &[OpenClaim]) -> bool {
    let is_one = |(expected, got): (&ListedClaim, &OpenClaim)| {
        expected.id.bytes() == got.id && is(&expected.amount, got.amount)
    };
    expected.len() == got.len() && expected.iter().zip(got).all(is_one)
}

/// Whether these are the counters among what was found, in the order of their keys.
pub(crate) fn are_counters<'a>(
    expected: &[ListedCounter],
    got: impl Iterator<Item = &'a tallylock::Found>,
) -> bool {
    let mut counters: Vec<_> = got
        .filter_map(|found| Some((found.key.clone(), found.counter()?)))
        .collect();
    counters.sort();
    counters.dedup();
    let is_one = |(expected, (key, total)): (&ListedCounter, &(Vec<u8>, i64))| {
        expected.key.bytes() == *key && is(&expected.total, *total)
    };
    expected.len() == counters.len() && expected.iter().zip(&counters).all(is_one)
}

/// Compares all keys that are there with all that are listed.
pub(crate) fn compare_left(expected: &[Left], found: &[Found]) -> Result<(), String> {
    let stray = found
        .iter()
        .find(|found| expected.iter().all(|left| left.key.bytes() != found.key));
    if let Some(stray) = stray {
        return Err(format!("the key {} is left", shown(&stray.key)));
    }
    for left in expected {
        let key = left.key.bytes();
        let entry = found.iter().find(|found| found.key == key);
        let entry = entry.ok_or_else(|| format!("the key {} is not left", shown(&key)))?;
        compare_value(left, entry)
            .and_then(|()| compare_ttl(left, entry))
            .map_err(|why| format!("the key {}: {why}", shown(&key)))?;
    }
    Ok(())
}

fn compare_value(left: &Left, found: &Found) -> Result<(), String> {
    let is_so = match (&left.value, &left.pattern, &found.text) {
        (Some(value), _, Some(text)) => value.bytes() == *text,
        (_, Some(pattern), Some(text)) => {
            let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
            std::str::from_utf8(text).is_ok_and(|text| pattern.is_match(text))
        }
        (None, None, None) => true,
        _ => false,
    };
    if is_so {
        return Ok(());
    }
    Err(found
        .text
        .as_ref()
        .map_or("it is of another type".to_owned(), |text| {
            format!("it holds {}", shown(text))
        }))
}

fn compare_ttl(left: &Left, found: &Found) -> Result<(), String> {
    match (left.ttl_ms, found.ttl_ms) {
        (None, None) => Ok(()),
        (Some([least, most]), Some(ttl)) if (least..=most).contains(&ttl) => Ok(()),
        (_, Some(ttl)) => Err(format!("its TTL is {ttl} ms")),
        (_, None) => Err("it has no TTL".to_owned()),
    }
}

fn shown(bytes: &[u8]) -> String {
    let end = bytes.len().min(100);
    format!("\"{}\"", bytes[..end].escape_ascii())
}
