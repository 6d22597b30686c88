//! When a reply, or a key that is left, is the same on both sides.

use tallylock_core::step::Reply;

/// Remaining times of a server may be that much below those of the memory, whose clock stands still.
const SLOWNESS: u64 = 100_000;

/// A key that is left: its text, or nothing for another type; its remaining milliseconds, or nothing without a TTL.
pub(crate) type Left = (Vec<u8>, Option<Vec<u8>>, Option<u64>);

/// The same reply; remaining times may differ by the slowness, fences that come from a clock by the clocks' difference.
pub(crate) fn same_reply(twin: &Reply, script: &Reply) -> bool {
    match (twin, script) {
        (Reply::Array(twin), Reply::Array(script)) => match (twin.as_slice(), script.as_slice()) {
            ([Reply::Text(word), Reply::Text(most)], [Reply::Text(held), Reply::Text(left)])
                if word == b"held" && held == b"held" =>
            {
                same_ttl(ttl_of(most), ttl_of(left))
            }
            (
                [Reply::Text(word), token, Reply::Text(most), fence],
                [Reply::Text(_), other_token, Reply::Text(left), other_fence],
            ) if word == b"holder" => {
                token == other_token
                    && same_ttl(ttl_of(most), ttl_of(left))
                    && same_reply(fence, other_fence)
            }
            _ => {
                twin.len() == script.len()
                    && twin
                        .iter()
                        .zip(script)
                        .all(|(twin, script)| same_reply(twin, script))
            }
        },
        (Reply::Text(twin), Reply::Text(script)) => same_text(twin, script),
        (Reply::Error(twin), Reply::Error(script)) => kind_of_error(twin) == kind_of_error(script),
        _ => twin == script,
    }
}

/// The same keys with the same types, texts and remaining times.
pub(crate) fn same_left(memory: &[Left], real: &[Left]) -> bool {
    memory.len() == real.len()
        && memory.iter().zip(real).all(|(memory, real)| {
            let same_content = match (&memory.1, &real.1) {
                (Some(memory), Some(real)) => same_text(memory, real),
                (memory, real) => memory == real,
            };
            memory.0 == real.0 && same_content && same_ttl(memory.2, real.2)
        })
}

/// Which of the errors that a script may raise this is; servers before 7 put a sentence of their own around it.
pub(crate) fn kind_of_error(text: &str) -> &'static str {
    let kinds = ["NOSCRIPT", "WRONGTYPE", "not an integer", "would overflow"];
    let found: Vec<_> = kinds
        .into_iter()
        .filter(|kind| text.contains(kind))
        .collect();
    match found.as_slice() {
        [kind] => kind,
        _ => panic!("an error that no script raises: {text}"),
    }
}

/// A text that is a time in microseconds between 2023 and 2049: a fence that a clock has raised.
pub(crate) fn is_clock(text: &[u8]) -> bool {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number
        .is_some_and(|number: u64| (1_690_000_000_000_000..2_500_000_000_000_000).contains(&number))
}

fn same_text(memory: &[u8], real: &[u8]) -> bool {
    memory == real || (is_clock(memory) && is_clock(real))
}

fn same_ttl(memory: Option<u64>, real: Option<u64>) -> bool {
    match (memory, real) {
        (Some(memory), Some(real)) => real <= memory && memory - real < SLOWNESS,
        _ => memory == real,
    }
}

fn ttl_of(text: &[u8]) -> Option<u64> {
    let number: i64 = std::str::from_utf8(text).unwrap().parse().unwrap();
    u64::try_from(number).ok()
}
