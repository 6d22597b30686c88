//! The owner value of a lock, and the randomness that an operation is started with.

use core::fmt;

use crate::error::{Code, Error};

/// 16 random bytes that the caller draws for one operation: its token and its jitter come from them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Takes 16 bytes of a cryptographic random source, drawn for this operation alone.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The seed of the next attempt: a token that was released is never used again.
    pub(crate) fn next(self) -> Self {
        let digest = sha1_smol::Sha1::from(self.0).digest().bytes();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(bytes)
    }

    /// A number from `least` to `most`, for the `n`-th pause.
    pub(crate) fn jitter(self, n: u32, least: u64, most: u64) -> u64 {
        let mut hash = sha1_smol::Sha1::from(self.0);
        hash.update(&n.to_be_bytes());
        let bytes = hash.digest().bytes();
        let drawn = u64::from_be_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ]);
        least + drawn % (most - least + 1)
    }
}

impl fmt::Debug for Seed {
    // A token is the right to release: it does not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// The value of a lock's key while it is ours: 32 hexadecimal digits and, if wanted, `.` and a label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(Vec<u8>);

impl Token {
    /// The token of this seed.
    pub(crate) fn new(seed: Seed, label: Option<&Label>) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Vec::with_capacity(32 + 1 + Label::LONGEST);
        for byte in seed.0 {
            text.push(DIGITS[usize::from(byte >> 4)]);
            text.push(DIGITS[usize::from(byte & 15)]);
        }
        if let Some(label) = label {
            text.push(b'.');
            text.extend_from_slice(label.0.as_bytes());
        }
        Self(text)
    }

    /// The bytes that stand in the lock's key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A text that tells people who holds a lock: 1 to 64 visible ASCII characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(String);

impl Label {
    /// The longest label, in bytes.
    pub const LONGEST: usize = 64;

    /// A label of this text, or `invalid_argument` if it is empty, too long, or not of visible ASCII characters.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        if !(1..=Self::LONGEST).contains(&text.len())
            || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(Error::new(
                Code::InvalidArgument,
                format!(
                    "an owner label is 1 to {} visible ASCII characters, not {text:?}",
                    Self::LONGEST
                ),
            ));
        }
        Ok(Self(text))
    }

    /// The text of the label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_hexadecimal_with_an_optional_label() {
        let seed = Seed::new([0xAB; 16]);
        assert_eq!(
            Token::new(seed, None).as_bytes(),
            "ab".repeat(16).as_bytes()
        );
        let label = Label::new("host-7.4242").unwrap();
        assert_eq!(
            Token::new(seed, Some(&label)).as_bytes(),
            format!("{}.host-7.4242", "ab".repeat(16)).as_bytes()
        );
        assert_ne!(Token::new(seed.next(), None), Token::new(seed, None));
    }

    #[test]
    fn labels_are_checked() {
        for bad in ["", "two words", "naïve", &"x".repeat(65)] {
            assert_eq!(Label::new(bad).unwrap_err().code(), Code::InvalidArgument);
        }
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_varies() {
        let seed = Seed::new([7; 16]);
        let drawn: Vec<u64> = (0..100).map(|n| seed.jitter(n, 8, 16)).collect();
        assert!(drawn.iter().all(|&millis| (8..=16).contains(&millis)));
        assert!(drawn.iter().any(|&millis| millis != drawn[0]));
    }

    #[test]
    fn debug_output_shows_no_token() {
        let seed = Seed::new([0xAB; 16]);
        assert!(!format!("{:?} {:?}", seed, Token::new(seed, None)).contains("ab"));
    }
}
