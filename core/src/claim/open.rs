//! Taking what a counter holds for a claim.

use std::borrow::Cow;

use super::{OPEN_TTL, State, parse};
use crate::error::Error;
use crate::guard::{Guard, fenced_off, guarded};
use crate::id::Id;
use crate::key::{Key, Part};
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number, text};
use crate::step::Reply;
use crate::time::Ttl;
use crate::twin::{self, Answer, Pttl, View};

/// Takes what the counter holds for the claim of this id; gives nothing if there is nothing to take.
///
/// Asked again, it gives the same amount and what has become of the claim. Fails with `fenced_off` if a higher fence was
/// seen at this counter, and with `wrong_type` and `not_an_integer`. Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Open {
    /// The counter.
    pub key: Key,
    /// The claim.
    pub id: Id,
    /// The TTL for a counter that has lost its own.
    pub ttl: Ttl,
    /// The fence of the caller's lock, if a holder that was overtaken is to be refused.
    pub fence: Option<u64>,
}

/// What a claim has taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Claimed {
    /// The amount that it took.
    pub amount: i64,
    /// What has become of it.
    pub state: State,
    /// Whether the counter had lost its TTL, and was given one.
    pub healed: bool,
}

impl Request for Open {
    type Output = Option<Claimed>;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation {
            script: Script::ClaimOpen,
            keys: vec![
                text(self.key.as_bytes()),
                Cow::Owned(self.key.side(Part::Claim(&self.id))),
            ],
            arguments: vec![number(self.ttl.as_millis()), number(OPEN_TTL)],
        };
        guarded(invocation, &self.key, self.fence)
    }

    fn understand(&self, reply: Reply) -> Result<Option<Claimed>, Error> {
        let parts = match &reply {
            Reply::Nil => return Ok(None),
            Reply::Array(parts) => parts.as_slice(),
            _ => return Err(Error::unexpected(&reply)),
        };
        let [claim, Reply::Text(healed)] = parts else {
            return Err(Error::unexpected(&reply));
        };
        if let (Reply::Text(highest), b"fenced_off") = (claim, healed.as_slice()) {
            return Err(fenced_off(highest));
        }
        Ok(parse(claim)?.map(|(state, amount)| Claimed {
            amount,
            state,
            healed: healed == b"healed",
        }))
    }
}

/// `claim_open.lua` in Rust.
pub(crate) fn open_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let (ttl, open_ttl) = (twin::millis(&arguments[0])?, twin::millis(&arguments[1])?);
    let answer =
        |text: Vec<u8>, word: &str| Ok(Reply::Array(vec![Reply::Text(text), twin::text(word)]));
    let claim = view.get(&keys[1])?;
    let amount = view.get(&keys[0])?;
    let guard = Guard::find(keys.get(2), &arguments[2..])?;
    if let Some(guard) = &guard
        && let Some(highest) = guard.higher(view)?
    {
        return answer(highest, "fenced_off");
    }
    let taken = amount.filter(|amount| claim.is_none() && amount != b"0");
    if taken.is_some() {
        view.increment(&keys[0], 0)?;
    }
    if let Some(guard) = guard {
        guard.remember(view)?;
    }
    let amount = match (claim, taken) {
        (Some(claim), _) => return answer(claim, "kept"),
        (None, None) => return Ok(Reply::Nil),
        (None, Some(amount)) => amount,
    };
    let claim = [b"open ".as_slice(), &amount].concat();
    let healed = view.pttl(&keys[0]) == Pttl::Forever;
    view.set(&keys[1], &claim, Some(open_ttl))?;
    view.set(&keys[0], b"0", None)?;
    if healed {
        view.expire(&keys[0], ttl);
    }
    answer(claim, if healed { "healed" } else { "kept" })
}
