//! The names of a sweeper's claims, by which it finds those that were left open.

use tallylock_core::claim::State;
use tallylock_core::error::{Code, Error};
use tallylock_core::id;
use tallylock_core::scan::{Found, claims_beginning_with};

use crate::random;

/// How many characters of a name are drawn.
const DRAWN: usize = 32;

/// The names of the claims under one lock.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    beginning: String,
}

/// A claim of the sweeper's that is open.
#[derive(Debug)]
pub(crate) struct LeftOpen {
    pub(crate) counter: Vec<u8>,
    pub(crate) id: String,
}

impl Names {
    /// The names under this lock; `invalid_argument` if they would be too long.
    pub(crate) fn new(lock: &str) -> Result<Self, Error> {
        let beginning = format!("sweep.{lock}.");
        let room = id::LONGEST - DRAWN;
        if beginning.len() > room {
            let most = room - "sweep..".len();
            let detail = format!(
                "the key of a sweeper's lock is a part of its claims' ids, and has at most {most} bytes"
            );
            return Err(Error::new(Code::InvalidArgument, detail).about(lock.as_bytes()));
        }
        Ok(Self { beginning })
    }

    /// A name for a new claim.
    pub(crate) fn draw(&self) -> Result<String, Error> {
        Ok(format!("{}{}", self.beginning, random::name()?))
    }

    /// The pattern of the keys of these claims.
    pub(crate) fn pattern(&self) -> Vec<u8> {
        claims_beginning_with(self.beginning.as_bytes())
    }

    /// The claim that was found, if it is open and has one of these names.
    pub(crate) fn left_open(&self, found: &Found) -> Option<LeftOpen> {
        let claim = found.claim().filter(|claim| claim.state == State::Open)?;
        let id = core::str::from_utf8(claim.id).ok()?;
        let drawn = id.strip_prefix(&self.beginning)?;
        // A lock whose key goes on behind ours has names that begin alike.
        let is_ours = drawn.len() == DRAWN && drawn.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ours.then(|| LeftOpen {
            counter: claim.counter.to_vec(),
            id: id.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tallylock_core::id::Id;
    use tallylock_core::key::{Key, Part};

    use super::*;

    fn claim_of(name: &str) -> Found {
        let counter = Key::new("session:1").unwrap();
        Found {
            key: counter.side(Part::Claim(&Id::new(name).unwrap())),
            text: Some(b"open 7".to_vec()),
            ttl: Some(1),
        }
    }

    #[test]
    fn a_name_is_known_again_and_no_other() {
        let names = Names::new("sweeper").unwrap();
        let drawn = names.draw().unwrap();
        let left = names.left_open(&claim_of(&drawn)).unwrap();
        assert_eq!(
            (left.counter.as_slice(), left.id),
            (b"session:1".as_slice(), drawn.clone())
        );
        let longer = Names::new("sweeper.x").unwrap().draw().unwrap();
        for other in [
            "run-7",
            "sweep.sweeper.",
            &drawn[1..],
            &longer,
            &format!("{drawn}0"),
        ] {
            assert!(names.left_open(&claim_of(other)).is_none(), "{other}");
        }
        let ended = Found {
            text: Some(b"committed 7".to_vec()),
            ..claim_of(&drawn)
        };
        assert!(names.left_open(&ended).is_none());
    }

    #[test]
    fn the_longest_lock_still_has_names() {
        let longest = "k".repeat(473);
        assert_eq!(
            Names::new(&longest).unwrap().draw().unwrap().len(),
            id::LONGEST
        );
        let error = Names::new(&format!("{longest}k")).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}
