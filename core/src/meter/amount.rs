//! How much there is of something, for people.

use core::fmt;

use super::segment::Entry;
use crate::error::Error;

/// So many units of so many counters.
#[derive(Default)]
pub(super) struct Amount {
    pub(super) counters: u64,
    pub(super) units: u64,
}

impl<'a> FromIterator<&'a Entry> for Amount {
    fn from_iter<I: IntoIterator<Item = &'a Entry>>(entries: I) -> Self {
        entries
            .into_iter()
            .fold(Self::default(), |sum, entry| Self {
                counters: sum.counters + 1,
                units: sum.units.saturating_add(entry.amount.unsigned_abs()),
            })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} units over {} counters", self.units, self.counters)
    }
}

/// The same error, about what it has led to.
pub(super) fn because(what: &str, error: &Error) -> Error {
    let key = error.key().map(|key| format!(" (key {key:?})"));
    let detail = format!("{what}: {}{}", error.detail(), key.unwrap_or_default());
    Error::new(error.code(), detail)
}
