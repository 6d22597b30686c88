//! Claims: draining a counter in two steps, so that a biller that dies in between neither loses nor doubles an amount.
//!
//! A claim takes what the counter holds and remembers it under the caller's id until it is committed or aborted. The
//! same id gets the same answer in each state.

mod abort;
mod commit;
mod open;

pub use abort::Abort;
pub use commit::Commit;
pub use open::{Claimed, Open};

pub(crate) use {abort::abort_twin, commit::commit_twin, open::open_twin};

use crate::error::{Code, Error, shown};
use crate::id::Id;
use crate::key::SideKey;
use crate::step::Reply;

/// How long an open claim is kept: 7 days, in milliseconds.
const OPEN_TTL: u64 = 7 * 24 * 3600 * 1000;

/// How long an ended claim is kept: 24 hours, in milliseconds.
const ENDED_TTL: u64 = 24 * 3600 * 1000;

/// What has become of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It took its amount, which is not billed yet.
    Open,
    /// Its amount was billed.
    Committed,
    /// Its amount was given back to the counter.
    Aborted,
}

impl State {
    /// The word that stands in the claim's key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
        }
    }
}

/// A claim as its own key says it, found by a scan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listed<'a> {
    /// The counter that it took from.
    pub counter: &'a [u8],
    /// Its id.
    pub id: &'a [u8],
    /// What has become of it.
    pub state: State,
    /// The amount that it took.
    pub amount: i64,
}

/// The claim that a side key with this text is.
pub(crate) fn listed<'a>(side: SideKey<'a>, text: &[u8]) -> Option<Listed<'a>> {
    let id = side.part.strip_prefix(b"claim:")?;
    let (state, amount) = parse_text(text)?;
    Some(Listed {
        counter: side.owner,
        id,
        state,
        amount,
    })
}

/// A claim as its key holds it: the state, a blank, the amount.
fn parse_text(text: &[u8]) -> Option<(State, i64)> {
    let (word, amount) = core::str::from_utf8(text).ok()?.split_once(' ')?;
    let states = [State::Open, State::Committed, State::Aborted];
    let state = states.into_iter().find(|state| state.as_str() == word)?;
    Some((state, crate::counter::parse(amount)?))
}

/// The claim that a server answered.
fn parse(reply: &Reply) -> Result<Option<(State, i64)>, Error> {
    let Reply::Text(text) = reply else {
        return if *reply == Reply::Nil {
            Ok(None)
        } else {
            Err(Error::unexpected(reply))
        };
    };
    let refuse = || {
        Error::new(
            Code::WrongType,
            format!("the claim's key holds \"{}\"", shown(text)),
        )
    };
    parse_text(text).map(Some).ok_or_else(refuse)
}

/// The error of an end that is not the one that the claim has.
fn conflict(id: &Id, found: Option<(State, i64)>) -> Error {
    let id = shown(id.as_bytes());
    let detail = match found {
        None => format!("there is no claim \"{id}\": it took nothing, or it is older than 7 days"),
        Some((state, amount)) => format!("the claim \"{id}\" is {} with {amount}", state.as_str()),
    };
    Error::new(Code::Conflict, detail)
}
