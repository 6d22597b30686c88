//! What can go wrong, in a few words that are the same in every language.

use core::fmt;

use crate::key::contains;
use crate::step::Reply;

/// The kind of an error; [`Code::as_str`] is the word that every language shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// The lock was held by another until the deadline.
    Busy,
    /// The lease is no longer ours.
    Lost(Reason),
    /// This handle holds the lock already.
    AlreadyHeld,
    /// A newer holder has been here.
    FencedOff,
    /// Another value was given under the same name.
    Conflict,
    /// The call itself is wrong; nothing was sent.
    InvalidArgument,
    /// The key holds something that is not a string.
    WrongType,
    /// The key holds a text that is not a whole number of 64 bits.
    NotAnInteger,
    /// The sum does not fit into 64 bits.
    Overflow,
    /// The deadline passed and nothing was applied.
    Timeout,
    /// The server could not be reached, or is not ready; nothing was applied.
    Unavailable,
    /// The request may have been applied: its reply was lost.
    OutcomeUnknown,
    /// The server is a replica that takes no writes.
    ReadOnly,
    /// The account may not do this, or its password is wrong.
    Forbidden,
    /// The server is at its memory limit.
    OutOfMemory,
    /// The server or the transport cannot do this.
    Unsupported,
    /// The caller cancelled the call.
    Cancelled,
    /// The client is closed.
    Closed,
}

/// Why a lease is no longer ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Its time ran out.
    Expired,
    /// Another token is in its place.
    TakenOver,
    /// Its time ran out while the server could not be asked for more.
    Unreachable,
    /// It belongs to the process that forked this one.
    Forked,
}

/// Whether a failed call may have changed something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Applied {
    /// Nothing was changed.
    No,
    /// It is not known.
    Maybe,
}

/// A failed call: its code, the key it was about, and what happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Error(Box<Failure>);

/// It is behind a pointer, so that a result that may be an error is not much larger than one that may not.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Failure {
    code: Code,
    key: Option<String>,
    detail: String,
}

/// How servers refuse a command inside a script to an account: from 7 on, and before.
const IN_SCRIPTS: [&[u8]; 2] = [b"ACL failure in script", b"user executing the script can't"];

/// What servers before 7 put before the line and the words of an error inside a script.
const PLACE: &[u8] = b"@user_script:";

/// The longest part of a key or a value that a message shows, in characters.
const SHOWN: usize = 200;

impl Error {
    /// An error of this kind; `detail` says what happened, never with a password in it.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            code,
            key: None,
            detail: detail.into(),
        }))
    }

    /// The same error, about this key.
    #[must_use]
    pub fn about(mut self, key: &[u8]) -> Self {
        self.0.key = Some(shown(key));
        self
    }

    /// What kind of error this is.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The key that the call was about, as text, shortened if very long.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// What happened, without the key and the next step.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Whether the call may have been applied.
    pub fn applied(&self) -> Applied {
        self.0.code.applied()
    }

    /// The error for a reply that the script never gives.
    pub(crate) fn unexpected(reply: &Reply) -> Self {
        let kind = match reply {
            Reply::Nil => "nothing",
            Reply::Text(_) => "a text",
            Reply::Integer(_) => "a number",
            Reply::Array(_) => "a list",
            Reply::Error(_) => "an error",
        };
        Self::new(
            Code::Unsupported,
            format!("the server answered {kind} that no script of ours gives"),
        )
    }

    /// Whether an account was refused a command inside a script: what came before it in the script was done.
    pub(crate) fn is_from_inside_a_script(&self) -> bool {
        self.0.code == Code::Forbidden && is_from_inside(&self.0.detail)
    }

    /// The error that an error reply of a server stands for.
    ///
    /// Servers before 7 wrap the text of an error inside a script into a sentence of their own; both shapes are read.
    pub fn from_reply(text: &str) -> Self {
        let text = unwrapped(text);
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        let says = |words: &[u8]| contains(text.as_bytes(), words);
        let code = match word {
            "WRONGTYPE" => Code::WrongType,
            "OOM" => Code::OutOfMemory,
            "READONLY" => Code::ReadOnly,
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Code::Forbidden,
            "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" => Code::Unsupported,
            "LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN" | "NOREPLICAS" | "MISCONF" => {
                Code::Unavailable
            }
            _ if says(b"not an integer") => Code::NotAnInteger,
            _ if says(b"would overflow") => Code::Overflow,
            _ if is_from_inside(text) || says(b"NOPERM") => Code::Forbidden,
            _ if says(b"invalid password") || says(b"without any password") => Code::Forbidden,
            _ if says(b"max number of clients") => Code::Unavailable,
            _ => Code::Unsupported,
        };
        let detail = match word {
            "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" => {
                format!("the server is a Cluster node ({text})")
            }
            _ => format!("the server said: {text}"),
        };
        Self::new(code, detail)
    }
}

