//! Taking a lock away from its holder.

use std::borrow::Cow;

use super::{Lock, inspect::whole};
use crate::error::{Code, Error, shown};
use crate::key::Part;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::token::Token;
use crate::twin::{self, Answer, Fault, Pttl, View};

/// Deletes the lock if this token still holds it, counts its fence up and tells those who wait; gives nothing, and changes
/// nothing, if the token holds it no more. For operators.
///
/// Fails with `wrong_type` and `not_an_integer`, and with `outcome_unknown` if the reply is lost: repeated, it would deny its
/// own success.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Steal {
    lock: Lock,
    expected: Expected,
    reason: String,
}

/// What was done to a holder.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stolen {
    /// The fence now: larger than the holder's, and smaller than that of the next grant. A guarded write or a fenced drain
    /// with it shuts the holder out before there is a next one.
    pub fence: u64,
    /// What is to be logged: the lock, its holder, the fence and the reason, without the token.
    pub message: String,
}

/// A token that is not shown.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Expected(Vec<u8>);

impl core::fmt::Debug for Expected {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Expected(..)")
    }
}

impl Steal {
    /// Steals `lock` from the holder of the token `expected`; `invalid_argument` if the reason says nothing.
    pub fn new(lock: Lock, expected: &[u8], reason: &str) -> Result<Self, Error> {
        if reason.trim().is_empty() {
            let detail = "a lock is stolen for a reason, which is logged";
            return Err(Error::new(Code::InvalidArgument, detail).about(lock.key().as_bytes()));
        }
        Ok(Self {
            lock,
            expected: Expected(expected.to_vec()),
            reason: shown(reason.as_bytes()),
        })
    }

    fn stolen(&self, fence: u64) -> Stolen {
        let token = Token::read(&self.expected.0);
        let holder = match &token {
            Some(token) => token.label().unwrap_or("a holder without a label"),
            None => "another library",
        };
        let message = format!(
            "the lock \"{}\" was stolen from {holder}, its fence is {fence} now: {}",
            shown(self.key()),
            self.reason
        );
        Stolen { fence, message }
    }
}

impl Request for Steal {
    type Output = Option<Stolen>;

    fn key(&self) -> &[u8] {
        self.lock.key().as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        let key = self.lock.key();
        Invocation {
            script: Script::LockSteal,
            keys: vec![text(key.as_bytes()), Cow::Owned(key.side(Part::Fence))],
            arguments: vec![
                text(&self.expected.0),
                Cow::Owned(key.side(Part::Released)),
                number(self.lock.ttl().fence_ttl()),
            ],
        }
    }

    fn understand(&self, reply: Reply) -> Result<Option<Stolen>, Error> {
        match &reply {
            Reply::Text(word) if word == b"absent" || word == b"taken" => Ok(None),
            Reply::Array(parts) => match parts.as_slice() {
                [Reply::Text(word), Reply::Text(fence)] if word == b"stolen" => whole(fence)
                    .map(|fence| Some(self.stolen(fence)))
                    .ok_or_else(|| Error::unexpected(&reply)),
                _ => Err(Error::unexpected(&reply)),
            },
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `lock_steal.lua` in Rust.
pub(crate) fn steal_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let fence_ttl = twin::millis(&arguments[2])?;
    match view.get(&keys[0])? {
        None => return Ok(twin::text("absent")),
        Some(holder) if holder != arguments[0] => return Ok(twin::text("taken")),
        Some(_) => {}
    }
    let left = view.pttl(&keys[1]);
    let fence = raised(view, &keys[1])?;
    let fence_ttl = match left {
        Pttl::Millis(left) => fence_ttl.max(left),
        Pttl::Forever | Pttl::Absent => fence_ttl,
    };
    view.set(&keys[1], &fence, Some(fence_ttl))?;
    view.delete(&keys[0]);
    view.publish(&arguments[1], b"released");
    Ok(Reply::Array(vec![twin::text("stolen"), Reply::Text(fence)]))
}

/// The fence after the last one, as a grant would have it.
fn raised(view: &mut dyn View, key: &[u8]) -> Result<Vec<u8>, Fault> {
    let now = view.time().to_string().into_bytes();
    let is_behind = view.get(key)?.is_none_or(|last| {
        twin::is_number(&last) && (last[0] == b'-' || (last.len(), &last) < (now.len(), &now))
    });
    if is_behind {
        return Ok(now);
    }
    Ok(view.increment(key, 1)?.to_string().into_bytes())
}
