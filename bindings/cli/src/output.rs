//! How things are shown: keys, tables, JSON.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::duration;

/// Bytes as text: what is not UTF-8, a control character or a backslash stands there as `\xHH`, so that nothing can play with
/// the terminal and no two keys look alike.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    let escape = |shown: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                escape(&mut shown, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                shown.push(character);
            }
        }
        escape(&mut shown, chunk.invalid());
    }
    shown
}

/// The bytes that [`text`] shows like this. What it never shows stands for itself.
pub(crate) fn bytes(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|rest| {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, &rest[2..]))
        });
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// A remaining time for people.
pub(crate) fn remaining(time: Option<Duration>) -> String {
    time.map_or_else(|| "without a TTL".to_owned(), duration::shown)
}

/// A remaining time in whole milliseconds for JSON.
pub(crate) fn remaining_ms(time: Option<Duration>) -> Option<u64> {
    time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Writes columns under their names; those whose name begins with `>` are numbers and stand to the right.
pub(crate) fn table<const COLUMNS: usize>(
    output: &mut dyn Write,
    names: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(names.map(|name| name.trim_start_matches('>')));
    table.add_rows(rows);
    for (column, name) in table.column_iter_mut().zip(names) {
        column.set_padding((0, 2));
        if name.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes a document of JSON.
pub(crate) fn json(output: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *output, document)?;
    writeln!(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_key_reaches_the_terminal() {
        assert_eq!(text("session:42:größe".as_bytes()), "session:42:größe");
        assert_eq!(text(b"a\x1b[31m\\\n\xff\x00"), r"a\x1b[31m\x5c\x0a\xff\x00");
        assert_eq!(text("\u{9b}".as_bytes()), r"\xc2\x9b");
    }

    #[test]
    fn columns_stand_under_their_names() {
        let mut output = Vec::new();
        let rows = [
            ["a".to_owned(), "10".to_owned()],
            ["long name".to_owned(), "7".to_owned()],
        ];
        table(&mut output, ["NAME", ">SUM"], rows).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "NAME       SUM\na           10\nlong name    7\n"
        );
    }
}
