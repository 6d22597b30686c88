//! Looking at who holds a lock.

use core::fmt;
use std::borrow::Cow;
use std::time::Duration;

use super::Lock;
use crate::error::Error;
use crate::key::Part;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, text};
use crate::step::Reply;
use crate::token::Token;
use crate::twin::{self, Answer, Kind, Pttl, View};

/// Tells who holds the lock, in one atomic step; gives nothing if nobody does. Changes nothing.
///
/// Fails with `wrong_type`. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inspect {
    /// The lock.
    pub lock: Lock,
}

/// Who holds a lock.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The owner value, of tallylock or of another library. Who knows it can release, extend and steal the lock: it belongs
    /// neither into logs nor before the eyes of everybody.
    pub token: Vec<u8>,
    /// How long the lock lasts yet, by the server's clock; nothing if it never ends.
    pub remaining: Option<Duration>,
    /// The last fence that was granted for this lock: the holder's own, unless the token is of another library. Nothing if
    /// none was granted, or it was lost.
    pub fence: Option<u64>,
}

impl Holder {
    /// Who it is, as the label of the token says; nothing if it has none, or is of another library.
    pub fn label(&self) -> Option<String> {
        Token::read(&self.token)?.label().map(str::to_owned)
    }

    /// Whether the token is one of tallylock, and not of another library.
    pub fn is_ours(&self) -> bool {
        Token::read(&self.token).is_some()
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder")
            .field("label", &self.label())
            .field("remaining", &self.remaining)
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl Request for Inspect {
    type Output = Option<Holder>;

    fn key(&self) -> &[u8] {
        self.lock.key().as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    fn invocation(&self) -> Invocation {
        let key = self.lock.key();
        Invocation {
            script: Script::LockInspect,
            keys: vec![text(key.as_bytes()), Cow::Owned(key.side(Part::Fence))],
            arguments: Vec::new(),
        }
    }

    fn understand(&self, reply: Reply) -> Result<Option<Holder>, Error> {
        match &reply {
            Reply::Nil => Ok(None),
            Reply::Array(parts) => match parts.as_slice() {
                [
                    Reply::Text(word),
                    Reply::Text(token),
                    Reply::Text(remaining),
                    Reply::Text(fence),
                ] if word == b"holder" => Ok(Some(Holder {
                    token: token.clone(),
                    remaining: whole(remaining).map(Duration::from_millis),
                    fence: whole(fence),
                })),
                _ => Err(Error::unexpected(&reply)),
            },
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// A number that is not negative.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    let number = crate::counter::parse(core::str::from_utf8(text).ok()?)?;
    u64::try_from(number).ok()
}

/// `lock_inspect.lua` in Rust.
pub(crate) fn inspect_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    _arguments: &[Vec<u8>],
) -> Answer {
    let Some(holder) = view.get(&keys[0])? else {
        return Ok(Reply::Nil);
    };
    let fence = match view.kind(&keys[1]) {
        Kind::String => view.get(&keys[1])?,
        Kind::None | Kind::Other => None,
    };
    let remaining = match view.pttl(&keys[0]) {
        Pttl::Millis(left) => left.to_string(),
        Pttl::Forever | Pttl::Absent => "-1".into(),
    };
    Ok(Reply::Array(vec![
        twin::text("holder"),
        Reply::Text(holder),
        twin::text(remaining),
        Reply::Text(fence.unwrap_or_default()),
    ]))
}
