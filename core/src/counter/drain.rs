//! Draining a counter.

use super::integer;
use crate::error::Error;
use crate::guard::{Guard, fenced_off, guarded};
use crate::key::Key;
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Pttl, View};

/// Takes what the counter holds and leaves 0 in it with the TTL that it has; gives nothing if there is none.
///
/// Fails with `fenced_off` if a higher fence was seen at this counter, with `wrong_type` and `not_an_integer`, and with `outcome_unknown` if the reply is lost: a drain is never
/// repeated by itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Drain {
    /// The counter.
    pub key: Key,
    /// The TTL for a counter that has lost its own.
    pub ttl: Ttl,
    /// The fence of the caller's lock, if a holder that was overtaken is to be refused.
    pub fence: Option<u64>,
}

/// What a drain took.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Drained {
    /// The amount that was taken.
    pub amount: i64,
    /// Whether the counter had lost its TTL, and was given one.
    pub healed: bool,
}

impl Request for Drain {
    type Output = Option<Drained>;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Once
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation {
            script: Script::CounterDrain,
            keys: vec![text(self.key.as_bytes())],
            arguments: vec![number(self.ttl.as_millis())],
        };
        guarded(invocation, &self.key, self.fence)
    }

    fn understand(&self, reply: Reply) -> Result<Option<Drained>, Error> {
        match &reply {
            Reply::Nil => Ok(None),
            Reply::Array(parts) => match parts.as_slice() {
                [Reply::Text(highest), Reply::Text(word)] if word == b"fenced_off" => {
                    Err(fenced_off(highest))
                }
                [amount, Reply::Text(healed)] => Ok(Some(Drained {
                    amount: integer(amount)?,
                    healed: healed == b"healed",
                })),
                _ => Err(Error::unexpected(&reply)),
            },
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `counter_drain.lua` in Rust.
pub(crate) fn drain_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let ttl = twin::millis(&arguments[0])?;
    let answer =
        |text: Vec<u8>, word: &str| Ok(Reply::Array(vec![Reply::Text(text), twin::text(word)]));
    let amount = view.get(&keys[0])?;
    let guard = Guard::find(keys.get(1), &arguments[1..])?;
    if let Some(guard) = &guard
        && let Some(highest) = guard.higher(view)?
    {
        return answer(highest, "fenced_off");
    }
    if amount.is_some() {
        view.increment(&keys[0], 0)?;
    }
    if let Some(guard) = guard {
        guard.remember(view)?;
    }
    let Some(amount) = amount else {
        return Ok(Reply::Nil);
    };
    let healed = view.pttl(&keys[0]) == Pttl::Forever;
    view.set(&keys[0], b"0", None)?;
    if healed {
        view.expire(&keys[0], ttl);
    }
    answer(amount, if healed { "healed" } else { "kept" })
}
