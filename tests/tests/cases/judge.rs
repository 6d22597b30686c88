//! Compares what came with what is expected.

use std::fmt::Debug;

use regex_lite::Regex;
use tallylock::Error;

use crate::format::{Arguments, Call, Fault, Integer, Left};
use crate::stage::Found;

impl<W: Arguments, E> Call<W, E> {
    /// Compares a result with what is expected of it.
    pub(crate) fn judge<T: Debug + Clone>(
        &self,
        result: Result<T, Error>,
        is_so: impl FnOnce(T, &E) -> bool,
    ) -> Result<(), String> {
        match (result, &self.expect) {
            (Ok(got), Some(expect)) if is_so(got.clone(), expect) => Ok(()),
            (Ok(got), _) => Err(format!("it returned {got:?}")),
            (Err(error), _) => fault(&error, self.error.as_ref()),
        }
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
