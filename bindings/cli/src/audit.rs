//! `tallylock audit`: what keys there are, and which have no TTL.

mod first;
mod report;
mod tally;

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tallylock::blocking::{Client, PlainConnection};
use tallylock::{Found, Options, Reply};

use crate::arguments::AuditArguments;
use crate::output::json;
use crate::status::{Failure, Status};
use crate::{duration, question};
use tally::Tally;

pub(crate) fn run(arguments: &AuditArguments, output: &mut dyn Write) -> Result<Status, Failure> {
    let asks = arguments.repair && !arguments.yes;
    if asks {
        question::can_be_asked()?;
    }
    let options = arguments.server.options()?;
    let client = Client::connect_with(options.clone())?;
    let look = Look {
        client: &client,
        pattern: arguments
            .pattern
            .as_ref()
            .map_or(b"*", |pattern| pattern.as_encoded_bytes()),
        total: total(&options),
    };
    let mut repair = arguments
        .ttl
        .map(|ttl| Repair::new(&client, ttl, arguments.rate));

    let mut tally = Tally::new(arguments.near);
    match &mut repair {
        Some(repair) if !asks => look.at_each(|found| {
            tally.count(found);
            repair.heal(found)
        })?,
        _ => look.at_each(|found| {
            tally.count(found);
            Ok(())
        })?,
    }
    let without_ttl = tally.without_ttl();
    let mut answer = Status::Fine;
    if let Some(repair) = repair.as_mut().filter(|_| asks && without_ttl > 0) {
        let question = format!(
            "Give {without_ttl} keys a TTL of {}?",
            duration::shown(repair.ttl)
        );
        if question::ask(&question)? {
            look.at_each(|found| repair.heal(found))?;
        } else {
            answer = Status::Nothing;
        }
    }

    let repaired = repair.map(|repair| repair.healed);
    let report = report::Report::new(&tally, repaired);
    if arguments.json {
        json(output, &report)?;
    } else {
        report.print(output)?;
    }
    Ok(answer)
}

/// A look through the keys that match.
struct Look<'a> {
    client: &'a Client,
    pattern: &'a [u8],
    /// How many keys the server has, if it says so.
    total: Option<u64>,
}

impl Look<'_> {
    /// Shows each key that is found; at no time more than a page of them is in memory.
    fn at_each(&self, mut act: impl FnMut(&Found) -> Result<(), Failure>) -> Result<(), Failure> {
        let bar = self.bar();
        let mut scan = self.client.scan(self.pattern);
        while let Some(page) = scan.next_page()? {
            for found in &page {
                act(found)?;
            }
            bar.inc(page.len() as u64);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Nothing where standard error is no terminal. How far a look for a pattern is cannot be told: only what matches comes
    /// here.
    fn bar(&self) -> ProgressBar {
        let (length, style) = match self.total {
            Some(total) if self.pattern == b"*" => {
                (Some(total), "{bar:40} {pos} of {len} keys, {eta} left")
            }
            Some(_) => (
                self.total,
                "{spinner} {pos} keys match, {len} are on the server",
            ),
            None => (None, "{spinner} {pos} keys"),
        };
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        bar.with_style(
            ProgressStyle::with_template(style)
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        )
    }
}

/// Gives the keys without a TTL one, no faster than it may.
struct Repair<'a> {
    client: &'a Client,
    ttl: Duration,
    pause: Duration,
    next: Instant,
    healed: u64,
}

impl<'a> Repair<'a> {
    fn new(client: &'a Client, ttl: Duration, rate: u32) -> Self {
        Self {
            client,
            ttl,
            pause: Duration::from_secs(1) / rate,
            next: Instant::now(),
            healed: 0,
        }
    }

    fn heal(&mut self, found: &Found) -> Result<(), Failure> {
        if found.ttl.is_some() {
            return Ok(());
        }
        thread::sleep(self.next.saturating_duration_since(Instant::now()));
        self.next = self.next.max(Instant::now()) + self.pause;
        // The server decides once more: a key that has got a TTL meanwhile keeps it.
        let healed = self.client.heal(&found.key, self.ttl).map_err(|error| {
            Failure::from(error).after(format!("{} keys were given a TTL before that", self.healed))
        })?;
        self.healed += u64::from(healed);
        Ok(())
    }
}

/// How many keys there are. Only the progress bar needs it: whoever may not ask goes without.
fn total(options: &Options) -> Option<u64> {
    match PlainConnection::open(options).ok()?.ask(&["DBSIZE"]) {
        Ok(Reply::Integer(keys)) => u64::try_from(keys).ok(),
        _ => None,
    }
}
