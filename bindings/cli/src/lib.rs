//! The command `tallylock`, for those who run billing counters and locks on Redis or Valkey: an audit of the keys, a
//! doctor for servers, and views of locks, counters and of what happens. `docs/cli.md` says all about it.
//!
//! It is a library so that packages of other languages can offer the same command: they call [`run`].
//!
//! Reading path: `arguments` is what can be asked for; `audit`, `doctor`, `lock`, `counter` and `watch` answer it, over
//! the blocking client of the crate `tallylock`; `output` and `status` are how they say it.
#![forbid(unsafe_code)]

mod arguments;
mod audit;
mod counter;
mod doctor;
mod duration;
mod lock;
mod output;
mod question;
mod server;
mod status;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};

use arguments::{Command, Parsed};
use status::{Failure, Status};

/// Runs the command with these arguments, the first of which is its own name, and gives the exit code.
///
/// It reads from standard input if it must ask, and writes to standard output and error. It sets no signal handlers: a
/// host with some of its own, as Python has, gives SIGINT its default action before, so that Ctrl-C ends it.
///
/// # Errors
/// None but the exit code: 0 if all is well, else one of those in `docs/cli.md`, with one line on standard error. A
/// reader that goes away (`| head`) is no error.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut output = io::stdout().lock();
    let status = answer(&arguments.into_iter().collect::<Vec<_>>(), &mut output)
        .and_then(|status| Ok(output.flush().map(|()| status)?))
        .unwrap_or_else(Failure::tell);
    status.code()
}

fn answer(arguments: &[OsString], output: &mut dyn Write) -> Result<Status, Failure> {
    match arguments::parse(arguments)? {
        Parsed::Help(text) => {
            write!(output, "{text}")?;
            Ok(Status::Fine)
        }
        Parsed::Command(command) => match command {
            Command::Audit(arguments) => audit::run(&arguments, output),
            Command::Doctor(arguments) => doctor::run(&arguments, output),
            Command::Lock(command) => lock::run(command, output),
            Command::Counter(command) => counter::run(command, output),
            Command::Watch(arguments) => watch::run(&arguments, output),
        },
    }
}
