//! What a client can be set to, with the one set of defaults that all languages share.

use crate::time::{Ttl, Wait};
use crate::token::Label;

/// How a client's operations behave.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// How long one call may take, repeats included. Default 2 s. An acquire that waits has its own deadline instead.
    pub timeout: Ttl,
    /// What the tokens of this client's locks carry for people who read them. Default none; clients set host and pid.
    pub label: Option<Label>,
    /// Whether scripts are tried at all. Default yes.
    pub scripts: Scripts,
}

/// How the steps of an operation are made atomic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scripts {
    /// By scripts; where the server or the account forbids them, by WATCH, MULTI and EXEC.
    #[default]
    Tried,
    /// By WATCH, MULTI and EXEC from the beginning.
    Avoided,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Ttl::from_millis(2_000).expect("2 s is within the bounds of a TTL"),
            label: None,
            scripts: Scripts::Tried,
        }
    }
}

impl Settings {
    /// How long an acquire goes on: as long as the caller wants to wait, or one call if not at all, in milliseconds.
    pub fn patience(&self, wait: Wait) -> u64 {
        if wait == Wait::NONE {
            self.timeout.as_millis()
        } else {
            wait.as_millis()
        }
    }
}

/// The first pause before something is tried again, in milliseconds; each further pause is twice as long.
pub(crate) const FIRST_PAUSE: u64 = 16;

/// The longest pause before something is tried again, in milliseconds.
pub(crate) const LONGEST_PAUSE: u64 = 256;
