//! SHA-1 that the compiler can run too: a script's name is made with the program, not by it.
//!
//! Source: FIPS 180-4, section 6.1. It protects no secret here: servers name scripts by it, and seeds are mixed by it.

/// The digest of a message.
pub(crate) const fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state = [
        0x6745_2301,
        0xEFCD_AB89,
        0x98BA_DCFE,
        0x1032_5476,
        0xC3D2_E1F0,
    ];
    // A mark and the length in bits follow the message.
    let blocks = (message.len() + 1 + 8).div_ceil(64);
    let mut block = 0;
    while block < blocks {
        let length = (8 * message.len() as u64).to_be_bytes();
        let mut words = [0_u32; 16];
        let mut at = 0;
        while at < 64 {
            let place = 64 * block + at;
            let byte = if place < message.len() {
                message[place]
            } else if place == message.len() {
                0x80
            } else if place >= 64 * blocks - length.len() {
                length[place % 8]
            } else {
                0
            };
            words[at / 4] = words[at / 4] << 8 | byte as u32;
            at += 1;
        }
        state = compressed(state, words);
        block += 1;
    }
    let mut digest = [0; 20];
    let mut at = 0;
    while at < 20 {
        digest[at] = state[at / 4].to_be_bytes()[at % 4];
        at += 1;
    }
    digest
}

/// The state after one more block.
#[allow(clippy::many_single_char_names, reason = "the standard's own names")]
const fn compressed(state: [u32; 5], mut words: [u32; 16]) -> [u32; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = state;
    let mut round = 0;
    while round < 80 {
        let place = round % 16;
        if round >= 16 {
            let mixed =
                words[(round + 13) % 16] ^ words[(round + 8) % 16] ^ words[(round + 2) % 16];
            words[place] = (mixed ^ words[place]).rotate_left(1);
        }
        let (mixed, constant) = match round / 20 {
            0 => (b & c | !b & d, 0x5A82_7999),
            1 => (b ^ c ^ d, 0x6ED9_EBA1),
            2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
            _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mixed)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(words[place]);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        round += 1;
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
        state[4].wrapping_add(e),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_another_implementation(message in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(sha1(&message), sha1_smol::Sha1::from(&message).digest().bytes());
        }
    }
}
