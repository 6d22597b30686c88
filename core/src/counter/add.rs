//! Adding to a counter.

use std::borrow::Cow;

use super::integer;
use crate::error::Error;
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::{Argument, Reply};
use crate::time::Ttl;
use crate::twin::{self, Answer, Pttl, View};

/// When an add sets the TTL of its counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Expiry {
    /// On each add: the counter lives on as long as it is used.
    #[default]
    Sliding,
    /// Only on a counter that has none: the counter lives as long as it was given at first.
    Fixed,
}

impl Expiry {
    /// The word of the scripts for it.
    pub(super) const fn as_argument(self) -> Argument {
        Cow::Borrowed(match self {
            Self::Sliding => b"sliding",
            Self::Fixed => b"fixed",
        })
    }
}

/// Adds `amount` to the counter and sets its TTL in the same step; gives the total.
///
/// Fails with `wrong_type`, `not_an_integer` and `overflow`, and with `outcome_unknown` if the reply is lost: an add
/// is never repeated by itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Add {
    /// The counter.
    pub key: Key,
    /// How much to add: any whole number of 64 bits, 0 and negative ones too.
    pub amount: i64,
    /// The TTL to give.
    pub ttl: Ttl,
    /// When to give it.
    pub expiry: Expiry,
}

impl Request for Add {
    type Output = i64;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::CounterAdd,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![
                number(self.amount),
                number(self.ttl.as_millis()),
                self.expiry.as_argument(),
            ],
        }
    }

    fn understand(&self, reply: Reply) -> Result<i64, Error> {
        integer(&reply)
    }
}

/// `counter_add.lua` in Rust.
pub(crate) fn add_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let ttl = twin::millis(&arguments[1])?;
    if view.create(&keys[0], &arguments[0], ttl) {
        return Ok(Reply::Text(arguments[0].clone()));
    }
    let total = view.increment(&keys[0], twin::integer(&arguments[0])?)?;
    if arguments[2] == b"sliding" || view.pttl(&keys[0]) == Pttl::Forever {
        view.expire(&keys[0], ttl);
    }
    Ok(twin::text(total))
}
