//! Guards: beside a key, the highest fence that was seen there, so that a holder that was overtaken is refused.

use std::borrow::Cow;

use crate::error::{Code, Error, shown};
use crate::key::{Key, Part};
use crate::script::{Invocation, number};
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
        match (key, arguments) {
            (Some(key), [fence, ttl]) => Ok(Some(Self {
                key,
                fence,
                ttl: twin::millis(ttl)?,
            })),
            _ => Ok(None),
        }
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
