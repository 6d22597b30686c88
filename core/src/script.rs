//! The scripts: the only commands that tallylock sends to change anything.

use std::borrow::Cow;

use crate::sha1::sha1;
use crate::step::{Argument, Command};

/// A file of Lua without indents and the lines that are comments: they are for readers, not for the wire.
macro_rules! code {
    ($file:literal) => {{
        const TEXT: &[u8] = include_str!($file).as_bytes();
        const CODE: [u8; code_length(TEXT)] = without_comments(TEXT);
        match core::str::from_utf8(&CODE) {
            Ok(code) => code,
            Err(_) => unreachable!(),
        }
    }};
}

/// A Lua script that runs on the server as one atomic step. Its header in `core/lua` is its contract.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Script {
    /// `read.lua`
    Read,
    /// `counter_add.lua`
    CounterAdd,
    /// `counter_drain.lua`
    CounterDrain,
    /// `counter_finish.lua`
    CounterFinish,
    /// `value_replace_if_present.lua`
    ValueReplaceIfPresent,
    /// `value_touch.lua`
    ValueTouch,
    /// `value_compare_and_set.lua`
    ValueCompareAndSet,
    /// `lock_acquire.lua`
    LockAcquire,
    /// `lock_extend.lua`
    LockExtend,
    /// `lock_release.lua`
    LockRelease,
    /// `counter_add_once.lua`
    CounterAddOnce,
    /// `claim_open.lua`
    ClaimOpen,
    /// `claim_commit.lua`
    ClaimCommit,
    /// `claim_abort.lua`
    ClaimAbort,
    /// `key_heal.lua`
    KeyHeal,
    /// `guarded_set.lua`
    GuardedSet,
    /// `guarded_delete.lua`
    GuardedDelete,
    /// `lock_inspect.lua`
    LockInspect,
    /// `lock_steal.lua`
    LockSteal,
    /// `lock_raise_fence.lua`
    LockRaiseFence,
}

impl Script {
    /// Every script there is.
    pub const ALL: [Self; 20] = [
        Self::Read,
        Self::CounterAdd,
        Self::CounterDrain,
        Self::CounterFinish,
        Self::ValueReplaceIfPresent,
        Self::ValueTouch,
        Self::ValueCompareAndSet,
        Self::LockAcquire,
        Self::LockExtend,
        Self::LockRelease,
        Self::CounterAddOnce,
        Self::ClaimOpen,
        Self::ClaimCommit,
        Self::ClaimAbort,
        Self::KeyHeal,
        Self::GuardedSet,
        Self::GuardedDelete,
        Self::LockInspect,
        Self::LockSteal,
        Self::LockRaiseFence,
    ];

    /// The Lua text, without its comments.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Read => code!("../lua/read.lua"),
            Self::CounterAdd => code!("../lua/counter_add.lua"),
            Self::CounterDrain => code!("../lua/counter_drain.lua"),
            Self::CounterFinish => code!("../lua/counter_finish.lua"),
            Self::ValueReplaceIfPresent => code!("../lua/value_replace_if_present.lua"),
            Self::ValueTouch => code!("../lua/value_touch.lua"),
            Self::ValueCompareAndSet => code!("../lua/value_compare_and_set.lua"),
            Self::LockAcquire => code!("../lua/lock_acquire.lua"),
            Self::LockExtend => code!("../lua/lock_extend.lua"),
            Self::LockRelease => code!("../lua/lock_release.lua"),
            Self::CounterAddOnce => code!("../lua/counter_add_once.lua"),
            Self::ClaimOpen => code!("../lua/claim_open.lua"),
            Self::ClaimCommit => code!("../lua/claim_commit.lua"),
            Self::ClaimAbort => code!("../lua/claim_abort.lua"),
            Self::KeyHeal if cfg!(feature = "operator") => code!("../lua/key_heal.lua"),
            Self::GuardedSet => code!("../lua/guarded_set.lua"),
            Self::GuardedDelete => code!("../lua/guarded_delete.lua"),
            Self::LockInspect if cfg!(feature = "operator") => code!("../lua/lock_inspect.lua"),
            Self::LockSteal if cfg!(feature = "operator") => code!("../lua/lock_steal.lua"),
            Self::LockRaiseFence if cfg!(feature = "nodes") => code!("../lua/lock_raise_fence.lua"),
            // Nobody sends them without their feature.
            Self::LockRaiseFence | Self::LockInspect | Self::LockSteal | Self::KeyHeal => "",
        }
    }

    /// The name by which a server that has seen the text knows it: 40 hexadecimal digits of SHA-1.
    pub fn sha(self) -> &'static str {
        core::str::from_utf8(self.digits())
            .unwrap_or_else(|_| unreachable!("they are hexadecimal digits"))
    }

    /// The bytes of its name.
    fn digits(self) -> &'static [u8; 40] {
        static SHAS: [[u8; 40]; Script::ALL.len()] = {
            let mut shas = [[0; 40]; Script::ALL.len()];
            let mut place = 0;
            while place < shas.len() {
                shas[place] = hexadecimal(sha1(Script::ALL[place].source().as_bytes()));
                place += 1;
            }
            shas
        };
        &SHAS[self as usize]
    }
}

