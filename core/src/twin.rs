//! What a script's twin sees: the few commands that our scripts use, over string keys.
//!
//! Each Lua script has a twin of the same meaning beside its operation. The in-memory node runs the twins; tests
//! compare them with real servers.

use crate::error::Error;
use crate::script::Script;
use crate::step::Reply;
use crate::{claim, counter, heal, lock, value};

/// Keys as a script sees them while it runs: nothing expires in the middle, nobody else writes.
pub trait View {
    /// GET: the text of a key; [`Fault::WrongType`] if it holds another type.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;
    /// TYPE: what a key holds.
    fn kind(&mut self, key: &[u8]) -> Kind;
    /// PTTL: the remaining time of a key.
    fn pttl(&mut self, key: &[u8]) -> Pttl;
    /// TIME: the server's clock, in microseconds since 1970.
    fn time(&mut self) -> i64;
    /// SET with PX for a TTL in milliseconds, or XX KEEPTTL without.
    fn set(&mut self, key: &[u8], value: &[u8], ttl: Option<u64>) -> Result<(), Fault>;
    /// SET with NX and PX: whether it was written; not if there is anything.
    fn create(&mut self, key: &[u8], value: &[u8], ttl: u64) -> bool;
    /// INCRBY: the new number; faults leave the key as it was.
    fn increment(&mut self, key: &[u8], by: i64) -> Result<i64, Fault>;
    /// PEXPIRE, in milliseconds; nothing happens to a key that is not there.
    fn expire(&mut self, key: &[u8], ttl: u64);
    /// DEL.
    fn delete(&mut self, key: &[u8]);
    /// PUBLISH, best effort.
    fn publish(&mut self, channel: &[u8], message: &[u8]);
}

/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It is not there.
    None,
    /// A text.
    String,
    /// Anything else.
    Other,
}

/// The remaining time of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pttl {
    /// It is not there.
    Absent,
    /// It never expires.
    Forever,
    /// It expires in so many milliseconds; 0 is a live key.
    Millis(u64),
}

impl Pttl {
    /// What a server's answer to PTTL means.
    pub(crate) fn understand(reply: &Reply) -> Result<Self, Error> {
        match reply {
            Reply::Integer(-2) => Ok(Self::Absent),
            Reply::Integer(-1) => Ok(Self::Forever),
            Reply::Integer(millis) => Ok(Self::Millis(u64::try_from(*millis).unwrap_or(0))),
            Reply::Error(text) => Err(Error::from_reply(text)),
            other => Err(Error::unexpected(other)),
        }
    }
}

/// A command that a server refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The key holds another type.
    WrongType,
    /// The text is not a whole number of 64 bits.
    NotAnInteger,
    /// The sum does not fit.
    Overflow,
}

/// What a script answers.
pub type Answer = Result<Reply, Fault>;

type Twin = fn(&mut dyn View, &[Vec<u8>], &[Vec<u8>]) -> Answer;

/// Runs the twin of a script.
pub fn run(script: Script, view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Reply {
    let twin: Twin = match script {
        Script::Read => value::read_twin,
        Script::CounterAdd => counter::add_twin,
        Script::CounterDrain => counter::drain_twin,
        Script::CounterFinish => counter::finish_twin,
        Script::ValueReplaceIfPresent => value::replace_if_present_twin,
        Script::ValueTouch => value::touch_twin,
        Script::ValueCompareAndSet => value::compare_and_set_twin,
        Script::LockAcquire => lock::acquire_twin,
        Script::LockExtend => lock::extend_twin,
        Script::LockRelease => lock::release_twin,
        Script::CounterAddOnce => counter::add_once_twin,
        Script::ClaimOpen => claim::open_twin,
        Script::ClaimCommit => claim::commit_twin,
        Script::ClaimAbort => claim::abort_twin,
        Script::KeyHeal => heal::heal_twin,
        Script::GuardedSet => value::guarded_set_twin,
        Script::GuardedDelete => value::guarded_delete_twin,
        Script::LockInspect => lock::inspect_twin,
        Script::LockSteal => lock::steal_twin,
        Script::LockRaiseFence => lock::raise_fence_twin,
    };
    twin(view, keys, arguments).unwrap_or_else(|fault| Reply::Error(fault.as_str().into()))
}

impl Fault {
    /// The words of a server for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::NotAnInteger => "ERR value is not an integer or out of range",
            Self::Overflow => "ERR increment or decrement would overflow",
        }
    }
}

/// A whole number out of an argument.
pub(crate) fn integer(argument: &[u8]) -> Result<i64, Fault> {
    core::str::from_utf8(argument)
        .ok()
        .and_then(counter::parse)
        .ok_or(Fault::NotAnInteger)
}

/// Whether a text is digits, perhaps behind a minus; they may be too many for 64 bits.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Milliseconds out of an argument.
pub(crate) fn millis(argument: &[u8]) -> Result<u64, Fault> {
    u64::try_from(integer(argument)?).map_err(|_| Fault::NotAnInteger)
}

/// A reply of this text.
#[allow(
    clippy::needless_pass_by_value,
    reason = "numbers and words are given as they stand"
)]
pub(crate) fn text(text: impl ToString) -> Reply {
    Reply::Text(text.to_string().into_bytes())
}
