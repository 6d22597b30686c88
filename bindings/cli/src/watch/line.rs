//! A line of MONITOR: `1700000000.123456 [0 127.0.0.1:5000] "GET" "key"`.

/// What a server tells of a command.
pub(super) struct Line<'a> {
    seconds: u64,
    pub(super) database: &'a [u8],
    /// A script sent it, not a client.
    pub(super) is_from_a_script: bool,
    pub(super) words: Vec<Vec<u8>>,
}

impl<'a> Line<'a> {
    /// Takes a line apart; gives nothing for another text.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let (time, rest) = split(line, b" [")?;
        let (source, words) = split(rest, b"] ")?;
        let (database, client) = split(source, b" ")?;
        let seconds = time.split(|byte| *byte == b'.').next()?;
        Some(Self {
            seconds: std::str::from_utf8(seconds).ok()?.parse().ok()?,
            database,
            is_from_a_script: client == b"lua",
            words: read_words(words)?,
        })
    }

    /// The time of day, in UTC.
    pub(super) fn clock(&self) -> String {
        let of_day = self.seconds % 86_400;
        format!(
            "{:02}:{:02}:{:02}",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60
        )
    }
}

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..place], &bytes[place + at.len()..]))
}

/// Words in quotation marks, with the escapes that servers write.
fn read_words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut bytes = text.iter().copied();
    loop {
        match bytes.next() {
            None => return Some(words),
            Some(b' ') => continue,
            Some(b'"') => {}
            Some(_) => return None,
        }
        let mut word = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => word.push(match bytes.next()? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => 16 * digit(bytes.next()?)? + digit(bytes.next()?)?,
                    other => other,
                }),
                other => word.push(other),
            }
        }
        words.push(word);
    }
}

fn digit(hexadecimal: u8) -> Option<u8> {
    let digit = char::from(hexadecimal).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            Line::read(br#"1700003661.5 [2 unix:/run/s.sock] "GET" "a \"b\\\n\xff" """#).unwrap();
        assert_eq!(line.clock(), "23:14:21");
        assert_eq!(
            (line.database, line.is_from_a_script),
            (b"2".as_slice(), false)
        );
        assert_eq!(
            line.words,
            [b"GET".to_vec(), b"a \"b\\\n\xff".to_vec(), Vec::new()]
        );
        assert!(
            Line::read(br#"1.0 [0 lua] "PTTL" "k""#)
                .unwrap()
                .is_from_a_script
        );
        for bad in [
            b"OK".as_slice(),
            br#"1.0 [0 lua] "cut"#,
            br#"1.0 [0 lua] "\xg0""#,
            b"x [0 lua] \"GET\"",
        ] {
            assert!(Line::read(bad).is_none());
        }
    }
}
