//! The open claims of a counter, as a look through the server's keys finds them.

use std::collections::BTreeMap;
use std::time::Duration;

use tallylock_core::claim::State;
use tallylock_core::key::Key;
use tallylock_core::scan::{Found, claims_of};

use crate::scan::Walk;

/// A claim that was neither committed nor aborted yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenClaim {
    /// Its id.
    pub id: Vec<u8>,
    /// The amount that it took.
    pub amount: i64,
    /// How long it is kept yet; after that its amount is lost.
    pub remaining: Option<Duration>,
}

/// The look for a counter's claims.
pub(crate) fn walk(counter: &Key) -> Walk {
    Walk::new(&claims_of(counter))
}

/// The open claims among what was found; a look may find one twice.
#[derive(Default)]
pub(crate) struct OpenClaims(BTreeMap<Vec<u8>, OpenClaim>);

impl OpenClaims {
    pub(crate) fn take_in(&mut self, page: &[Found]) {
        for found in page {
            let Some(claim) = found.claim().filter(|claim| claim.state == State::Open) else {
                continue;
            };
            let open = OpenClaim {
                id: claim.id.to_vec(),
                amount: claim.amount,
                remaining: found.ttl.map(Duration::from_millis),
            };
            self.0.insert(open.id.clone(), open);
        }
    }

    /// In the order of their ids.
    pub(crate) fn into_list(self) -> Vec<OpenClaim> {
        self.0.into_values().collect()
    }
}
