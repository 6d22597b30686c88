//! What an audit says.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::tally::{Claims, EndingClaim, Keys, Kind, Kinds, Largest, Tally};
use crate::output::{remaining, table, text};
use crate::{duration, output};

/// The document of `audit --json`. Amounts are texts: a number of JSON is not exact in every reader.
#[derive(Serialize)]
pub(super) struct Report {
    keys: u64,
    without_ttl: u64,
    /// How many keys were given a TTL; nothing if that was not asked for.
    repaired: Option<u64>,
    kinds: BTreeMap<&'static str, Count>,
    prefixes: Vec<Prefix>,
    no_prefix: Group,
    other_prefixes: Group,
    largest_counters: Vec<Counter>,
    open_claims: Sum,
    ending_claims: Ending,
}

#[derive(Serialize)]
struct Count {
    keys: u64,
    without_ttl: u64,
}

#[derive(Serialize)]
struct Prefix {
    prefix: String,
    #[serde(flatten)]
    group: Group,
}

#[derive(Serialize)]
struct Group {
    keys: u64,
    without_ttl: u64,
    kinds: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Counter {
    key: String,
    amount: String,
    remaining_ms: Option<u64>,
}

#[derive(Serialize)]
struct Sum {
    count: u64,
    sum: String,
}

#[derive(Serialize)]
struct Ending {
    within_ms: u64,
    #[serde(flatten)]
    sum: Sum,
    first: Vec<Claim>,
}

#[derive(Serialize)]
struct Claim {
    counter: String,
    id: String,
    amount: String,
    remaining_ms: Option<u64>,
}

impl Report {
    pub(super) fn new(tally: &Tally, repaired: Option<u64>) -> Self {
        let sum = tally.total.sum();
        let mut prefixes: Vec<Prefix> = tally
            .prefixes
            .iter()
            .map(|(prefix, kinds)| Prefix {
                prefix: text(prefix),
                group: Group::new(kinds),
            })
            .collect();
        prefixes.sort_by_key(|prefix| Reverse(prefix.group.keys));
        Self {
            keys: sum.all,
            without_ttl: sum.without_ttl,
            repaired,
            kinds: Kind::ALL
                .into_iter()
                .map(|kind| (kind.name(), tally.total.of(kind).into()))
                .collect(),
            prefixes,
            no_prefix: Group::new(&tally.no_prefix),
            other_prefixes: Group::new(&tally.other_prefixes),
            largest_counters: tally.largest.iter().map(Into::into).collect(),
            open_claims: tally.open.into(),
            ending_claims: Ending {
                within_ms: output::remaining_ms(Some(tally.near)).unwrap_or(u64::MAX),
                sum: tally.ending.into(),
                first: tally.ending_first.iter().map(Into::into).collect(),
            },
        }
    }

    pub(super) fn print(&self, output: &mut dyn Write) -> io::Result<()> {
        writeln!(
            output,
            "{} keys, {} of them without a TTL",
            self.keys, self.without_ttl
        )?;
        if let Some(repaired) = self.repaired {
            writeln!(output, "{repaired} keys were given a TTL")?;
        }
        if self.keys == 0 {
            return Ok(());
        }
        writeln!(output)?;
        self.print_groups(output)?;
        if !self.largest_counters.is_empty() {
            writeln!(output, "\nThe largest counters")?;
            let rows = self.largest_counters.iter();
            table(
                output,
                [">AMOUNT", "REMAINING", "COUNTER"],
                rows.map(|row| [row.amount.clone(), left(row.remaining_ms), row.key.clone()]),
            )?;
        }
        let (open, ending) = (&self.open_claims, &self.ending_claims);
        writeln!(
            output,
            "\nOpen claims: {}, of {} in all",
            open.count, open.sum
        )?;
        if ending.sum.count > 0 {
            let within = duration::shown(Duration::from_millis(ending.within_ms));
            writeln!(
                output,
                "With less than {within} left: {}, of {}; their amounts are lost then",
                ending.sum.count, ending.sum.sum
            )?;
            let rows = ending.first.iter();
            table(
                output,
                [">AMOUNT", "REMAINING", "COUNTER", "CLAIM"],
                rows.map(|row| {
                    [
                        row.amount.clone(),
                        left(row.remaining_ms),
                        row.counter.clone(),
                        row.id.clone(),
                    ]
                }),
            )?;
        }
        Ok(())
    }

    fn print_groups(&self, output: &mut dyn Write) -> io::Result<()> {
        let row = |name: &str, group: &Group| {
            let mut row = vec![
                name.to_owned(),
                group.keys.to_string(),
                group.without_ttl.to_string(),
            ];
            row.extend(Kind::ALL.map(|kind| group.kinds[kind.name()].to_string()));
            <[String; 11]>::try_from(row)
                .unwrap_or_else(|_| unreachable!("three columns and one for each kind"))
        };
        let mut rows: Vec<_> = self
            .prefixes
            .iter()
            .map(|prefix| row(&prefix.prefix, &prefix.group))
            .collect();
        for (name, group) in [
            ("(no prefix)", &self.no_prefix),
            ("(other prefixes)", &self.other_prefixes),
        ] {
            if group.keys > 0 {
                rows.push(row(name, group));
            }
        }
        let names = [
            "PREFIX",
            ">KEYS",
            ">WITHOUT TTL",
            ">COUNTERS",
            ">LOCKS",
            ">TEXTS",
            ">OTHER TYPES",
            ">FENCES",
            ">ONCE",
            ">CLAIMS",
            ">GUARDS",
        ];
        table(output, names, rows)
    }
}

impl Group {
    fn new(kinds: &Kinds) -> Self {
        let sum = kinds.sum();
        Self {
            keys: sum.all,
            without_ttl: sum.without_ttl,
            kinds: Kind::ALL
                .into_iter()
                .map(|kind| (kind.name(), kinds.of(kind).all))
                .collect(),
        }
    }
}

impl From<Keys> for Count {
    fn from(keys: Keys) -> Self {
        Self {
            keys: keys.all,
            without_ttl: keys.without_ttl,
        }
    }
}

impl From<Claims> for Sum {
    fn from(claims: Claims) -> Self {
        Self {
            count: claims.count,
            sum: claims.sum.to_string(),
        }
    }
}

impl From<&Largest> for Counter {
    fn from(counter: &Largest) -> Self {
        Self {
            key: text(&counter.key),
            amount: counter.amount.to_string(),
            remaining_ms: counter.ttl,
        }
    }
}

impl From<&EndingClaim> for Claim {
    fn from(claim: &EndingClaim) -> Self {
        Self {
            counter: text(&claim.counter),
            id: text(&claim.id),
            amount: claim.amount.to_string(),
            remaining_ms: claim.ttl,
        }
    }
}

fn left(millis: Option<u64>) -> String {
    remaining(millis.map(Duration::from_millis))
}
