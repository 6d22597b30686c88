//! A script as a transaction, for servers and accounts that forbid scripts.
//!
//! First a look: WATCH the keys and read them. Then the script's twin decides on what was seen, and what it writes is
//! sent between MULTI and EXEC. A key that was touched, or has expired, in between makes EXEC fail, and nothing is done.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::{Code, Error};
use crate::script::{Invocation, number, text};
use crate::step::{Command, Reply};
use crate::twin::{self, Fault, Kind, Pttl, View};

/// What follows from a look at the keys.
pub(crate) enum Decision {
    /// Nothing is to be written; this is the script's reply.
    Answer(Reply),
    /// This is to be sent, and if EXEC succeeds this is the script's reply.
    Write(Vec<Command>, Reply),
}

/// The commands that watch and read what the script will see.
pub(crate) fn look(invocation: &Invocation) -> Vec<Command> {
    let mut watch = vec![word("WATCH")];
    watch.extend(invocation.keys.iter().cloned());
    // What an earlier look on this connection watches would make this one fail without need. An account that may not
    // MULTI would do what is to be written one by one, so that is tried first.
    let mut commands = vec![
        vec![word("UNWATCH")],
        vec![word("MULTI")],
        vec![word("DISCARD")],
        vec![word("HELLO")],
        watch,
        vec![word("TIME")],
    ];
    for key in &invocation.keys {
        commands.push(vec![word("GET"), key.clone()]);
        commands.push(vec![word("PTTL"), key.clone()]);
    }
    commands
}

/// Lets the script's twin decide on what [`look`] saw.
pub(crate) fn decide(invocation: &Invocation, replies: &[Reply]) -> Result<Decision, Error> {
    if !cfg!(feature = "transactions") {
        // Nobody asks: the look was refused by the transport. Without this, all twins would be linked for nothing.
        return Err(incomplete());
    }
    let [
        unwatched,
        begun,
        discarded,
        hello,
        watched,
        time,
        values @ ..,
    ] = replies
    else {
        return Err(incomplete());
    };
    for reply in [unwatched, begun, discarded] {
        refused(reply)?;
    }
    require_version(hello)?;
    for reply in [watched, time] {
        refused(reply)?;
    }
    let mut view = Recording::new(micros(time)?);
    for (key, seen) in invocation.keys.iter().zip(values.chunks_exact(2)) {
        view.see(key, &seen[0], &seen[1])?;
    }
    if view.keys.len() != invocation.keys.len() {
        return Err(incomplete());
    }
    let own =
        |words: &[Cow<'static, [u8]>]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    let answer = twin::run(
        invocation.script,
        &mut view,
        &own(&invocation.keys),
        &own(&invocation.arguments),
    );
    if let Reply::Error(text) = &answer {
        return Err(Error::from_reply(text));
    }
    if view.writes.is_empty() {
        return Ok(Decision::Answer(answer));
    }
    let mut commands = vec![vec![word("MULTI")]];
    commands.append(&mut view.writes);
    commands.push(vec![word("EXEC")]);
    // After EXEC, not inside: an account without channels would fail there after the rest was done.
    commands.append(&mut view.messages);
    Ok(Decision::Write(commands, answer))
}

/// Whether the transaction was executed; it was not if another touched a key in between.
pub(crate) fn was_executed(replies: &[Reply], commands: &[Command]) -> Result<bool, Error> {
    let exec = commands
        .iter()
        .position(|command| command[0].as_ref() == b"EXEC");
    let exec = exec.and_then(|place| Some((replies.get(..place)?, replies.get(place)?)));
    let Some((queued, exec)) = exec else {
        return Err(incomplete());
    };
    // A command that is refused while it is queued makes EXEC refuse all; it tells why, EXEC does not.
    queued.iter().try_for_each(refused)?;
    refused(exec)?;
    match exec {
        Reply::Nil => Ok(false),
        Reply::Array(done) => done.iter().try_for_each(refused).map(|()| true),
        other => Err(Error::unexpected(other)),
    }
}

/// Since this version an expired key makes EXEC fail.
const LEAST_VERSION: (u32, u32, u32) = (6, 0, 9);

fn require_version(hello: &Reply) -> Result<(), Error> {
    let version = match hello {
        Reply::Array(pairs) => pairs.chunks_exact(2).find_map(|pair| match pair {
            [Reply::Text(name), Reply::Text(version)] if name == b"version" => Some(version),
            _ => None,
        }),
        _ => None,
    };
    let numbers = version
        .map(|version| String::from_utf8_lossy(version).into_owned())
        .and_then(|version| {
            let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
            Some((
                numbers.next()??,
                numbers.next()??,
                numbers.next().flatten().unwrap_or(0),
            ))
        });
    match numbers {
        Some(numbers) if numbers >= LEAST_VERSION => Ok(()),
        _ => Err(Error::new(
            Code::Unsupported,
            "without scripts a server of version 6.0.9 or newer is needed, and an account that may call HELLO",
        )),
    }
}

fn refused(reply: &Reply) -> Result<(), Error> {
    match reply {
        Reply::Error(text) => Err(Error::from_reply(text)),
        _ => Ok(()),
    }
}

