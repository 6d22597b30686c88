//! Deleting a value for the holder of a lock.

use crate::error::Error;
use crate::guard::{Guard, guarded, overtaken};
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, text};
use crate::step::Reply;
use crate::twin::{self, Answer, Fault, Kind, View};

/// Deletes the value, unless a higher fence was seen there; gives whether there was one. The guard outlives it.
///
/// Fails with `fenced_off` if a higher fence was seen, with `wrong_type`, and with `outcome_unknown` if the reply is lost:
/// repeated, it could delete what the same holder wrote in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GuardedDelete {
    /// The value's key.
    pub key: Key,
    /// The fence of the caller's lock.
    pub fence: u64,
}

impl Request for GuardedDelete {
    type Output = bool;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation {
            script: Script::GuardedDelete,
            keys: vec![text(self.key.as_bytes())],
            arguments: Vec::new(),
        };
        guarded(invocation, &self.key, Some(self.fence))
    }

    fn understand(&self, reply: Reply) -> Result<bool, Error> {
        match &reply {
            Reply::Text(word) if word == b"deleted" => Ok(true),
            Reply::Text(word) if word == b"absent" => Ok(false),
            _ => Err(overtaken(&reply)),
        }
    }
}

/// `guarded_delete.lua` in Rust.
pub(crate) fn guarded_delete_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let guard = Guard::of(&keys[1], arguments)?;
    let kind = view.kind(&keys[0]);
    if kind == Kind::Other {
        return Err(Fault::WrongType);
    }
    if let Some(refusal) = guard.refusal(view)? {
        return Ok(refusal);
    }
    if kind == Kind::String {
        view.delete(&keys[0]);
    }
    guard.remember(view)?;
    Ok(twin::text(if kind == Kind::String {
        "deleted"
    } else {
        "absent"
    }))
}