/// A script with its keys and arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Invocation {
    /// Which script.
    pub script: Script,
    /// Its KEYS: every key that it touches, all in one slot.
    pub keys: Vec<Argument>,
    /// Its ARGV.
    pub arguments: Vec<Argument>,
}

impl Invocation {
    /// The command that runs the script by its name; a server that does not know it answers NOSCRIPT.
    pub(crate) fn by_sha(&self) -> Command {
        self.command(b"EVALSHA", self.script.digits())
    }

    /// The command that runs the script by its text, after which the server knows it by name.
    pub(crate) fn by_source(&self) -> Command {
        self.command(b"EVAL", self.script.source().as_bytes())
    }

    fn command(&self, name: &'static [u8], script: &'static [u8]) -> Command {
        let count = match self.keys.len() {
            1 => Cow::Borrowed(b"1".as_slice()),
            2 => Cow::Borrowed(b"2".as_slice()),
            3 => Cow::Borrowed(b"3".as_slice()),
            more => number(more),
        };
        let mut command = Vec::with_capacity(3 + self.keys.len() + self.arguments.len());
        command.extend([Cow::Borrowed(name), Cow::Borrowed(script), count]);
        command.extend(self.keys.iter().cloned());
        command.extend(self.arguments.iter().cloned());
        command
    }
}

/// A whole number as an argument.
#[allow(
    clippy::needless_pass_by_value,
    reason = "numbers and words are given as they stand"
)]
pub(crate) fn number(number: impl ToString) -> Argument {
    Cow::Owned(number.to_string().into_bytes())
}

/// Bytes as an argument.
pub(crate) fn text(bytes: &[u8]) -> Argument {
    Cow::Owned(bytes.to_vec())
}

const fn hexadecimal(digest: [u8; 20]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 40];
    let mut at = 0;
    while at < text.len() {
        let byte = digest[at / 2];
        text[at] = DIGITS[(if at % 2 == 0 { byte >> 4 } else { byte & 15 }) as usize];
        at += 1;
    }
    text
}

/// How long a text is without its indents and the lines that are comments.
const fn code_length(text: &[u8]) -> usize {
    let (mut length, mut start) = (0, 0);
    while start < text.len() {
        let end = line_end(text, start);
        if !is_comment(text, start) {
            length += end - indented(text, start);
        }
        start = end;
    }
    length
}

const fn without_comments<const LENGTH: usize>(text: &[u8]) -> [u8; LENGTH] {
    let mut code = [0; LENGTH];
    let (mut length, mut start) = (0, 0);
    while start < text.len() {
        let end = line_end(text, start);
        if !is_comment(text, start) {
            let mut at = indented(text, start);
            while at < end {
                code[length] = text[at];
                length += 1;
                at += 1;
            }
        }
        start = end;
    }
    code
}

/// Where the line that begins at `start` ends, its newline included.
const fn line_end(text: &[u8], start: usize) -> usize {
    let mut end = start;
    while end < text.len() && text[end] != b'\n' {
        end += 1;
    }
    if end < text.len() { end + 1 } else { end }
}

/// Whether the line that begins at `start` has nothing but a comment.
const fn is_comment(text: &[u8], start: usize) -> bool {
    let at = indented(text, start);
    at + 1 < text.len() && text[at] == b'-' && text[at + 1] == b'-'
}

/// Where the line that begins at `start` has its first letter.
const fn indented(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < text.len() && text[at] == b' ' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_listed_once_at_its_place() {
        for (place, script) in Script::ALL.into_iter().enumerate() {
            assert_eq!(script as usize, place);
            let sha = sha1_smol::Sha1::from(script.source()).digest().to_string();
            assert_eq!(script.sha(), sha);
            assert!(!script.source().contains("--"));
            assert!(!script.source().is_empty());
        }
    }

    #[test]
    fn every_file_of_scripts_has_its_contract_and_is_in_use() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(text.starts_with("-- "), "the header is the contract");
            let code: Vec<&str> = text
                .lines()
                .map(str::trim_start)
                .filter(|line| !line.starts_with("--"))
                .collect();
            let code = code.join("\n") + "\n";
            assert!(
                Script::ALL
                    .into_iter()
                    .any(|script| script.source() == code)
            );
        }
        assert_eq!(
            std::fs::read_dir(folder).unwrap().count(),
            Script::ALL.len()
        );
    }
}
