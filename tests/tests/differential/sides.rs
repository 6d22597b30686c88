//! Where the sequences are run: the memory and a server with scripts, call by call; and a server without scripts.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::test_runner::TestCaseError;
use tallylock_core::memory::Memory;
use tallylock_core::settings::{Scripts, Settings};
use tallylock_core::step::{Call, Outcome, Reply};
use tallylock_core::time::Ttl;

use crate::action::Side;
use crate::compare::{Left, kind_of_error, same_reply};
use crate::real::Real;

/// Every word that a script answers, and every error: sequences that don't meet them all compare too little.
pub(crate) const ANSWERS: [&str; 30] = [
    "NOSCRIPT",
    "WRONGTYPE",
    "not an integer",
    "would overflow",
    "nothing",
    "a number",
    "added",
    "repeated",
    "conflict",
    "kept",
    "healed",
    "open",
    "committed",
    "aborted",
    "replaced",
    "touched",
    "set",
    "different",
    "absent",
    "granted",
    "held",
    "extended",
    "taken",
    "released",
    "deleted",
    "fenced_off",
    "holder",
    "stolen",
    "raised",
    "higher",
];

/// The answers that were met so far.
pub(crate) type Met = RefCell<BTreeSet<&'static str>>;

/// The memory with its twins and a server with the scripts: each call goes to both, and the replies must be the same.
pub(crate) struct Pair<'a> {
    memory: Memory,
    real: Real,
    settings: Settings,
    met: &'a Met,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(mut real: Real, met: &'a Met) -> Self {
        real.command(&["FLUSHALL"]);
        real.command(&["SCRIPT", "FLUSH"]);
        Self {
            memory: Memory::default(),
            real,
            settings: Settings::default(),
            met,
        }
    }

    /// What is left in the memory, and on the server.
    pub(crate) fn left(&mut self) -> (Vec<Left>, Vec<Left>) {
        let memory = self
            .memory
            .keys()
            .map(|(key, text, ttl)| (key.to_vec(), text.map(<[u8]>::to_vec), ttl));
        (memory.collect(), self.real.left())
    }
}

impl Side for Pair<'_> {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn send(&mut self, call: Call) -> Result<Outcome, TestCaseError> {
        let twin = self
            .memory
            .execute(&call)
            .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        let script = self.real.call(&call);
        let same = twin.len() == script.len()
            && twin
                .iter()
                .zip(&script)
                .all(|(twin, script)| same_reply(twin, script));
        if !same {
            let why = format!("to {call:?}\n  the twin says {twin:?}\n  the script {script:?}");
            return Err(TestCaseError::fail(why));
        }
        for reply in &script {
            note(reply, self.met);
        }
        // The server's own reply goes on: its errors are the ones to be read.
        Ok(Ok(script))
    }

    fn put(&mut self, key: &[u8], text: &[u8], ttl: Option<Ttl>) {
        self.memory.put(key, text, ttl);
        self.real.put(key, text, ttl);
    }

    fn put_list(&mut self, key: &[u8], ttl: Option<Ttl>) {
        self.memory.put_other_type(key, ttl);
        self.real.put_list(key, ttl);
    }

    fn remove(&mut self, key: &[u8]) {
        self.memory.remove(key);
        self.real.remove(key);
    }

    fn forget_scripts(&mut self) {
        self.memory.forget_scripts();
        self.real.command(&["SCRIPT", "FLUSH"]);
    }
}

/// A server on which the twins decide between WATCH and EXEC: the outcomes must be those of the scripts.
pub(crate) struct Transactions {
    pub(crate) real: Real,
    settings: Settings,
}

impl Transactions {
    pub(crate) fn new(mut real: Real) -> Self {
        real.command(&["FLUSHALL"]);
        let settings = Settings {
            scripts: Scripts::Avoided,
            ..Settings::default()
        };
        Self { real, settings }
    }
}

impl Side for Transactions {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn send(&mut self, call: Call) -> Result<Outcome, TestCaseError> {
        Ok(Ok(self.real.call(&call)))
    }

    fn put(&mut self, key: &[u8], text: &[u8], ttl: Option<Ttl>) {
        self.real.put(key, text, ttl);
    }

    fn put_list(&mut self, key: &[u8], ttl: Option<Ttl>) {
        self.real.put_list(key, ttl);
    }

    fn remove(&mut self, key: &[u8]) {
        self.real.remove(key);
    }

    fn forget_scripts(&mut self) {
        // There are none to forget.
    }
}

fn note(reply: &Reply, met: &Met) {
    let word = match reply {
        Reply::Nil => "nothing",
        Reply::Error(text) => kind_of_error(text),
        Reply::Array(parts) => return parts.iter().for_each(|part| note(part, met)),
        Reply::Integer(number) => {
            panic!("a script gave the number {number}: it has passed through Lua")
        }
        Reply::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let first = text.split(' ').next().unwrap_or_default();
            match ANSWERS.into_iter().find(|answer| *answer == first) {
                Some(answer) => answer,
                None if first.parse::<i64>().is_ok() => "a number",
                None => return,
            }
        }
    };
    met.borrow_mut().insert(word);
}
