//! What a seed leads to: always the same numbers, in the same order.

/// A generator of numbers, `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.number() % (most - least + 1)
    }

    /// True so often in a thousand.
    pub(crate) fn happens(&mut self, per_thousand: u64) -> bool {
        self.number() % 1000 < per_thousand
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let last = choices.len() as u64 - 1;
        let chosen = self.between(0, last);
        choices[usize::try_from(chosen).expect("there are few choices")]
    }

    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.number().to_be_bytes());
        bytes[8..].copy_from_slice(&self.number().to_be_bytes());
        bytes
    }
}