/// The error of a transport that has no transactions, where scripts are forbidden.
pub fn unavailable() -> Error {
    Error::new(
        Code::Unsupported,
        "scripts are forbidden, and this transport has no connection of its own for a transaction",
    )
}

fn incomplete() -> Error {
    Error::new(
        Code::Unsupported,
        "the transport gave fewer replies than commands",
    )
}

fn micros(time: &Reply) -> Result<i64, Error> {
    let Reply::Array(parts) = time else {
        return Err(Error::unexpected(time));
    };
    let number = |part: &Reply| match part {
        Reply::Text(text) => core::str::from_utf8(text).ok()?.parse::<i64>().ok(),
        _ => None,
    };
    match parts.as_slice() {
        [seconds, micros] => number(seconds)
            .zip(number(micros))
            .map(|(seconds, micros)| seconds * 1_000_000 + micros),
        _ => None,
    }
    .ok_or_else(|| Error::unexpected(time))
}

fn word(word: &'static str) -> Cow<'static, [u8]> {
    Cow::Borrowed(word.as_bytes())
}

/// Keys as a look saw them; what is written is recorded, and seen by what comes after.
struct Recording {
    time: i64,
    keys: BTreeMap<Vec<u8>, Seen>,
    writes: Vec<Command>,
    messages: Vec<Command>,
}

#[derive(Clone)]
struct Seen {
    value: Value,
    pttl: Pttl,
}

#[derive(Clone)]
enum Value {
    None,
    Text(Vec<u8>),
    Other,
}

impl Recording {
    fn new(time: i64) -> Self {
        Self {
            time,
            keys: BTreeMap::new(),
            writes: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn see(&mut self, key: &[u8], get: &Reply, pttl: &Reply) -> Result<(), Error> {
        let value = match get {
            Reply::Nil => Value::None,
            Reply::Text(text) => Value::Text(text.clone()),
            Reply::Error(text) if text.starts_with("WRONGTYPE") => Value::Other,
            other => return refused(other).and(Err(Error::unexpected(other))),
        };
        let pttl = Pttl::understand(pttl)?;
        self.keys.insert(key.to_vec(), Seen { value, pttl });
        Ok(())
    }

    fn write(&mut self, command: Command, key: &[u8], value: Value, pttl: Pttl) {
        self.writes.push(command);
        self.keys.insert(key.to_vec(), Seen { value, pttl });
    }

    fn seen(&self, key: &[u8]) -> Seen {
        self.keys.get(key).cloned().unwrap_or(Seen {
            value: Value::None,
            pttl: Pttl::Absent,
        })
    }
}

impl View for Recording {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        match self.seen(key).value {
            Value::None => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            Value::Other => Err(Fault::WrongType),
        }
    }

    fn kind(&mut self, key: &[u8]) -> Kind {
        match self.seen(key).value {
            Value::None => Kind::None,
            Value::Text(_) => Kind::String,
            Value::Other => Kind::Other,
        }
    }

    fn pttl(&mut self, key: &[u8]) -> Pttl {
        self.seen(key).pttl
    }

    fn time(&mut self) -> i64 {
        self.time
    }

    fn set(&mut self, key: &[u8], value: &[u8], ttl: Option<u64>) -> Result<(), Fault> {
        let seen = self.seen(key);
        let mut command = vec![word("SET"), text(key), text(value)];
        let pttl = match ttl {
            Some(ttl) => {
                command.extend([word("PX"), number(ttl)]);
                Pttl::Millis(ttl)
            }
            None if seen.pttl == Pttl::Absent => return Ok(()),
            None => {
                command.extend([word("XX"), word("KEEPTTL")]);
                seen.pttl
            }
        };
        self.write(command, key, Value::Text(value.to_vec()), pttl);
        Ok(())
    }

    fn create(&mut self, key: &[u8], value: &[u8], ttl: u64) -> bool {
        let is_new = self.seen(key).pttl == Pttl::Absent;
        if is_new {
            let command = vec![
                word("SET"),
                text(key),
                text(value),
                word("NX"),
                word("PX"),
                number(ttl),
            ];
            self.write(command, key, Value::Text(value.to_vec()), Pttl::Millis(ttl));
        }
        is_new
    }

    fn increment(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let present = match self.get(key)? {
            None => 0,
            Some(text) => twin::integer(&text)?,
        };
        let sum = present.checked_add(by).ok_or(Fault::Overflow)?;
        let pttl = match self.seen(key).pttl {
            Pttl::Absent => Pttl::Forever,
            pttl => pttl,
        };
        let command = vec![word("INCRBY"), text(key), number(by)];
        self.write(
            command,
            key,
            Value::Text(sum.to_string().into_bytes()),
            pttl,
        );
        Ok(sum)
    }

    fn expire(&mut self, key: &[u8], ttl: u64) {
        let seen = self.seen(key);
        if seen.pttl != Pttl::Absent {
            let command = vec![word("PEXPIRE"), text(key), number(ttl)];
            self.write(command, key, seen.value, Pttl::Millis(ttl));
        }
    }

    fn delete(&mut self, key: &[u8]) {
        self.write(vec![word("DEL"), text(key)], key, Value::None, Pttl::Absent);
    }

    fn publish(&mut self, channel: &[u8], message: &[u8]) {
        self.messages
            .push(vec![word("PUBLISH"), text(channel), text(message)]);
    }
}
