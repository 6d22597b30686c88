//! Replacing a value that is still what the caller saw.

use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, View};

/// Writes value and TTL in one step if the key still holds `expected`; gives whether it did.
///
/// Fails with `wrong_type`, and with `outcome_unknown` if the reply is lost: repeated, it would deny its own success.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompareAndSet {
    /// The value's key.
    pub key: Key,
    /// What the key must hold.
    pub expected: Vec<u8>,
    /// What to write.
    pub value: Vec<u8>,
    /// The TTL to give.
    pub ttl: Ttl,
}

impl Request for CompareAndSet {
    type Output = bool;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::ValueCompareAndSet,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![
                text(&self.expected),
                text(&self.value),
                number(self.ttl.as_millis()),
            ],
        }
    }

    fn understand(&self, reply: Reply) -> Result<bool, Error> {
        match &reply {
            Reply::Text(word) if word == b"set" => Ok(true),
            Reply::Text(word) if word == b"different" || word == b"absent" => Ok(false),
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `value_compare_and_set.lua` in Rust.
pub(crate) fn compare_and_set_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let ttl = twin::millis(&arguments[2])?;
    match view.get(&keys[0])? {
        None => Ok(twin::text("absent")),
        Some(found) if found != arguments[0] => Ok(twin::text("different")),
        Some(_) => {
            view.set(&keys[0], &arguments[1], Some(ttl))?;
            Ok(twin::text("set"))
        }
    }
}
