//! Writing a value for the holder of a lock.

use crate::error::Error;
use crate::guard::{Guard, guarded, overtaken};
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Fault, Kind, View};

/// Writes value and TTL in one step, whether the key is there or not, unless a higher fence was seen there.
///
/// Fails with `fenced_off` if one was, with `wrong_type`, and with `outcome_unknown` if the reply is lost: the fence keeps
/// other holders out, but repeated it could overwrite what the same holder wrote in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GuardedSet {
    /// The value's key.
    pub key: Key,
    /// What to write.
    pub value: Vec<u8>,
    /// The fence of the caller's lock.
    pub fence: u64,
    /// The TTL to give.
    pub ttl: Ttl,
}

impl Request for GuardedSet {
    type Output = ();

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation {
            script: Script::GuardedSet,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![text(&self.value), number(self.ttl.as_millis())],
        };
        guarded(invocation, &self.key, Some(self.fence))
    }

    fn understand(&self, reply: Reply) -> Result<(), Error> {
        match &reply {
            Reply::Text(word) if word == b"set" => Ok(()),
            _ => Err(overtaken(&reply)),
        }
    }
}

/// `guarded_set.lua` in Rust.
pub(crate) fn guarded_set_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let ttl = twin::millis(&arguments[1])?;
    let guard = Guard::of(&keys[1], &arguments[2..])?;
    if view.kind(&keys[0]) == Kind::Other {
        return Err(Fault::WrongType);
    }
    if let Some(refusal) = guard.refusal(view)? {
        return Ok(refusal);
    }
    guard.remember(view)?;
    view.set(&keys[0], &arguments[0], Some(ttl))?;
    Ok(twin::text("set"))
}
