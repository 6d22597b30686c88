//! The scripts: the only commands that tallylock sends to change anything.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::step::{Argument, Command};

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
}

impl Script {
    /// Every script there is.
    pub const ALL: [Self; 15] = [
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
    ];

    /// The Lua text.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Read => include_str!("../lua/read.lua"),
            Self::CounterAdd => include_str!("../lua/counter_add.lua"),
            Self::CounterDrain => include_str!("../lua/counter_drain.lua"),
            Self::CounterFinish => include_str!("../lua/counter_finish.lua"),
            Self::ValueReplaceIfPresent => include_str!("../lua/value_replace_if_present.lua"),
            Self::ValueTouch => include_str!("../lua/value_touch.lua"),
            Self::ValueCompareAndSet => include_str!("../lua/value_compare_and_set.lua"),
            Self::LockAcquire => include_str!("../lua/lock_acquire.lua"),
            Self::LockExtend => include_str!("../lua/lock_extend.lua"),
            Self::LockRelease => include_str!("../lua/lock_release.lua"),
            Self::CounterAddOnce => include_str!("../lua/counter_add_once.lua"),
            Self::ClaimOpen => include_str!("../lua/claim_open.lua"),
            Self::ClaimCommit => include_str!("../lua/claim_commit.lua"),
            Self::ClaimAbort => include_str!("../lua/claim_abort.lua"),
            Self::KeyHeal => include_str!("../lua/key_heal.lua"),
        }
    }

    /// The name by which a server that has seen the text knows it: 40 hexadecimal digits of SHA-1.
    pub fn sha(self) -> &'static str {
        static SHAS: [OnceLock<String>; Script::ALL.len()] =
            [const { OnceLock::new() }; Script::ALL.len()];
        SHAS[self as usize]
            .get_or_init(|| sha1_smol::Sha1::from(self.source()).digest().to_string())
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
        self.command(b"EVALSHA", self.script.sha())
    }

    /// The command that runs the script by its text, after which the server knows it by name.
    pub(crate) fn by_source(&self) -> Command {
        self.command(b"EVAL", self.script.source())
    }

    fn command(&self, name: &'static [u8], script: &'static str) -> Command {
        let count = match self.keys.len() {
            1 => Cow::Borrowed(b"1".as_slice()),
            2 => Cow::Borrowed(b"2".as_slice()),
            3 => Cow::Borrowed(b"3".as_slice()),
            more => number(more),
        };
        let mut command = Vec::with_capacity(3 + self.keys.len() + self.arguments.len());
        command.extend([Cow::Borrowed(name), Cow::Borrowed(script.as_bytes()), count]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_listed_once_at_its_place() {
        for (place, script) in Script::ALL.into_iter().enumerate() {
            assert_eq!(script as usize, place);
            assert_eq!(script.sha().len(), 40);
            assert!(
                script.source().starts_with("-- "),
                "the header is the contract"
            );
        }
    }

    #[test]
    fn every_file_of_scripts_is_in_use() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
        assert_eq!(
            std::fs::read_dir(folder).unwrap().count(),
            Script::ALL.len()
        );
    }
}
