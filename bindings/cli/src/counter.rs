//! `tallylock counter`: what is in a counter and beside it.

use std::ffi::OsStr;
use std::io::Write;
use std::time::Duration;

use serde::Serialize;
use tallylock::blocking::{Client, Counter};
use tallylock::{ClaimState, Reply};
use tallylock_core::key::{Key, Part};
use tallylock_core::scan::side_keys_of;

use crate::arguments::CounterCommand;
use crate::output::{json, remaining, remaining_ms, table, text};
use crate::question;
use crate::server::Server;
use crate::status::{Failure, Status};

/// Only adds give it to a counter, and none is made here.
const ANY_TTL: Duration = Duration::from_secs(60);

pub(crate) fn run(command: CounterCommand, output: &mut dyn Write) -> Result<Status, Failure> {
    match command {
        CounterCommand::Show { server, key, json } => show(&server, &key, json, output),
        CounterCommand::Drain {
            server,
            key,
            ttl,
            yes,
        } => drain(&server, &key, ttl, yes, output),
        CounterCommand::Claims { server, key, json } => claims(&server, &key, json, output),
    }
}

/// A counter and what is beside it, as JSON has it.
#[derive(Serialize)]
struct Shown {
    key: String,
    total: Option<String>,
    remaining_ms: Option<u64>,
    fence: Option<String>,
    guard: Option<String>,
    idempotency_keys: u64,
    open_claims: Sum,
    committed_claims: Sum,
    aborted_claims: Sum,
}

#[derive(Default)]
struct Total {
    count: u64,
    sum: i128,
}

#[derive(Serialize)]
struct Sum {
    count: u64,
    sum: String,
}

#[derive(Serialize)]
struct Claim {
    id: String,
    amount: String,
    remaining_ms: Option<u64>,
}

fn show(
    server: &Server,
    key: &OsStr,
    as_json: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    let key = Key::new(server.key(key)?)?;
    let client = server.client()?;
    let total = client.counter(key.as_bytes(), ANY_TTL)?.read()?;
    let ttl = match server.plain()?.ask(&[b"PTTL", key.as_bytes()])? {
        Reply::Integer(millis) => u64::try_from(millis).ok(),
        _ => None,
    };
    let shown = beside(&client, &key, total, ttl)?;
    if as_json {
        json(output, &shown)?;
    } else {
        shown.print(output)?;
    }
    Ok(if total.is_some() {
        Status::Fine
    } else {
        Status::Nothing
    })
}

fn drain(
    server: &Server,
    key: &OsStr,
    ttl: Duration,
    yes: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    if !yes {
        question::can_be_asked()?;
    }
    let counter = open(server, key, ttl)?;
    if !yes && !question::ask("Take all that is in the counter?")? {
        return Ok(Status::Nothing);
    }
    let Some(amount) = counter.drain()? else {
        writeln!(output, "there is no such counter")?;
        return Ok(Status::Nothing);
    };
    // The amount is nowhere else any more: where it cannot be written, it must be told all the same.
    writeln!(output, "{amount}")
        .and_then(|()| output.flush())
        .map_err(|error| {
            Failure::Told(
                Status::Output,
                format!(
                    "{amount} was taken from the counter, and the output cannot be written: {error}"
                ),
            )
        })?;
    Ok(Status::Fine)
}

fn claims(
    server: &Server,
    key: &OsStr,
    as_json: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    let open = open(server, key, ANY_TTL)?.claims()?;
    if as_json {
        let claims = open.iter().map(|claim| Claim {
            id: text(&claim.id),
            amount: claim.amount.to_string(),
            remaining_ms: remaining_ms(claim.remaining),
        });
        json(output, &claims.collect::<Vec<_>>())?;
    } else if !open.is_empty() {
        let rows = open.iter();
        table(
            output,
            [">AMOUNT", "REMAINING", "CLAIM"],
            rows.map(|claim| {
                [
                    claim.amount.to_string(),
                    remaining(claim.remaining),
                    text(&claim.id),
                ]
            }),
        )?;
    }
    Ok(Status::Fine)
}

fn open(server: &Server, key: &OsStr, ttl: Duration) -> Result<Counter, Failure> {
    let key = server.key(key)?;
    Ok(server.client()?.counter(key, ttl)?)
}

/// Looks for the side keys of a counter. A look may find one twice; of the few that a counter has, that is seldom.
fn beside(
    client: &Client,
    key: &Key,
    total: Option<i64>,
    ttl: Option<u64>,
) -> Result<Shown, Failure> {
    let (mut fence, mut guard, mut once) = (None, None, 0);
    let mut claims = [Total::default(), Total::default(), Total::default()];
    let mut scan = client.scan(side_keys_of(key));
    while let Some(page) = scan.next_page()? {
        for found in &page {
            if let Some(claim) = found.claim() {
                let state = match claim.state {
                    ClaimState::Open => 0,
                    ClaimState::Committed => 1,
                    ClaimState::Aborted => 2,
                };
                claims[state].count += 1;
                claims[state].sum += i128::from(claim.amount);
            } else if found.key == key.side(Part::Fence) {
                fence = found.text.as_deref().map(text);
            } else if found.key == key.side(Part::Guard) {
                guard = found.text.as_deref().map(text);
            } else if found
                .side()
                .is_some_and(|side| side.part.starts_with(b"once:"))
            {
                once += 1;
            }
        }
    }
    let [open_claims, committed_claims, aborted_claims] = claims.map(Sum::from);
    Ok(Shown {
        key: text(key.as_bytes()),
        total: total.map(|total| total.to_string()),
        remaining_ms: ttl,
        fence,
        guard,
        idempotency_keys: once,
        open_claims,
        committed_claims,
        aborted_claims,
    })
}

impl Shown {
    fn print(&self, output: &mut dyn Write) -> std::io::Result<()> {
        match &self.total {
            Some(total) => {
                writeln!(output, "total             {total}")?;
                writeln!(
                    output,
                    "remaining         {}",
                    remaining(self.remaining_ms.map(Duration::from_millis))
                )?;
            }
            None => writeln!(output, "there is no such counter")?,
        }
        for (name, claims) in [
            ("open claims     ", &self.open_claims),
            ("committed claims", &self.committed_claims),
            ("aborted claims  ", &self.aborted_claims),
        ] {
            if claims.count > 0 {
                writeln!(output, "{name}  {} of {} in all", claims.count, claims.sum)?;
            }
        }
        if self.idempotency_keys > 0 {
            writeln!(output, "idempotency keys  {}", self.idempotency_keys)?;
        }
        for (name, fence) in [
            ("fence           ", &self.fence),
            ("guard           ", &self.guard),
        ] {
            if let Some(fence) = fence {
                writeln!(output, "{name}  {fence}")?;
            }
        }
        Ok(())
    }
}

impl From<Total> for Sum {
    fn from(total: Total) -> Self {
        Self {
            count: total.count,
            sum: total.sum.to_string(),
        }
    }
}
