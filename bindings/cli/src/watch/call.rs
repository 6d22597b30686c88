//! A call of one of tallylock's scripts, read from the words that were sent.

use std::fmt::Write;
use std::time::Duration;

use tallylock_core::key::side_key;
use tallylock_core::script::Script;
use tallylock_core::token::Token;

use crate::duration;
use crate::output::text;

/// What a client has asked for.
pub(super) struct Call {
    pub(super) verb: &'static str,
    /// The user's key.
    pub(super) key: Vec<u8>,
    /// What else is worth telling, each with a blank before it.
    pub(super) detail: String,
}

impl Call {
    /// The call that these words are; nothing for other commands, for scripts of others, and for reads.
    pub(super) fn read(words: &[Vec<u8>]) -> Option<Self> {
        let [name, script, count, rest @ ..] = words else {
            return None;
        };
        let script = std::str::from_utf8(script).ok()?;
        let script = if name.eq_ignore_ascii_case(b"EVALSHA") {
            Script::ALL
                .into_iter()
                .find(|ours| script.eq_ignore_ascii_case(ours.sha()))?
        } else if name.eq_ignore_ascii_case(b"EVAL") {
            Script::ALL
                .into_iter()
                .find(|ours| script == ours.source())?
        } else {
            return None;
        };
        let count = std::str::from_utf8(count).ok()?.parse().ok()?;
        let (keys, arguments) = rest.split_at_checked(count)?;
        Self::of(script, keys, arguments)
    }

    fn of(script: Script, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Option<Self> {
        let first = keys.first()?;
        let argument = |place: usize| arguments.get(place).map(|word| text(word));
        let mut detail = String::new();
        let mut tell = |word: &str, told: Option<String>| {
            if let Some(told) = told {
                let _ = write!(detail, " {word}{told}");
            }
        };
        let verb = match script {
            Script::Read | Script::LockInspect => return None,
            Script::CounterAdd => {
                tell("", argument(0).map(signed));
                "add"
            }
            Script::CounterAddOnce => {
                tell("", argument(0).map(signed));
                tell("once ", keys.get(1).and_then(|side| id(side)));
                "add"
            }
            Script::CounterDrain => {
                tell("fence ", argument(1));
                "drain"
            }
            Script::CounterFinish => "finish",
            Script::ClaimOpen => {
                tell("", keys.get(1).and_then(|side| id(side)));
                tell("fence ", argument(2));
                "claim"
            }
            Script::ClaimCommit => {
                tell("", id(first));
                tell("of ", argument(0));
                "commit"
            }
            Script::ClaimAbort => {
                tell("", keys.get(1).and_then(|side| id(side)));
                "abort"
            }
            Script::LockAcquire | Script::LockExtend => {
                tell("for ", arguments.get(1).and_then(|millis| time(millis)));
                tell("by ", arguments.first().and_then(|token| holder(token)));
                if script == Script::LockAcquire {
                    "acquire"
                } else {
                    "extend"
                }
            }
            Script::LockRaiseFence => {
                tell("to ", argument(1));
                tell("by ", arguments.first().and_then(|token| holder(token)));
                "fence"
            }
            Script::LockRelease => {
                tell("by ", arguments.first().and_then(|token| holder(token)));
                "release"
            }
            Script::LockSteal => {
                tell("from ", arguments.first().and_then(|token| holder(token)));
                "steal"
            }
            Script::GuardedSet => {
                tell("for ", arguments.get(1).and_then(|millis| time(millis)));
                tell("fence ", argument(2));
                "set"
            }
            Script::GuardedDelete => {
                tell("fence ", argument(0));
                "delete"
            }
            Script::ValueReplaceIfPresent => {
                tell("for ", arguments.get(1).and_then(|millis| time(millis)));
                "replace"
            }
            Script::ValueTouch => {
                tell("for ", arguments.first().and_then(|millis| time(millis)));
                "touch"
            }
            Script::ValueCompareAndSet => {
                tell("for ", arguments.get(2).and_then(|millis| time(millis)));
                "compare-and-set"
            }
            Script::KeyHeal => {
                tell("for ", arguments.first().and_then(|millis| time(millis)));
                "heal"
            }
        };
        let key = match script {
            // It has the claim's key alone.
            Script::ClaimCommit => side_key(first)?.owner.to_vec(),
            _ => first.clone(),
        };
        Some(Self { verb, key, detail })
    }
}

fn signed(amount: String) -> String {
    if amount.starts_with('-') {
        amount
    } else {
        format!("+{amount}")
    }
}

/// The id behind `once:` or `claim:`.
fn id(side: &[u8]) -> Option<String> {
    let part = side_key(side)?.part;
    let colon = part.iter().position(|byte| *byte == b':')?;
    Some(text(&part[colon + 1..]))
}

/// Who holds a token. The token itself is the right to release: it is not shown.
fn holder(token: &[u8]) -> Option<String> {
    Some(Token::read(token)?.label()?.to_owned())
}

fn time(millis: &[u8]) -> Option<String> {
    let millis = std::str::from_utf8(millis).ok()?.parse().ok()?;
    Some(duration::shown(Duration::from_millis(millis)))
}
