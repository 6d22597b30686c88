//! Reading a value.

use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, text};
use crate::step::Reply;
use crate::twin::{Answer, View};

/// Reads the value without touching it; gives nothing if there is none.
///
/// Fails with `wrong_type`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Get {
    /// The value's key.
    pub key: Key,
}

impl Request for Get {
    type Output = Option<Vec<u8>>;

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

    fn understand(&self, reply: Reply) -> Result<Option<Vec<u8>>, Error> {
        match reply {
            Reply::Nil => Ok(None),
            Reply::Text(text) => Ok(Some(text)),
            other => Err(Error::unexpected(&other)),
        }
    }
}

/// `read.lua` in Rust.
pub(crate) fn read_twin(view: &mut dyn View, keys: &[Vec<u8>], _arguments: &[Vec<u8>]) -> Answer {
    Ok(view.get(&keys[0])?.map_or(Reply::Nil, Reply::Text))
}
