//! Adding to a counter once, however often it is asked for.

use std::borrow::Cow;

use super::{Expiry, integer};
use crate::error::{Code, Error, shown};
use crate::id::Id;
use crate::key::{Key, Part};
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Pttl, View};

/// How long an idempotency key is remembered unless the caller says otherwise: 24 hours, in milliseconds.
const REMEMBERED: u64 = 24 * 3600 * 1000;

/// Adds `amount` to the counter unless it was added under this id before, and sets the counter's TTL in the same step.
///
/// Fails with `conflict` if another amount was added under this id, and with `wrong_type`, `not_an_integer` and
/// `overflow`. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AddOnce {
    /// The counter.
    pub key: Key,
    /// The idempotency key of this add.
    pub id: Id,
    /// How much to add.
    pub amount: i64,
    /// The TTL to give to the counter.
    pub ttl: Ttl,
    /// When to give it.
    pub expiry: Expiry,
    /// How long the idempotency key is remembered; 24 hours if not said.
    pub remembered: Option<Ttl>,
}

/// What an add under an idempotency key came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Added {
    /// The present total; 0 if the counter is gone.
    pub total: i64,
    /// Whether it was counted by this request; not if it was before, by an earlier call of this id or by a request of this
    /// call whose reply was lost.
    pub applied: bool,
}

impl Request for AddOnce {
    type Output = Added;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::CounterAddOnce,
            keys: vec![
                text(self.key.as_bytes()),
                Cow::Owned(self.key.side(Part::Once(&self.id))),
            ],
            arguments: vec![
                number(self.amount),
                number(self.ttl.as_millis()),
                self.expiry.as_argument(),
                number(self.remembered.map_or(REMEMBERED, Ttl::as_millis)),
            ],
        }
    }

    fn understand(&self, reply: Reply) -> Result<Added, Error> {
        let Reply::Array(parts) = &reply else {
            return Err(Error::unexpected(&reply));
        };
        match parts.as_slice() {
            [Reply::Text(word), total] if word == b"added" => Ok(Added {
                total: integer(total)?,
                applied: true,
            }),
            [Reply::Text(word), Reply::Nil] if word == b"repeated" => Ok(Added {
                total: 0,
                applied: false,
            }),
            [Reply::Text(word), total] if word == b"repeated" => Ok(Added {
                total: integer(total)?,
                applied: false,
            }),
            [Reply::Text(word), Reply::Text(amount)] if word == b"conflict" => {
                let (id, amount) = (shown(self.id.as_bytes()), shown(amount));
                let detail = format!(
                    "{amount} was added under the id \"{id}\" before, not {}",
                    self.amount
                );
                Err(Error::new(Code::Conflict, detail))
            }
            _ => Err(Error::unexpected(&reply)),
        }
    }
}

/// `counter_add_once.lua` in Rust.
pub(crate) fn add_once_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let (ttl, remembered) = (twin::millis(&arguments[1])?, twin::millis(&arguments[3])?);
    let answer = |word: &str, value: Option<Vec<u8>>| {
        Ok(Reply::Array(vec![
            twin::text(word),
            value.map_or(Reply::Nil, Reply::Text),
        ]))
    };
    if let Some(added) = view.get(&keys[1])? {
        return if added == arguments[0] {
            let total = view.get(&keys[0])?;
            answer("repeated", total)
        } else {
            answer("conflict", Some(added))
        };
    }
    if view.create(&keys[0], &arguments[0], ttl) {
        view.set(&keys[1], &arguments[0], Some(remembered))?;
        return answer("added", Some(arguments[0].clone()));
    }
    view.increment(&keys[0], twin::integer(&arguments[0])?)?;
    view.set(&keys[1], &arguments[0], Some(remembered))?;
    if arguments[2] == b"sliding" || view.pttl(&keys[0]) == Pttl::Forever {
        view.expire(&keys[0], ttl);
    }
    let total = view.get(&keys[0])?;
    answer("added", total)
}
