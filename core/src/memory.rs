//! A server in memory that runs the twins of the scripts, for tests: ours and those of users (`memory://`).

mod glob;

pub use glob::matches;

use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet};

use crate::counter;
use crate::script::Script;
use crate::step::{Call, Command, Outcome, Reply, Undelivered};
use crate::time::{Instant, Ttl};
use crate::twin::{self, Fault, Kind, Pttl, View};

/// A server in memory. Its clock stands still until it is advanced.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Memory {
    now: u64,
    keys: BTreeMap<Vec<u8>, Entry>,
    known: BTreeSet<Script>,
    lose_replies: u32,
    published: Published,
}

/// The channels on which the last call has published something. It is no part of a server's state: two that differ in nothing
/// else are the same.
#[derive(Clone, Debug, Default)]
struct Published(Vec<Vec<u8>>);

impl PartialEq for Published {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Published {}

impl Hash for Published {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What a key of a [`Memory`] holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// Its text, or nothing for a key of another type.
    pub text: Option<Vec<u8>>,
    /// When it expires, on the memory's clock; nothing for a key without a TTL.
    expires_at: Option<u64>,
}

/// The memory's clock starts here, in milliseconds since 1970, so that fences look like those of a server.
const BEGINNING: u64 = 1_700_000_000_000;

impl Memory {
    /// The time on the memory's clock.
    pub const fn now(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    /// Lets `millis` milliseconds pass.
    pub fn advance(&mut self, millis: u64) {
        self.now = self.now.saturating_add(millis);
        let now = self.now;
        // Like on a server, a key whose remaining time is 0 is still alive.
        self.keys
            .retain(|_, entry| entry.expires_at.is_none_or(|at| at >= now));
    }

    /// Every live key with its text (nothing for another type) and its remaining milliseconds (nothing without a TTL).
    pub fn keys(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>, Option<u64>)> {
        self.keys.iter().map(|(key, entry)| {
            (
                key.as_slice(),
                entry.text.as_deref(),
                entry.expires_at.map(|at| at - self.now),
            )
        })
    }

    /// Puts a text there as another program would; without a TTL if none is given.
    pub fn put(&mut self, key: &[u8], text: &[u8], ttl: Option<Ttl>) {
        let expires_at = ttl.map(|ttl| self.now + ttl.as_millis());
        self.keys.insert(
            key.to_vec(),
            Entry {
                text: Some(text.to_vec()),
                expires_at,
            },
        );
    }

    /// Puts a key of another type there as another program would; without a TTL if none is given.
    pub fn put_other_type(&mut self, key: &[u8], ttl: Option<Ttl>) {
        let expires_at = ttl.map(|ttl| self.now + ttl.as_millis());
        self.keys.insert(
            key.to_vec(),
            Entry {
                text: None,
                expires_at,
            },
        );
    }

    /// Removes a key as another program would.
    pub fn remove(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    /// Forgets which scripts it was sent, as a server does when it restarts.
    pub fn forget_scripts(&mut self) {
        self.known.clear();
    }

    /// Executes the next call, but loses its reply.
    pub fn lose_next_reply(&mut self) {
        self.lose_replies += 1;
    }

    /// The channels on which the last call has published something.
    pub fn published(&self) -> &[Vec<u8>] {
        &self.published.0
    }

    /// Executes a call and gives its outcome.
    pub fn execute(&mut self, call: &Call) -> Outcome {
        self.published.0.clear();
        let replies = call
            .commands
            .iter()
            .map(|command| self.reply(command))
            .collect();
        if self.lose_replies > 0 {
            self.lose_replies -= 1;
            return Err(Undelivered::MaybeSent(
                "the reply was lost on purpose".into(),
            ));
        }
        Ok(replies)
    }

    fn reply(&mut self, command: &Command) -> Reply {
        if let Some(reply) = self.read(command) {
            return reply;
        }
        let [name, script, count, rest @ ..] = command.as_slice() else {
            return Reply::Error("ERR unknown command".into());
        };
        let (by_sha, by_source) = (name.as_ref() == b"EVALSHA", name.as_ref() == b"EVAL");
        let wanted = Script::ALL.into_iter().find(|candidate| {
            by_sha && candidate.sha().as_bytes() == script.as_ref()
                || by_source && candidate.source().as_bytes() == script.as_ref()
        });
        let count = core::str::from_utf8(count)
            .ok()
            .and_then(|count| count.parse::<usize>().ok());
        match (wanted, count) {
            (Some(script), Some(count)) if count <= rest.len() => {
                if by_sha && !self.known.contains(&script) {
                    return Reply::Error("NOSCRIPT No matching script. Please use EVAL.".into());
                }
                self.known.insert(script);
                let (keys, arguments) = rest.split_at(count);
                let own = |words: &[crate::step::Argument]| {
                    words.iter().map(|word| word.to_vec()).collect::<Vec<_>>()
                };
                twin::run(script, self, &own(keys), &own(arguments))
            }
            _ => Reply::Error("ERR unknown command".into()),
        }
    }
}

impl Memory {
    /// What a scan asks; all keys are on one page.
    fn read(&mut self, command: &Command) -> Option<Reply> {
        let words: Vec<&[u8]> = command.iter().map(AsRef::as_ref).collect();
        Some(match words.as_slice() {
            [b"SCAN", _, b"MATCH", pattern, ..] => {
                let keys = self.keys.keys().filter(|key| glob::matches(pattern, key));
                let keys = keys.map(|key| Reply::Text(key.clone())).collect();
                Reply::Array(vec![twin::text("0"), Reply::Array(keys)])
            }
            [b"TYPE", key] => twin::text(match self.kind(key) {
                Kind::None => "none",
                Kind::String => "string",
                Kind::Other => "list",
            }),
            [b"PTTL", key] => Reply::Integer(match self.pttl(key) {
                Pttl::Absent => -2,
                Pttl::Forever => -1,
                Pttl::Millis(millis) => i64::try_from(millis).unwrap_or(i64::MAX),
            }),
            [b"GET", key] => match self.get(key) {
                Ok(text) => text.map_or(Reply::Nil, Reply::Text),
                Err(fault) => Reply::Error(fault.as_str().into()),
            },
            _ => return None,
        })
    }
}

impl View for Memory {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(Entry {
                text: Some(text), ..
            }) => Ok(Some(text.clone())),
            Some(Entry { text: None, .. }) => Err(Fault::WrongType),
        }
    }

