//! `tallylock lock`: who holds which lock, and taking one away.

mod steal;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::time::Duration;

use serde::Serialize;
use tallylock::blocking::PlainConnection;
use tallylock::{Code, Error, Found, Holder, Reply};
use tallylock_core::key::{Key, Part};
use tallylock_core::token::Token;

use crate::arguments::LockCommand;
use crate::output::{json, remaining, remaining_ms, table, text};
use crate::server::Server;
use crate::status::{Failure, Status};

pub(crate) fn run(command: LockCommand, output: &mut dyn Write) -> Result<Status, Failure> {
    match command {
        LockCommand::List {
            server,
            pattern,
            json,
        } => list(&server, &pattern, json, output),
        LockCommand::Show {
            server,
            key,
            token,
            json,
        } => show(&server, &key, token, json, output),
        LockCommand::Steal {
            server,
            key,
            expect,
            reason,
            yes,
        } => steal::run(&server, &key, &expect, &reason, yes, output),
    }
}

/// Only acquires give it to a lock, and there are none here; a fence that has more time keeps it.
const ANY_TTL: Duration = Duration::from_secs(60);

/// A lock that is held, as JSON has it.
#[derive(Serialize)]
struct Held {
    key: String,
    /// `tallylock`, or `other` for a value that is no token of ours.
    token: &'static str,
    holder: Option<String>,
    remaining_ms: Option<u64>,
    fence: Option<String>,
    /// The token itself, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

fn list(
    server: &Server,
    pattern: &OsStr,
    as_json: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    let client = server.client()?;
    let mut plain = server.plain()?;
    let mut scan = client.scan(pattern.as_encoded_bytes());
    // In order, and each once: a look may find a key twice.
    let mut held = BTreeMap::new();
    while let Some(page) = scan.next_page()? {
        let locks: Vec<Key> = page.iter().filter_map(lock_of).collect();
        for (lock, seen) in locks.iter().zip(look(&mut plain, &locks)?) {
            match seen {
                Ok(seen) => held.extend(seen.map(|seen| (lock.clone(), seen))),
                // What is no text is no lock, whatever lies beside it.
                Err(error) if error.code() == Code::WrongType => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    if as_json {
        json(output, &held.into_values().collect::<Vec<_>>())?;
    } else if !held.is_empty() {
        let rows = held.values().map(|held| {
            [
                held.key.clone(),
                held.who(),
                held.remaining(),
                held.fence.clone().unwrap_or_default(),
            ]
        });
        table(output, ["LOCK", "HOLDER", "REMAINING", ">FENCE"], rows)?;
    }
    Ok(Status::Fine)
}

fn show(
    server: &Server,
    key: &OsStr,
    with_token: bool,
    as_json: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    let key = server.key(key)?;
    let lock = server.client()?.lock(key, ANY_TTL)?;
    let held = lock
        .inspect()?
        .map(|holder| Held::by(key, &holder, with_token));
    if as_json {
        json(output, &held)?;
    }
    let Some(held) = held else {
        if !as_json {
            writeln!(output, "nobody holds it")?;
        }
        return Ok(Status::Nothing);
    };
    if !as_json {
        writeln!(output, "holder     {}", held.who())?;
        writeln!(output, "remaining  {}", held.remaining())?;
        writeln!(
            output,
            "fence      {}",
            held.fence.as_deref().unwrap_or("none")
        )?;
        if let Some(token) = &held.expect {
            writeln!(output, "token      {token}")?;
        }
    }
    Ok(Status::Fine)
}

/// The lock that a key is, or beside which it is the fence.
fn lock_of(found: &Found) -> Option<Key> {
    let name = match found.side() {
        Some(side) => (side.part == b"fence").then_some(side.owner)?,
        None => found
            .text
            .as_deref()
            .and_then(Token::read)
            .map(|_| found.key.as_slice())?,
    };
    Key::new(name).ok()
}

/// Asks the server about locks.
fn look(plain: &mut PlainConnection, locks: &[Key]) -> Result<Vec<Seen>, Error> {
    let questions = locks.iter().flat_map(|lock| {
        [
            vec![b"GET".to_vec(), lock.as_bytes().to_vec()],
            vec![b"PTTL".to_vec(), lock.as_bytes().to_vec()],
            vec![b"GET".to_vec(), lock.side(Part::Fence)],
        ]
    });
    let replies = plain.ask_all(questions)?;
    let answers = locks.iter().zip(replies.chunks_exact(3));
    Ok(answers
        .map(|(lock, answers)| seen(lock, answers).map_err(|error| error.about(lock.as_bytes())))
        .collect())
}

/// A lock that is held, nothing for one that nobody holds, or why it cannot be told.
type Seen = Result<Option<Held>, Error>;

fn seen(lock: &Key, answers: &[Reply]) -> Seen {
    let [value, ttl, fence] = answers else {
        return Ok(None);
    };
    let value = match value {
        Reply::Text(value) => value,
        Reply::Error(refused) => return Err(Error::from_reply(refused)),
        _ => return Ok(None),
    };
    let remaining_ms = match ttl {
        Reply::Integer(millis) => u64::try_from(*millis).ok(),
        Reply::Error(refused) => return Err(Error::from_reply(refused)),
        _ => None,
    };
    let fence = match fence {
        Reply::Text(fence) => Some(text(fence)),
        Reply::Error(refused) => match Error::from_reply(refused) {
            // That spoils the next acquire, but the lock is held.
            error if error.code() == Code::WrongType => None,
            error => return Err(error),
        },
        _ => None,
    };
    let token = Token::read(value);
    Ok(Some(Held {
        key: text(lock.as_bytes()),
        token: if token.is_some() {
            "tallylock"
        } else {
            "other"
        },
        holder: token.as_ref().and_then(Token::label).map(str::to_owned),
        remaining_ms,
        fence,
        expect: None,
    }))
}

impl Held {
    fn by(key: &[u8], holder: &Holder, with_token: bool) -> Self {
        Self {
            key: text(key),
            token: if holder.is_ours() {
                "tallylock"
            } else {
                "other"
            },
            holder: holder.label(),
            remaining_ms: remaining_ms(holder.remaining),
            fence: holder.fence.map(|fence| fence.to_string()),
            expect: with_token.then(|| text(&holder.token)),
        }
    }

    fn who(&self) -> String {
        match (&self.holder, self.token) {
            (Some(holder), _) => holder.clone(),
            (None, "other") => "(the token is of another library)".to_owned(),
            (None, _) => "(the token has no label)".to_owned(),
        }
    }

    fn remaining(&self) -> String {
        remaining(self.remaining_ms.map(Duration::from_millis))
    }
}
