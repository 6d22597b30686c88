//! The caller's own name for one add or one claim, by which a repetition is known.

use core::fmt;

use crate::error::{Code, Error, shown};

/// The longest name, in bytes.
pub const LONGEST: usize = 512;

/// An idempotency key or a claim id: 1 to 512 bytes, chosen by the caller, unique among those of a counter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Vec<u8>);

impl Id {
    /// A name of these bytes; `invalid_argument` if it is empty or longer than 512 bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        if (1..=LONGEST).contains(&bytes.len()) {
            return Ok(Self(bytes));
        }
        let detail = format!("an id has 1 to {LONGEST} bytes, not {}", bytes.len());
        Err(Error::new(Code::InvalidArgument, detail))
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({:?})", shown(&self.0))
    }
}
