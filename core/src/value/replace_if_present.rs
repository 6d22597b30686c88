//! Replacing a value that is still there.

use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Kind, View};

/// Writes value and TTL in one step if the key is still there; gives whether it was.
///
/// Fails with `wrong_type`, and with `outcome_unknown` if the reply is lost: repeated, it could overwrite what another
/// wrote in between.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReplaceIfPresent {
    /// The value's key.
    pub key: Key,
    /// What to write.
    pub value: Vec<u8>,
    /// The TTL to give.
    pub ttl: Ttl,
}

impl Request for ReplaceIfPresent {
    type Output = bool;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::ValueReplaceIfPresent,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![text(&self.value), number(self.ttl.as_millis())],
        }
    }

    fn understand(&self, reply: Reply) -> Result<bool, Error> {
        match &reply {
            Reply::Text(word) if word == b"replaced" => Ok(true),
            Reply::Text(word) if word == b"absent" => Ok(false),
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `value_replace_if_present.lua` in Rust.
pub(crate) fn replace_if_present_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let ttl = twin::millis(&arguments[1])?;
    match view.kind(&keys[0]) {
        Kind::None => Ok(twin::text("absent")),
        Kind::Other => Err(twin::Fault::WrongType),
        Kind::String => {
            view.set(&keys[0], &arguments[0], Some(ttl))?;
            Ok(twin::text("replaced"))
        }
    }
}