impl Code {
    /// The word for this kind, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Lost(_) => "lost",
            Self::AlreadyHeld => "already_held",
            Self::FencedOff => "fenced_off",
            Self::Conflict => "conflict",
            Self::InvalidArgument => "invalid_argument",
            Self::WrongType => "wrong_type",
            Self::NotAnInteger => "not_an_integer",
            Self::Overflow => "overflow",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::ReadOnly => "read_only",
            Self::Forbidden => "forbidden",
            Self::OutOfMemory => "out_of_memory",
            Self::Unsupported => "unsupported",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
        }
    }

    /// Why the lease was lost, if this is `lost`.
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Lost(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether a call that ends like this may have been applied.
    pub const fn applied(self) -> Applied {
        match self {
            Self::OutcomeUnknown => Applied::Maybe,
            _ => Applied::No,
        }
    }

    /// What the caller can do about it.
    const fn next_step(self) -> &'static str {
        match self {
            Self::Busy => "wait longer or try again later",
            Self::Lost(_) => "stop the work that the lock protects; acquire it again to go on",
            Self::AlreadyHeld => "release the lease that this handle holds first",
            Self::FencedOff => "stop: a newer holder is at work",
            Self::Conflict => "read again and decide anew",
            Self::InvalidArgument => "correct the argument; nothing was sent",
            Self::WrongType => "use another key, or delete what another program put there",
            Self::NotAnInteger => "look at the value; a counter holds a whole number of 64 bits",
            Self::Overflow => "drain the counter before adding more",
            Self::Timeout => "try again; nothing was applied",
            Self::Unavailable => "check the server and the address, then try again",
            Self::OutcomeUnknown => {
                "read the key to see whether it was applied before trying again"
            }
            Self::ReadOnly => "connect to the primary",
            Self::Forbidden => "check user, password and ACL",
            Self::OutOfMemory => "free memory or raise maxmemory; nothing was changed",
            Self::Unsupported => "see the documentation for what is supported",
            Self::Cancelled => "nothing to do: the caller asked for it",
            Self::Closed => "make a new client",
        }
    }
}

impl Reason {
    /// The word for this reason, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::TakenOver => "taken_over",
            Self::Unreachable => "unreachable",
            Self::Forked => "forked",
        }
    }
}

impl Applied {
    /// `no` or `maybe`, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { code, key, detail } = &*self.0;
        write!(f, "{}", code.as_str())?;
        if let Some(reason) = code.reason() {
            write!(f, " ({})", reason.as_str())?;
        }
        if let Some(key) = key {
            write!(f, ", key \"{key}\"")?;
        }
        write!(f, ": {detail}; {}", code.next_step())
    }
}

impl core::error::Error for Error {}

/// Bytes as text for people, shortened if very long, and without what would break a line of a log.
pub fn shown(bytes: &[u8]) -> String {
    // Four bytes are the most that a character has.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let visible = |character: char| {
        if character.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            character
        }
    };
    let mut shown: String = text.chars().take(SHOWN).map(visible).collect();
    if shown.len() < bytes.len() {
        shown.push('…');
    }
    shown
}

/// The server's own words, without the sentence that servers before 7 put around an error inside a script.
fn unwrapped(text: &str) -> &str {
    let is_wrapped = text.starts_with("ERR Error running script");
    let inner = if is_wrapped {
        words_after_place(text)
    } else {
        None
    }
    .unwrap_or(text);
    inner.strip_prefix('-').unwrap_or(inner)
}

fn words_after_place(text: &str) -> Option<&str> {
    let mut places = text.as_bytes().windows(PLACE.len());
    // Where the server itself raised it, the script's name stands there twice.
    let after = text.get(places.rposition(|window| window == PLACE)? + PLACE.len()..)?;
    let line = after
        .as_bytes()
        .windows(2)
        .position(|window| window == b": ");
    after.get(line.map_or(0, |end| end + 2)..)
}

fn is_from_inside(text: &str) -> bool {
    IN_SCRIPTS
        .iter()
        .any(|words| contains(text.as_bytes(), words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_of_a_script_error_give_the_same_code() {
        let shapes = [
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value script: abc, on @user_script:7.",
                Code::WrongType,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:7: WRONGTYPE Operation against a key holding the wrong kind of value",
                Code::WrongType,
            ),
            (
                "ERR value is not an integer or out of range script: abc, on @user_script:9.",
                Code::NotAnInteger,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:9: ERR value is not an integer or out of range",
                Code::NotAnInteger,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:9: ERR increment or decrement would overflow",
                Code::Overflow,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: abc, on @user_script:9.",
                Code::OutOfMemory,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:9: -OOM command not allowed when used memory > 'maxmemory'.",
                Code::OutOfMemory,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:9: The user executing the script can't run this command or subcommand",
                Code::Forbidden,
            ),
            (
                "ERR Error running script (call to f_abc): @user_script:8: @user_script: 8: -OOM command not allowed when used memory > 'maxmemory'.",
                Code::OutOfMemory,
            ),
            (
                "ERR ACL failure in script: User billing has no permissions to run the 'get' command script: abc, on @user_script:12.",
                Code::Forbidden,
            ),
            (
                "READONLY You can't write against a read only replica.",
                Code::ReadOnly,
            ),
            ("MOVED 3999 127.0.0.1:6381", Code::Unsupported),
            (
                "LOADING Redis is loading the dataset in memory",
                Code::Unavailable,
            ),
        ];
        for (text, code) in shapes {
            assert_eq!(Error::from_reply(text).code(), code, "{text}");
        }
    }

    #[test]
    fn a_message_names_code_key_and_next_step() {
        let error =
            Error::new(Code::Lost(Reason::Expired), "its 30000 ms are over").about(b"invoice:42");
        assert_eq!(
            error.to_string(),
            "lost (expired), key \"invoice:42\": its 30000 ms are over; stop the work that the lock protects; acquire it again to go on"
        );
        assert_eq!(error.applied(), Applied::No);
        assert_eq!(Code::OutcomeUnknown.applied(), Applied::Maybe);
    }

    #[test]
    fn a_key_adds_no_line_to_a_log() {
        let error = Error::new(Code::WrongType, "x").about(b"a\r\nERROR all is lost\x1b[2J");
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }

    #[test]
    fn a_very_long_key_is_shortened() {
        let error = Error::new(Code::WrongType, "x").about(&[b'k'; 1000]);
        assert_eq!(error.key().unwrap().chars().count(), SHOWN + 1);
    }
}
