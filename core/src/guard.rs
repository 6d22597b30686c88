//! Guards: beside a key, the highest fence that was seen there, so that a holder that was overtaken is refused.

use std::borrow::Cow;

use crate::error::{Code, Error, shown};
use crate::key::{Key, Part};
use crate::script::{Invocation, number};
use crate::step::Reply;
use crate::twin::{self, Fault, View};

/// How long a guard is kept after its last use: 7 days, in milliseconds.
const GUARD_TTL: u64 = 7 * 24 * 3600 * 1000;

/// Lets a script refuse fences below the highest that was seen at `key`.
pub(crate) fn guarded(mut invocation: Invocation, key: &Key, fence: Option<u64>) -> Invocation {
    if let Some(fence) = fence {
        invocation.keys.push(Cow::Owned(key.side(Part::Guard)));
        invocation
            .arguments
            .extend([number(fence), number(GUARD_TTL)]);
    }
    invocation
}

/// The error of a fence that was overtaken.
pub(crate) fn fenced_off(highest: &[u8]) -> Error {
    let detail = format!(
        "the fence {} was seen here, which is higher",
        shown(highest)
    );
    Error::new(Code::FencedOff, detail)
}

/// The error of a reply that is not of a guarded write that was done.
pub(crate) fn overtaken(reply: &Reply) -> Error {
    match reply {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Text(highest), Reply::Text(word)] if word == b"fenced_off" => {
                fenced_off(highest)
            }
            _ => Error::unexpected(reply),
        },
        _ => Error::unexpected(reply),
    }
}

/// What a script's twin is given of a guard: its key and the fence with its TTL.
pub(crate) struct Guard<'a> {
    key: &'a [u8],
    fence: &'a [u8],
    ttl: u64,
}

impl<'a> Guard<'a> {
    /// The guard among the last keys and arguments of a script, if the call carries a fence.
    pub(crate) fn find(
        key: Option<&'a Vec<u8>>,
        arguments: &'a [Vec<u8>],
    ) -> Result<Option<Self>, Fault> {
        key.filter(|_| !arguments.is_empty())
            .map(|key| Self::of(key, arguments))
            .transpose()
    }

    /// The guard of a call that always carries a fence.
    pub(crate) fn of(key: &'a [u8], arguments: &'a [Vec<u8>]) -> Result<Self, Fault> {
        Ok(Self {
            key,
            fence: &arguments[0],
            ttl: twin::millis(&arguments[1])?,
        })
    }

    /// The answer to a fence that was overtaken.
    pub(crate) fn refusal(&self, view: &mut dyn View) -> Result<Option<Reply>, Fault> {
        let highest = self.higher(view)?;
        Ok(highest
            .map(|highest| Reply::Array(vec![Reply::Text(highest), twin::text("fenced_off")])))
    }

    /// The higher fence that was seen, if there is one.
    pub(crate) fn higher(&self, view: &mut dyn View) -> Result<Option<Vec<u8>>, Fault> {
        let highest = view.get(self.key)?;
        Ok(highest
            .filter(|highest| (highest.len(), highest.as_slice()) > (self.fence.len(), self.fence)))
    }

    /// Remembers the fence as the highest.
    pub(crate) fn remember(&self, view: &mut dyn View) -> Result<(), Fault> {
        view.set(self.key, self.fence, Some(self.ttl))
    }
}
