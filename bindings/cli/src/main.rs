//! The command `tallylock`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tallylock_cli::run(std::env::args_os()))
}
