//! What an audit counts. Whatever the number of keys, this takes no more memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use tallylock::{ClaimState, Found};
use tallylock_core::token::Token;

use super::first::First;

/// How many prefixes are counted by themselves.
const MOST_PREFIXES: usize = 1_000;

/// The longest prefix that is counted by itself, in bytes.
const LONGEST_PREFIX: usize = 256;

/// How many of the largest counters, and of the claims that end first, are kept.
const MOST_LISTED: usize = 10;

/// What a key is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// A whole number of 64 bits.
    Counter,
    /// A token of tallylock.
    Lock,
    /// Another text.
    Text,
    /// A list, a hash, or what else is no text.
    OtherType,
    Fence,
    Once,
    Claim,
    Guard,
}

/// How many keys there are, and how many of them have no TTL.
#[derive(Clone, Copy, Default)]
pub(super) struct Keys {
    pub(super) all: u64,
    pub(super) without_ttl: u64,
}

/// Keys by what they are.
#[derive(Clone, Copy, Default)]
pub(super) struct Kinds([Keys; Kind::ALL.len()]);

/// Claims and what they took. A sum of amounts may be larger than each.
#[derive(Clone, Copy, Default)]
pub(super) struct Claims {
    pub(super) count: u64,
    pub(super) sum: i128,
}

/// A counter that was found.
pub(super) struct Largest {
    pub(super) key: Vec<u8>,
    pub(super) amount: i64,
    pub(super) ttl: Option<u64>,
}

/// An open claim that ends soon.
pub(super) struct EndingClaim {
    pub(super) key: Vec<u8>,
    pub(super) counter: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) amount: i64,
    pub(super) ttl: Option<u64>,
}

pub(super) struct Tally {
    pub(super) near: Duration,
    pub(super) total: Kinds,
    pub(super) prefixes: BTreeMap<Vec<u8>, Kinds>,
    /// Keys without a `:` before which a prefix could stand.
    pub(super) no_prefix: Kinds,
    /// Keys of prefixes beyond those that are counted by themselves.
    pub(super) other_prefixes: Kinds,
    pub(super) largest: First<(Reverse<i64>, Vec<u8>), Largest>,
    pub(super) open: Claims,
    pub(super) ending: Claims,
    pub(super) ending_first: First<(u64, Vec<u8>), EndingClaim>,
}

impl Tally {
    /// Counts nothing yet; an open claim with less than `near` left is ending.
    pub(super) fn new(near: Duration) -> Self {
        Self {
            near,
            total: Kinds::default(),
            prefixes: BTreeMap::new(),
            no_prefix: Kinds::default(),
            other_prefixes: Kinds::default(),
            largest: First::new(MOST_LISTED),
            open: Claims::default(),
            ending: Claims::default(),
            ending_first: First::new(MOST_LISTED),
        }
    }

    pub(super) fn count(&mut self, found: &Found) {
        let kind = Kind::of(found);
        self.total.count(kind, found);
        self.group(found).count(kind, found);
        if let Some(amount) = found.counter() {
            self.largest.offer(
                (Reverse(amount), found.key.clone()),
                |kept| kept.key == found.key,
                || Largest {
                    key: found.key.clone(),
                    amount,
                    ttl: found.ttl,
                },
            );
        }
        self.count_claim(found);
    }

    pub(super) fn without_ttl(&self) -> u64 {
        self.total.sum().without_ttl
    }

    fn count_claim(&mut self, found: &Found) {
        let Some(claim) = found
            .claim()
            .filter(|claim| claim.state == ClaimState::Open)
        else {
            return;
        };
        self.open.count(claim.amount);
        let Some(left) = found
            .ttl
            .filter(|left| Duration::from_millis(*left) < self.near)
        else {
            return;
        };
        self.ending.count(claim.amount);
        self.ending_first.offer(
            (left, found.key.clone()),
            |kept| kept.key == found.key,
            || EndingClaim {
                key: found.key.clone(),
                counter: claim.counter.to_vec(),
                id: claim.id.to_vec(),
                amount: claim.amount,
                ttl: found.ttl,
            },
        );
    }

