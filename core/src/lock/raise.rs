//! Writing the highest fence of a grant back to the nodes.

use super::tally::{Tally, Word};
use crate::ballot::Ballot;
use crate::step::Reply;
use crate::twin::{self, Answer, Fault, View};

/// How a write-back has gone so far.
pub(super) struct Raised {
    pub(super) tally: Tally,
    /// The highest fence that a node has instead, if it is higher than ours.
    pub(super) higher: Option<u64>,
}

/// Counts what the nodes have said to this fence.
pub(super) fn count(ballot: &Ballot, fence: u64) -> Raised {
    let mut higher = None;
    let tally = Tally::of(ballot, &mut |_, reply| match reply {
        Reply::Text(word) => match word.as_slice() {
            b"raised" => Some(Word::Yes),
            b"absent" => Some(Word::Absent),
            b"taken" => Some(Word::Taken),
            _ => None,
        },
        Reply::Array(parts) => {
            let [Reply::Text(word), Reply::Text(number)] = parts.as_slice() else {
                return None;
            };
            let number = crate::counter::parse(core::str::from_utf8(number).ok()?)?;
            let number = u64::try_from(number)
                .ok()
                .filter(|number| *number > fence)?;
            higher = higher.max(Some(number));
            (word == b"higher").then_some(Word::Outbid)
        }
        _ => None,
    });
    Raised { tally, higher }
}

/// `lock_raise_fence.lua` in Rust.
pub(crate) fn raise_fence_twin(
    view: &mut dyn View,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Answer {
    let fence_ttl = twin::millis(&arguments[2])?;
    match view.get(&keys[0])? {
        None => return Ok(twin::text("absent")),
        Some(holder) if holder != arguments[0] => return Ok(twin::text("taken")),
        Some(_) => {}
    }
    if let Some(last) = view.get(&keys[1])? {
        if !twin::is_number(&last) {
            return Err(Fault::NotAnInteger);
        }
        if last[0] != b'-' && (last.len(), &last) > (arguments[1].len(), &arguments[1]) {
            return Ok(Reply::Array(vec![twin::text("higher"), Reply::Text(last)]));
        }
    }
    view.set(&keys[1], &arguments[1], Some(fence_ttl))?;
    Ok(twin::text("raised"))
}
