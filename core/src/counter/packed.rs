//! The adds of a batch as one piece of bytes, as another language hands them over: each that crosses by itself costs as much
//! as all that is in it.
//!
//! Little-endian, one entry after the other:
//!
//! | for each | bytes |
//! | --- | --- |
//! | the counter | `[ttl 8 bytes][fixed u8][length u32][key]`, which a handle packs once |
//! | the add | `[amount i64][kind u8]` |
//! | if the kind is 1 or 2 | `[length u32][idempotency key]` |
//! | if the kind is 2 | `[how long the key is remembered, 8 bytes]` |

use super::{Add, AddOnce, Entry, Expiry};
use crate::error::{Code, Error};
use crate::id::Id;
use crate::key::Key;
use crate::time::Ttl;

/// How a language packs a time, in 8 bytes.
pub type UnpackTime = fn([u8; 8]) -> Result<Ttl, Error>;

const PLAIN: u8 = 0;
const KEYED: u8 = 1;
const KEYED_FOR_A_TIME: u8 = 2;

/// The entries that were packed; `invalid_argument` if one of them cannot be, or is malformed.
pub fn unpack_entries(packed: &[u8], time: UnpackTime) -> Result<Vec<Entry>, Error> {
    let mut rest = Reader { packed, time };
    let mut entries = Vec::new();
    while !rest.packed.is_empty() {
        entries.push(rest.entry()?);
    }
    Ok(entries)
}

/// What is left of the bytes.
struct Reader<'a> {
    packed: &'a [u8],
    time: UnpackTime,
}

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Result<Entry, Error> {
        let ttl = self.time()?;
        let [fixed] = self.array()?;
        let expiry = if fixed == 0 {
            Expiry::Sliding
        } else {
            Expiry::Fixed
        };
        let key = Key::new(self.text()?)?;
        let about = |error: Error| error.about(key.as_bytes());
        let ttl = ttl.map_err(about)?;
        let amount = i64::from_le_bytes(self.array()?);
        let [kind] = self.array()?;
        let id = match kind {
            PLAIN => {
                return Ok(Entry::Plain(Add {
                    key,
                    amount,
                    ttl,
                    expiry,
                }));
            }
            KEYED | KEYED_FOR_A_TIME => Id::new(self.text()?).map_err(about)?,
            _ => return Err(malformed()),
        };
        let remembered = match kind {
            KEYED_FOR_A_TIME => Some(self.time()?.map_err(about)?),
            _ => None,
        };
        Ok(Entry::Keyed(AddOnce {
            key,
            id,
            amount,
            ttl,
            expiry,
            remembered,
        }))
    }

    /// A time: that it cannot be is told with the key, which comes after it.
    fn time(&mut self) -> Result<Result<Ttl, Error>, Error> {
        let bytes = self.array()?;
        Ok((self.time)(bytes))
    }

    /// A length and so many bytes.
    fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = u32::from_le_bytes(self.array()?);
        let (text, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.packed.split_at_checked(length))
            .ok_or_else(malformed)?;
        self.packed = rest;
        Ok(text)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (array, rest) = self.packed.split_first_chunk().ok_or_else(malformed)?;
        self.packed = rest;
        Ok(*array)
    }
}

fn malformed() -> Error {
    Error::new(
        Code::InvalidArgument,
        "a packed entry is malformed: package and library are of different versions",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_micros(bytes: [u8; 8]) -> Result<Ttl, Error> {
        Ttl::from_micros(i64::from_le_bytes(bytes))
    }

    /// Entries of every kind, with the places where each ends.
    fn packed(id: &[u8]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for kind in [PLAIN, KEYED, KEYED_FOR_A_TIME] {
            bytes.extend(60_000_000_i64.to_le_bytes());
            bytes.push(1);
            bytes.extend(1_u32.to_le_bytes());
            bytes.push(b'k');
            bytes.extend((-7_i64).to_le_bytes());
            bytes.push(kind);
            if kind != PLAIN {
                bytes.extend(u32::try_from(id.len()).unwrap().to_le_bytes());
                bytes.extend(id);
            }
            if kind == KEYED_FOR_A_TIME {
                bytes.extend(5_000_i64.to_le_bytes());
            }
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn each_kind_is_understood() {
        let millis = |millis| Ttl::from_millis(millis).unwrap();
        let key = Key::new("k").unwrap();
        let (amount, ttl, expiry) = (-7, millis(60_000), Expiry::Fixed);
        let keyed = |remembered| {
            Entry::Keyed(AddOnce {
                key: key.clone(),
                id: Id::new("run-1").unwrap(),
                amount,
                ttl,
                expiry,
                remembered,
            })
        };
        let plain = Entry::Plain(Add {
            key: key.clone(),
            amount,
            ttl,
            expiry,
        });
        assert_eq!(
            unpack_entries(&packed(b"run-1").0, in_micros).unwrap(),
            [plain, keyed(None), keyed(Some(millis(5)))]
        );
    }

    #[test]
    fn an_entry_that_ends_too_early_is_refused_at_each_byte() {
        let (bytes, ends) = packed(b"run-1");
        for length in 0..bytes.len() {
            let entries = unpack_entries(&bytes[..length], in_micros);
            let is_whole = length == 0 || ends.contains(&length);
            assert_eq!(entries.is_ok(), is_whole, "{length}");
        }
    }

    #[test]
    fn an_empty_idempotency_key_is_no_plain_add() {
        let error = unpack_entries(&packed(b"").0, in_micros).unwrap_err();
        assert_eq!(
            (error.code(), error.key()),
            (Code::InvalidArgument, Some("k"))
        );
    }
}
