//! Ending a claim whose amount was not billed.

use std::borrow::Cow;

use super::{ENDED_TTL, State, conflict, parse};
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

/// Ends the claim of this id as not billed and gives its amount back to the counter; gives that amount.
///
/// Done again, it changes nothing. A counter that is gone is made again with `ttl`; one that is there keeps its own.
/// Fails with `conflict` if the claim was committed or is not there, and with `overflow` if the counter cannot take the
/// amount, or `fenced_off` if a higher fence was seen at this counter: the claim then stays open. Repeated by itself after a lost
/// reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Abort {
    /// The counter.
    pub key: Key,
    /// The claim.
    pub id: Id,
    /// The TTL for a counter that is gone or has lost its own.
    pub ttl: Ttl,
    /// The fence of the caller's lock, if a holder that was overtaken is to be refused: its successor may have billed the claim.
    pub fence: Option<u64>,
}

impl Request for Abort {
    type Output = i64;

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation {
            script: Script::ClaimAbort,
            keys: vec![
                text(self.key.as_bytes()),
                Cow::Owned(self.key.side(Part::Claim(&self.id))),
            ],
            arguments: vec![number(self.ttl.as_millis()), number(ENDED_TTL)],
        };
        guarded(invocation, &self.key, self.fence)
    }

    fn understand(&self, reply: Reply) -> Result<i64, Error> {
        if let Reply::Array(parts) = &reply
            && let [Reply::Text(highest), Reply::Text(word)] = parts.as_slice()
            && word == b"fenced_off"
        {
            return Err(fenced_off(highest));
        }
        match parse(&reply)? {
            Some((State::Open | State::Aborted, amount)) => Ok(amount),
            found => Err(conflict(&self.id, found)),
        }
    }
}

/// `claim_abort.lua` in Rust.
pub(crate) fn abort_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let (ttl, ended_ttl) = (twin::millis(&arguments[0])?, twin::millis(&arguments[1])?);
    let Some(claim) = view.get(&keys[1])? else {
        return Ok(Reply::Nil);
    };
    let Some(amount) = claim
        .strip_prefix(b"open ")
        .filter(|amount| twin::is_number(amount))
    else {
        return Ok(Reply::Text(claim));
    };
    if let Some(guard) = Guard::find(keys.get(2), &arguments[2..])?
        && let Some(highest) = guard.higher(view)?
    {
        return Ok(Reply::Array(vec![
            Reply::Text(highest),
            twin::text("fenced_off"),
        ]));
    }
    let mut is_without_ttl = false;
    if !view.create(&keys[0], amount, ttl) {
        view.increment(&keys[0], twin::integer(amount)?)?;
        is_without_ttl = view.pttl(&keys[0]) == Pttl::Forever;
    }
    let aborted = [b"aborted ".as_slice(), amount].concat();
    view.set(&keys[1], &aborted, Some(ended_ttl))?;
    if is_without_ttl {
        view.expire(&keys[0], ttl);
    }
    Ok(Reply::Text(claim))
}
