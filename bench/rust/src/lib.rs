//! What the floors share: the script that all contestants run, and how a command is encoded.
#![forbid(unsafe_code)]

/// The script of an add.
pub const COUNTER_ADD: &str = include_str!("../../../core/lua/counter_add.lua");

/// A command as a server reads it.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command.extend(["$", &word.len().to_string(), "\r\n", word, "\r\n"]);
    }
    command.into_bytes()
}
