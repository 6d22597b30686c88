//! Giving a value that is still there a new TTL.

use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Kind, View};

/// Sets the TTL if the key is still there; gives whether it was.
///
/// Fails with `wrong_type`. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Touch {
    /// The value's key.
    pub key: Key,
    /// The TTL to give.
    pub ttl: Ttl,
}

impl Request for Touch {
    type Output = bool;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::ValueTouch,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![number(self.ttl.as_millis())],
        }
    }

    fn understand(&self, reply: Reply) -> Result<bool, Error> {
        match &reply {
            Reply::Text(word) if word == b"touched" => Ok(true),
            Reply::Text(word) if word == b"absent" => Ok(false),
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `value_touch.lua` in Rust.
pub(crate) fn touch_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let ttl = twin::millis(&arguments[0])?;
    match view.kind(&keys[0]) {
        Kind::None => Ok(twin::text("absent")),
        Kind::Other => Err(twin::Fault::WrongType),
        Kind::String => {
            view.expire(&keys[0], ttl);
            Ok(twin::text("touched"))
        }
    }
}