    /// The keys among which this one is counted: a side key among those of its owner.
    fn group(&mut self, found: &Found) -> &mut Kinds {
        let owner = found.side().map_or(found.key.as_slice(), |side| side.owner);
        let Some(end) = owner.iter().position(|byte| *byte == b':') else {
            return &mut self.no_prefix;
        };
        let prefix = &owner[..end];
        if !self.prefixes.contains_key(prefix) {
            if self.prefixes.len() == MOST_PREFIXES || prefix.len() > LONGEST_PREFIX {
                return &mut self.other_prefixes;
            }
            self.prefixes.insert(prefix.to_vec(), Kinds::default());
        }
        self.prefixes
            .get_mut(prefix)
            .unwrap_or_else(|| unreachable!("it was put there if it was not"))
    }
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Counter,
        Self::Lock,
        Self::Text,
        Self::OtherType,
        Self::Fence,
        Self::Once,
        Self::Claim,
        Self::Guard,
    ];

    fn of(found: &Found) -> Self {
        if let Some(side) = found.side() {
            return match side.part {
                part if part.starts_with(b"once:") => Self::Once,
                part if part.starts_with(b"claim:") => Self::Claim,
                b"guard" => Self::Guard,
                _ => Self::Fence,
            };
        }
        match &found.text {
            None => Self::OtherType,
            Some(_) if found.counter().is_some() => Self::Counter,
            Some(text) if Token::read(text).is_some() => Self::Lock,
            Some(_) => Self::Text,
        }
    }

    /// Its name in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Lock => "lock",
            Self::Text => "text",
            Self::OtherType => "other_type",
            Self::Fence => "fence",
            Self::Once => "once",
            Self::Claim => "claim",
            Self::Guard => "guard",
        }
    }
}

impl Kinds {
    fn count(&mut self, kind: Kind, found: &Found) {
        let keys = &mut self.0[kind as usize];
        keys.all += 1;
        keys.without_ttl += u64::from(found.ttl.is_none());
    }

    pub(super) fn of(&self, kind: Kind) -> Keys {
        self.0[kind as usize]
    }

    pub(super) fn sum(&self) -> Keys {
        self.0.iter().fold(Keys::default(), |sum, keys| Keys {
            all: sum.all + keys.all,
            without_ttl: sum.without_ttl + keys.without_ttl,
        })
    }
}

impl Claims {
    fn count(&mut self, amount: i64) {
        self.count += 1;
        self.sum += i128::from(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(key: &str, text: Option<&str>, ttl: Option<u64>) -> Found {
        Found {
            key: key.into(),
            text: text.map(Into::into),
            ttl,
        }
    }

    #[test]
    fn the_thousand_and_first_prefix_is_one_of_the_others() {
        let mut tally = Tally::new(Duration::from_secs(60));
        for number in 0..1_001 {
            tally.count(&found(&format!("{number}:x"), Some("1"), Some(1)));
        }
        tally.count(&found("7:y", Some("1"), Some(1)));
        tally.count(&found(&format!("{}:x", "p".repeat(300)), Some("1"), None));
        assert_eq!(tally.prefixes.len(), MOST_PREFIXES);
        assert_eq!(tally.prefixes[b"7".as_slice()].sum().all, 2);
        assert_eq!(tally.other_prefixes.sum().all, 2);
        assert_eq!((tally.total.sum().all, tally.without_ttl()), (1_003, 1));
    }

    #[test]
    fn a_sum_of_claims_is_exact_beyond_64_bits() {
        let mut tally = Tally::new(Duration::from_secs(60));
        for id in ["a", "b"] {
            let claim = format!("open {}", i64::MAX);
            tally.count(&found(
                &format!("c{{c}}:tlu1:claim:{id}"),
                Some(&claim),
                Some(59_999),
            ));
        }
        tally.count(&found("c{c}:tlu1:claim:c", Some("open 1"), Some(60_000)));
        tally.count(&found("c{c}:tlu1:claim:d", Some("committed 1"), Some(1)));
        assert_eq!(
            (tally.open.count, tally.open.sum),
            (3, 2 * i128::from(i64::MAX) + 1)
        );
        assert_eq!(
            (tally.ending.count, tally.ending.sum),
            (2, 2 * i128::from(i64::MAX))
        );
        assert_eq!(tally.no_prefix.of(Kind::Claim).all, 4);
    }
}
