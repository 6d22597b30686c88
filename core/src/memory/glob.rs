//! Patterns as KEYS and SCAN understand them: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that is meant as it is.

/// Whether the whole text matches the pattern, as KEYS and SCAN understand it.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        _ => match (one(pattern, text.first().copied()), text) {
            (Some(rest), [_, others @ ..]) => matches(rest, others),
            _ => false,
        },
    }
}

/// The pattern behind its first element, if that matches this character.
fn one(pattern: &[u8], character: Option<u8>) -> Option<&[u8]> {
    let character = character?;
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', set @ ..] => {
            let (negated, set) = match set {
                [b'^', set @ ..] => (true, set),
                _ => (false, set),
            };
            let end = set.iter().position(|end| *end == b']').unwrap_or(set.len());
            let rest = set.get(end + 1..).unwrap_or_default();
            (contains(&set[..end], character) != negated).then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            (*literal == character).then_some(rest)
        }
        [] => None,
    }
}

fn contains(set: &[u8], character: u8) -> bool {
    match set {
        [from, b'-', to, rest @ ..] => {
            (*from..=*to).contains(&character) || contains(rest, character)
        }
        [literal, rest @ ..] => *literal == character || contains(rest, character),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_a_server_does_it() {
        let cases = [
            ("*", "", true),
            ("session:*", "session:42", true),
            ("session:*:b", "session:42:x:b", true),
            ("session:*", "invoice:42", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
