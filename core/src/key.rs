//! Keys as the user gives them, and the side keys that tallylock keeps beside them in the same slot.

use core::borrow::Borrow;
use core::fmt;

use crate::error::{Code, Error};
use crate::id::Id;

/// The longest key, in bytes.
pub const LONGEST: usize = 16 * 1024;

/// A user's key, used as given: 1 byte to 16 KiB, with room beside it for side keys in the same slot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

/// What a side key is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part<'a> {
    /// The last fence that was granted for a lock.
    Fence,
    /// The channel on which a release is told.
    Released,
    /// What was added under an idempotency key.
    Once(&'a Id),
    /// A claim.
    Claim(&'a Id),
    /// What the names of all claims begin with.
    Claims,
    /// The highest fence that was seen.
    Guard,
}

impl Key {
    /// A key of these bytes.
    ///
    /// `invalid_argument` if it is empty or longer than 16 KiB, has braces without a hash tag in them (side keys could
    /// not be kept in its slot), or has `:tl1:` or `:tlu1:` in it (it would look like a side key).
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let refuse = |why: String| Err(Error::new(Code::InvalidArgument, why).about(&bytes));
        if bytes.is_empty() {
            return Err(Error::new(
                Code::InvalidArgument,
                "a key has at least one byte",
            ));
        }
        if bytes.len() > LONGEST {
            return refuse(format!(
                "a key has at most {LONGEST} bytes, not {}",
                bytes.len()
            ));
        }
        if contains(&bytes, TAGGED) || contains(&bytes, UNTAGGED) {
            return refuse("the parts \":tl1:\" and \":tlu1:\" are reserved for side keys".into());
        }
        if hash_tag(&bytes).is_none() && bytes.iter().any(|byte| matches!(byte, b'{' | b'}')) {
            return refuse("braces in a key must enclose a hash tag of at least one byte".into());
        }
        Ok(Self(bytes))
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of a part kept beside this key: same prefix, same slot.
    pub fn side(&self, part: Part<'_>) -> Vec<u8> {
        let mut side = Vec::with_capacity(2 * self.0.len() + 24);
        side.extend_from_slice(&self.0);
        if hash_tag(&self.0).is_some() {
            side.extend_from_slice(TAGGED);
        } else {
            side.push(b'{');
            side.extend_from_slice(&self.0);
            side.push(b'}');
            side.extend_from_slice(UNTAGGED);
        }
        let (name, id): (&[u8], &[u8]) = match part {
            Part::Fence => (FENCE, b""),
            Part::Released => (RELEASED, b""),
            Part::Once(id) => (ONCE, id.as_bytes()),
            Part::Guard => (GUARD, b""),
            Part::Claim(id) => (CLAIM, id.as_bytes()),
            Part::Claims => (CLAIM, b""),
        };
        side.extend_from_slice(name);
        side.extend_from_slice(id);
        side
    }
}

/// A key orders as its bytes do, so that a map of keys can be asked for bytes.
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// A side key, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SideKey<'a> {
    /// The user's key that it is kept beside.
    pub owner: &'a [u8],
    /// What it is for: `fence`, `guard`, `once:` or `claim:` and an id.
    pub part: &'a [u8],
}

/// What a key is kept beside, if it is a side key.
pub fn side_key(key: &[u8]) -> Option<SideKey<'_>> {
    // The first place that fits is the right one: an owner has no marker in it, and an id may have any bytes.
    (1..key.len()).find_map(|at| tagged(key, at).or_else(|| untagged(key, at)))
}

/// A side key whose marker stands here, behind an owner with a hash tag.
fn tagged(key: &[u8], at: usize) -> Option<SideKey<'_>> {
    let (owner, rest) = key.split_at(at);
    let part = rest.strip_prefix(TAGGED)?;
    (is_part(part) && hash_tag(owner).is_some()).then_some(SideKey { owner, part })
}

/// A side key whose marker stands here: the owner stands twice before it, as it is and in braces.
fn untagged(key: &[u8], at: usize) -> Option<SideKey<'_>> {
    let (before, rest) = key.split_at(at);
    let part = rest.strip_prefix(UNTAGGED)?;
    let owner = &before[..at.checked_sub(2)? / 2];
    let fits = before == [owner, b"{", owner, b"}"].concat();
    (is_part(part) && fits).then_some(SideKey { owner, part })
}

fn is_part(part: &[u8]) -> bool {
    [FENCE, RELEASED, GUARD].contains(&part)
        || [ONCE, CLAIM]
            .iter()
            .any(|name| part.starts_with(name) && part.len() > name.len())
}

/// The slot of a key among the 16384 of a Cluster: CRC16 of its hash tag, or of all of it.
///
/// Source: "Redis cluster specification", section "Key distribution model".
pub fn slot(key: &[u8]) -> u16 {
    let hashed = hash_tag(key).unwrap_or(key);
    hashed.iter().fold(0, |crc, byte| crc16_step(crc, *byte)) % 16384
}

