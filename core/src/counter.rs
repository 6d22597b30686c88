//! Counters: whole numbers of 64 bits that never lose their TTL.

mod add;
mod add_many;
mod add_once;
mod drain;
mod finish;
pub mod packed;
mod read;

pub use add::{Add, Expiry};
pub use add_many::{AddMany, Entry, MOST};
pub use add_once::{AddOnce, Added};
pub use drain::{Drain, Drained};
pub use finish::Finish;
pub use read::Read;

pub(crate) use {add::add_twin, add_once::add_once_twin, drain::drain_twin, finish::finish_twin};

use crate::error::{Code, Error, shown};
use crate::step::Reply;

/// The whole number that a server answered as text: a number of its own would have passed through Lua and been rounded.
fn integer(reply: &Reply) -> Result<i64, Error> {
    let Reply::Text(text) = reply else {
        return Err(Error::unexpected(reply));
    };
    let number = core::str::from_utf8(text).ok().and_then(parse);
    number.ok_or_else(|| {
        Error::new(
            Code::NotAnInteger,
            format!("the key holds \"{}\"", shown(text)),
        )
    })
}

/// A whole number of 64 bits as a server accepts it: no blanks, no plus, no leading zeros, no negative zero.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [first, ..] => matches!(first, b'1'..=b'9'),
        [] => false,
    };
    text.parse().ok().filter(|_| is_plain)
}
