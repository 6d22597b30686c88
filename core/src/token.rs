//! The owner value of a lock, and the randomness that an operation is started with.

use core::fmt;

use crate::error::{Code, Error, shown};
use crate::sha1::sha1;

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
        let digest = sha1(&self.0);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(bytes)
    }

    /// A number from `least` to `most`, for the `n`-th pause.
    pub(crate) fn jitter(self, n: u32, least: u64, most: u64) -> u64 {
        let mut message = [0; 20];
        message[..16].copy_from_slice(&self.0);
        message[16..].copy_from_slice(&n.to_be_bytes());
        let bytes = sha1(&message);
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

/// How many hexadecimal digits a seed has.
const DIGITS_OF_SEED: usize = 32;

/// The value of a lock's key while it is ours: 32 hexadecimal digits and, if wanted, `.` and a label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(Vec<u8>);

impl Token {
    /// The token of this seed.
    pub(crate) fn new(seed: Seed, label: Option<&Label>) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Vec::with_capacity(DIGITS_OF_SEED + 1 + Label::LONGEST);
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

    /// The token that a lock's key holds; nothing for another text, such as the token of another library.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (digits, rest) = text.split_at_checked(DIGITS_OF_SEED)?;
        let are_ours = digits
            .iter()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let is_label = |label: &[u8]| {
            (1..=Label::LONGEST).contains(&label.len()) && label.iter().all(u8::is_ascii_graphic)
        };
        let fits = rest.is_empty() || rest.strip_prefix(b".").is_some_and(is_label);
        (are_ours && fits).then(|| Self(text.to_vec()))
    }

    /// Who holds it, as the label says; nothing if the token has none.
    pub fn label(&self) -> Option<&str> {
        core::str::from_utf8(self.0.get(DIGITS_OF_SEED + 1..)?).ok()
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
                    "an owner label is 1 to {} visible ASCII characters, not \"{}\"",
                    Self::LONGEST,
                    shown(text.as_bytes())
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
    fn a_token_is_read_back_with_its_label_and_no_other_text_is_one() {
        let label = Label::new("host.7").unwrap();
        for label in [Some(&label), None] {
            let token = Token::new(Seed::new([0xAB; 16]), label);
            assert_eq!(Token::read(token.as_bytes()), Some(token.clone()));
            assert_eq!(token.label(), label.map(Label::as_str));
        }
        let digits = "ab".repeat(16);
        for other in [
            String::new(),
            "AB".repeat(16),
            digits[1..].to_owned(),
            format!("{digits}0"),
            format!("{digits}."),
            format!("{digits}.two words"),
            format!("{digits}.{}", "x".repeat(65)),
        ] {
            assert_eq!(Token::read(other.as_bytes()), None, "{other}");
        }
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