const TAGGED: &[u8] = b":tl1:";
const UNTAGGED: &[u8] = b":tlu1:";

const FENCE: &[u8] = b"fence";
const RELEASED: &[u8] = b"released";
const GUARD: &[u8] = b"guard";
const ONCE: &[u8] = b"once:";
const CLAIM: &[u8] = b"claim:";

/// What lies between the first `{` and the first `}` after it, if that is not empty.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let inside = &key[open + 1..];
    let close = inside.iter().position(|byte| *byte == b'}')?;
    (close > 0).then(|| &inside[..close])
}

/// Whether a part stands somewhere in these bytes. The standard library's search in texts is many times the code.
pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// CRC-16/XMODEM: polynomial 0x1021, start 0, one byte at a time.
fn crc16_step(crc: u16, byte: u8) -> u16 {
    let mut crc = crc ^ (u16::from(byte) << 8);
    for _ in 0..8 {
        crc = if crc & 0x8000 == 0 {
            crc << 1
        } else {
            (crc << 1) ^ 0x1021
        };
    }
    crc
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn crc16_agrees_with_the_published_check_value() {
        assert_eq!(
            b"123456789"
                .iter()
                .fold(0, |crc, byte| crc16_step(crc, *byte)),
            0x31C3
        );
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(
            slot(b"foo{}{bar}"),
            b"foo{}{bar}"
                .iter()
                .fold(0, |crc, byte| crc16_step(crc, *byte))
                % 16384
        );
    }

    #[test]
    fn side_keys_are_byte_exact() {
        let untagged = Key::new("invoice:42").unwrap();
        assert_eq!(
            untagged.side(Part::Fence),
            b"invoice:42{invoice:42}:tlu1:fence"
        );
        assert_eq!(
            untagged.side(Part::Released),
            b"invoice:42{invoice:42}:tlu1:released"
        );
        let id = Id::new("evt{1}").unwrap();
        assert_eq!(
            untagged.side(Part::Once(&id)),
            b"invoice:42{invoice:42}:tlu1:once:evt{1}"
        );
        let tagged = Key::new("{invoice}:42").unwrap();
        assert_eq!(
            tagged.side(Part::Claim(&id)),
            b"{invoice}:42:tl1:claim:evt{1}"
        );
        assert_eq!(tagged.side(Part::Fence), b"{invoice}:42:tl1:fence");
        assert_eq!(tagged.side(Part::Released), b"{invoice}:42:tl1:released");
    }

    #[test]
    fn the_owner_of_a_side_key_is_known_whatever_its_name_and_id() {
        let id = Id::new("1{b}:tl1:fence").unwrap();
        for owner in ["a", "x{t}", "x{t}:tl1", "{t}:tlu1"] {
            let side = Key::new(owner).unwrap().side(Part::Claim(&id));
            let found = side_key(&side).unwrap();
            assert_eq!(found.owner, owner.as_bytes());
            assert_eq!(found.part, b"claim:1{b}:tl1:fence");
        }
        for other in [
            "a",
            "a:tl1:fence",
            "{a}:tl1:other",
            "{a}:tl1:once:",
            "a{b}:tlu1:fence",
        ] {
            assert_eq!(side_key(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn keys_that_would_break_the_layout_are_refused() {
        for bad in [
            "",
            "{}a",
            "a{",
            "a}",
            "}{",
            "a{}b{c}",
            "}a{b",
            "x:tl1:fence",
            "x:tlu1:once:1",
        ] {
            assert_eq!(
                Key::new(bad).unwrap_err().code(),
                Code::InvalidArgument,
                "{bad}"
            );
        }
        assert!(Key::new(vec![b'k'; LONGEST]).is_ok());
        assert!(Key::new(vec![b'k'; LONGEST + 1]).is_err());
        assert!(Key::new("}{a}").is_ok(), "the tag is what counts");
    }

    /// Bytes with braces and pieces of markers among them, so that some nearly break the layout.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            6 => any::<u8>().prop_map(|byte| vec![byte]),
            1 => proptest::sample::select(vec!["{", "}", "{t}", "a", "tl1", ":tl1", ":tlu1:", "fence"])
                .prop_map(|piece| piece.as_bytes().to_vec()),
        ];
        proptest::collection::vec(piece, 1..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_side_key_keeps_slot_and_prefix(bytes in bytes(), id in bytes()) {
            if let Ok(key) = Key::new(bytes.clone()) {
                let id = Id::new(id).unwrap();
                for part in [Part::Fence, Part::Released, Part::Once(&id), Part::Claim(&id), Part::Guard] {
                    let side = key.side(part);
                    prop_assert_eq!(slot(&side), slot(&bytes));
                    prop_assert!(side.starts_with(&bytes));
                    prop_assert_eq!(side_key(&side).map(|side| side.owner), Some(bytes.as_slice()));
                    prop_assert!(Key::new(side).is_err());
                }
            }
        }
    }
}
