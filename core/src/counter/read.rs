//! Reading a counter.

use super::integer;
use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, text};
use crate::step::Reply;

/// Reads the counter without touching it; gives nothing if there is none.
///
/// Fails with `wrong_type` and `not_an_integer`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Read {
    /// The counter.
    pub key: Key,
}

impl Request for Read {
    type Output = Option<i64>;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::Read,
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
