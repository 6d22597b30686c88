//! The command `tallylock`, for a package that brings it along.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Runs the command with these arguments, the first of which is its own name, and gives the exit code.
#[uniffi::export]
pub fn command_line(arguments: Vec<Vec<u8>>) -> u8 {
    tallylock_cli::run(arguments.into_iter().map(OsString::from_vec))
}
