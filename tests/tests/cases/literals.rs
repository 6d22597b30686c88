//! Texts, bytes and whole numbers as the files of cases write them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A whole number as text, which may be beyond 64 bits.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Integer(pub(crate) String);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let plain = !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if text == "0" || plain {
            return Ok(Self(text));
        }
        Err(D::Error::custom(format!("{text:?} is no whole number")))
    }
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(crate) enum Text {
    Plain(String),
    Repeated(Repeated),
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repeated {
    repeat: String,
    times: usize,
}

impl Text {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Plain(text) => text.clone().into_bytes(),
            Self::Repeated(Repeated { repeat, times }) => repeat.repeat(*times).into_bytes(),
        }
    }
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(Text),
    Hex(Hex),
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hex {
    #[serde(deserialize_with = "pairs_of_digits")]
    hex: Vec<u8>,
}

impl Bytes {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.bytes(),
            Self::Hex(Hex { hex }) => hex.clone(),
        }
    }
}

fn pairs_of_digits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let pair = |pair: &[u8]| {
        std::str::from_utf8(pair)
            .ok()
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes
        .filter(|_| text.len() % 2 == 0)
        .ok_or_else(|| D::Error::custom(format!("{text:?} is no hex")))
}