    fn kind(&mut self, key: &[u8]) -> Kind {
        match self.keys.get(key) {
            None => Kind::None,
            Some(Entry { text: Some(_), .. }) => Kind::String,
            Some(Entry { text: None, .. }) => Kind::Other,
        }
    }

    fn pttl(&mut self, key: &[u8]) -> Pttl {
        match self.keys.get(key) {
            None => Pttl::Absent,
            Some(Entry {
                expires_at: None, ..
            }) => Pttl::Forever,
            Some(Entry {
                expires_at: Some(at),
                ..
            }) => Pttl::Millis(at - self.now),
        }
    }

    fn time(&mut self) -> i64 {
        i64::try_from((BEGINNING + self.now).saturating_mul(1000)).unwrap_or(i64::MAX)
    }

    fn set(&mut self, key: &[u8], value: &[u8], ttl: Option<u64>) -> Result<(), Fault> {
        let expires_at = match ttl {
            Some(ttl) => Some(self.now + ttl),
            None => match self.keys.get(key) {
                // XX: what is not there is not made.
                None => return Ok(()),
                Some(entry) => entry.expires_at,
            },
        };
        self.keys.insert(
            key.to_vec(),
            Entry {
                text: Some(value.to_vec()),
                expires_at,
            },
        );
        Ok(())
    }

    fn create(&mut self, key: &[u8], value: &[u8], ttl: u64) -> bool {
        let is_new = !self.keys.contains_key(key);
        if is_new {
            let entry = Entry {
                text: Some(value.to_vec()),
                expires_at: Some(self.now + ttl),
            };
            self.keys.insert(key.to_vec(), entry);
        }
        is_new
    }

    fn increment(&mut self, key: &[u8], by: i64) -> Result<i64, Fault> {
        let present = match self.get(key)? {
            None => 0,
            Some(text) => core::str::from_utf8(&text)
                .ok()
                .and_then(counter::parse)
                .ok_or(Fault::NotAnInteger)?,
        };
        let sum = present.checked_add(by).ok_or(Fault::Overflow)?;
        let expires_at = self.keys.get(key).and_then(|entry| entry.expires_at);
        self.keys.insert(
            key.to_vec(),
            Entry {
                text: Some(sum.to_string().into_bytes()),
                expires_at,
            },
        );
        Ok(sum)
    }

    fn expire(&mut self, key: &[u8], ttl: u64) {
        let at = self.now + ttl;
        if let Some(entry) = self.keys.get_mut(key) {
            entry.expires_at = Some(at);
        }
    }

    fn delete(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    fn publish(&mut self, channel: &[u8], _message: &[u8]) {
        self.published.0.push(channel.to_vec());
    }
}
