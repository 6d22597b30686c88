//! Ending a counter.

use super::integer;
use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, text};
use crate::step::Reply;
use crate::twin::{Answer, Fault, View};

/// Deletes the counter and gives what was left in it; nothing if there is none.
///
/// Fails with `wrong_type` and `not_an_integer`, and with `outcome_unknown` if the reply is lost: a finish is never
/// repeated by itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Finish {
    /// The counter.
    pub key: Key,
}

impl Request for Finish {
    type Output = Option<i64>;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::CounterFinish,
            keys: vec![text(self.key.as_bytes())],
            arguments: Vec::new(),
        }
    }

    fn understand(&self, reply: Reply) -> Result<Option<i64>, Error> {
        if reply == Reply::Nil {
            Ok(None)
        } else {
            integer(&reply).map(Some)
        }
    }
}

/// `counter_finish.lua` in Rust.
pub(crate) fn finish_twin(view: &mut dyn View, keys: &[Vec<u8>], _arguments: &[Vec<u8>]) -> Answer {
    let Some(amount) = view.get(&keys[0])? else {
        return Ok(Reply::Nil);
    };
    if core::str::from_utf8(&amount)
        .ok()
        .and_then(super::parse)
        .is_none()
    {
        return Err(Fault::NotAnInteger);
    }
    view.delete(&keys[0]);
    Ok(Reply::Text(amount))
}
