//! Giving a TTL to a key that has lost its own.

use crate::error::Error;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Pttl, View};

/// Gives the key a TTL if it is there and has none; gives whether it did.
///
/// Works on keys of any type and name. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Heal {
    /// The key, as it was found.
    pub key: Vec<u8>,
    /// The TTL to give.
    pub ttl: Ttl,
}

impl Request for Heal {
    type Output = bool;

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::KeyHeal,
            keys: vec![text(&self.key)],
            arguments: vec![number(self.ttl.as_millis())],
        }
    }

    fn understand(&self, reply: Reply) -> Result<bool, Error> {
        match &reply {
            Reply::Text(word) if word == b"healed" => Ok(true),
            Reply::Text(word) if word == b"kept" => Ok(false),
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `key_heal.lua` in Rust.
pub(crate) fn heal_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let ttl = twin::millis(&arguments[0])?;
    if view.pttl(&keys[0]) != Pttl::Forever {
        return Ok(twin::text("kept"));
    }
    view.expire(&keys[0], ttl);
    Ok(twin::text("healed"))
}
