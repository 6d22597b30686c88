//! Ending a claim whose amount was billed.

use std::borrow::Cow;

use super::{ENDED_TTL, State, conflict, parse};
use crate::error::Error;
use crate::id::Id;
use crate::key::{Key, Part};
use crate::request::Request;
use crate::round::Effect;
use crate::script::{Invocation, Script, number};
use crate::step::Reply;
use crate::twin::{self, Answer, View};

/// Ends the claim of this id as billed with this amount.
///
/// Done again, it changes nothing. Fails with `conflict` if the claim took another amount, was aborted, or is not there.
/// Repeated by itself after a lost reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Commit {
    /// The counter.
    pub key: Key,
    /// The claim.
    pub id: Id,
    /// The amount that was billed.
    pub amount: i64,
}

impl Request for Commit {
    type Output = ();

    fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn invocation(&self) -> Invocation {
        Invocation {
            script: Script::ClaimCommit,
            keys: vec![Cow::Owned(self.key.side(Part::Claim(&self.id)))],
            arguments: vec![number(self.amount), number(ENDED_TTL)],
        }
    }

    fn understand(&self, reply: Reply) -> Result<(), Error> {
        match parse(&reply)? {
            Some((State::Open | State::Committed, amount)) if amount == self.amount => Ok(()),
            found => Err(conflict(&self.id, found)),
        }
    }
}

/// `claim_commit.lua` in Rust.
pub(crate) fn commit_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let ended_ttl = twin::millis(&arguments[1])?;
    let Some(claim) = view.get(&keys[0])? else {
        return Ok(Reply::Nil);
    };
    if claim == [b"open ".as_slice(), &arguments[0]].concat() {
        let committed = [b"committed ".as_slice(), &arguments[0]].concat();
        view.set(&keys[0], &committed, Some(ended_ttl))?;
    }
    Ok(Reply::Text(claim))
}
