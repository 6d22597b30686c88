//! Asking before something is changed.

use std::io::{self, IsTerminal, Write};

use crate::status::Failure;

/// Fails where nobody could be asked, before any work is done.
pub(crate) fn can_be_asked() -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "this changes data and asks first; where there is no terminal, give --yes",
    ))
}

/// Asks on standard error; only `y` and `yes` mean yes.
pub(crate) fn ask(question: &str) -> Result<bool, Failure> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
