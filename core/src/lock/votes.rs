//! What the nodes say to an acquire.

use super::tally::{Tally, Word};
use crate::ballot::Ballot;
use crate::error::{Code, Error};
use crate::step::Reply;
use crate::twin::{self, Answer, View};

/// The votes of the nodes for an acquire.
pub(super) struct Votes {
    pub(super) tally: Tally,
    /// The highest fence among those that granted it.
    pub(super) highest: u64,
    /// How long it is held at least where it is held, in milliseconds; nothing if it is so without an end, or not.
    pub(super) left: Option<u64>,
}

impl Votes {
    pub(super) fn count(ballot: &Ballot) -> Self {
        let (mut highest, mut left) = (0, None::<u64>);
        let tally = Tally::of(ballot, &mut |_, reply| match vote(reply)? {
            Vote::Granted(fence) => {
                highest = highest.max(fence);
                Some(Word::Yes)
            }
            Vote::Held(time) => {
                left = left.into_iter().chain(time).min();
                Some(Word::Taken)
            }
        });
        Self {
            tally,
            highest,
            left,
        }
    }

    /// Whether a node may hold it for us, now or once a request arrives that is still on its way. Where it is held by
    /// another, the token stays fresh, and a late copy of an earlier request does no harm.
    pub(super) fn may_be_ours(&self) -> bool {
        self.tally.yes > 0 || self.tally.unsettled
    }

    /// Why there is no quorum for us.
    pub(super) fn refusal(&self) -> Error {
        match (self.tally.is_contended(), self.tally.is_of_one()) {
            (true, true) => busy(self.left),
            (true, false) => Error::new(Code::Busy, self.tally.counts("granted by")),
            (false, _) => self.tally.failure("granted by"),
        }
    }
}

fn busy(held_for: Option<u64>) -> Error {
    let left = held_for.map_or("without an end".into(), |left| {
        format!("for another {left} ms")
    });
    Error::new(Code::Busy, format!("another holds the lock {left}"))
}

/// What a node says to an acquire.
enum Vote {
    Granted(u64),
    Held(Option<u64>),
}

fn vote(reply: &Reply) -> Option<Vote> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let [Reply::Text(word), Reply::Text(number)] = parts.as_slice() else {
        return None;
    };
    let number = crate::counter::parse(core::str::from_utf8(number).ok()?)?;
    match word.as_slice() {
        b"granted" => Some(Vote::Granted(u64::try_from(number).ok()?)),
        b"held" => Some(Vote::Held(u64::try_from(number).ok())),
        _ => None,
    }
}

/// `lock_acquire.lua` in Rust.
pub(crate) fn acquire_twin(view: &mut dyn View, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Answer {
    let (ttl, fence_ttl) = (twin::millis(&arguments[1])?, twin::millis(&arguments[2])?);
    let now = view.time().to_string().into_bytes();
    let last = view.get(&keys[1])?;
    let is_behind = last.is_none_or(|last| {
        twin::is_number(&last) && (last[0] == b'-' || (last.len(), &last) < (now.len(), &now))
    });
    let granted = |fence| Reply::Array(vec![twin::text("granted"), Reply::Text(fence)]);
    if is_behind && view.create(&keys[0], &arguments[0], ttl) {
        view.set(&keys[1], &now, Some(fence_ttl))?;
        return Ok(granted(now));
    }
    if view
        .get(&keys[0])?
        .is_some_and(|holder| holder != arguments[0])
    {
        let left = match view.pttl(&keys[0]) {
            twin::Pttl::Millis(left) => left.to_string(),
            twin::Pttl::Forever | twin::Pttl::Absent => "-1".into(),
        };
        return Ok(Reply::Array(vec![twin::text("held"), twin::text(left)]));
    }
    let fence = if is_behind {
        now
    } else {
        view.increment(&keys[1], 1)?.to_string().into_bytes()
    };
    view.set(&keys[1], &fence, Some(fence_ttl))?;
    view.set(&keys[0], &arguments[0], Some(ttl))?;
    Ok(granted(fence))
}
