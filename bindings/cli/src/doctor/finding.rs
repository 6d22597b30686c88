//! What a doctor finds.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use tallylock::{Code, Error};

/// How bad it is, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Ok,
    /// The account may not see it, or the server does not tell.
    Unseen,
    Warning,
    Problem,
}

/// One thing that was looked at.
#[derive(Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    /// Why it matters.
    pub(super) why: &'static str,
    /// What to do about it; nothing if it is well.
    pub(super) fix: Option<String>,
}

/// A thing to look at, and why.
#[derive(Clone, Copy)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
}

impl Check {
    pub(super) fn ok(self, found: impl Into<String>) -> Finding {
        self.finding(Level::Ok, found, None)
    }

    pub(super) fn warning(self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Level::Warning, found, Some(fix.into()))
    }

    pub(super) fn problem(self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Level::Problem, found, Some(fix.into()))
    }

    pub(super) fn unseen(self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Level::Unseen, found, Some(fix.into()))
    }

    /// For a command that the server refused.
    pub(super) fn refused(self, command: &str) -> Finding {
        self.unseen(
            format!("cannot be seen: {command} is refused"),
            format!("ask whoever runs the server, or let this account call {command}"),
        )
    }

    fn finding(self, level: Level, found: impl Into<String>, fix: Option<String>) -> Finding {
        Finding {
            check: self.name,
            level,
            found: found.into(),
            why: self.why,
            fix,
        }
    }
}

/// For a server that cannot be talked to.
pub(super) fn unreachable(error: &Error) -> Finding {
    let check = Check {
        name: "connection",
        why: "a server that does not answer counts nothing and gives no locks",
    };
    let fix = match error.code() {
        Code::Forbidden => "check user and password in the URL",
        _ => "check the address, the network, and whether the server runs",
    };
    check.problem(
        format!("{}: {}", error.code().as_str(), error.detail()),
        fix,
    )
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unseen => "unseen",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    /// The sequence that gives a terminal its colour.
    const fn colour(self) -> &'static str {
        match self {
            Self::Ok => "\x1b[32m",
            Self::Unseen => "\x1b[2m",
            Self::Warning => "\x1b[33m",
            Self::Problem => "\x1b[31m",
        }
    }
}

impl Finding {
    pub(super) fn print(&self, output: &mut dyn Write) -> io::Result<()> {
        let (colour, end) = if has_colours() {
            (self.level.colour(), "\x1b[0m")
        } else {
            ("", "")
        };
        let word = self.level.word();
        writeln!(
            output,
            "  {colour}{word:<8}{end}{:<13}{}",
            self.check, self.found
        )?;
        if self.level != Level::Ok {
            writeln!(output, "  {:21}why: {}", "", self.why)?;
        }
        if let Some(fix) = &self.fix {
            writeln!(output, "  {:21}fix: {fix}", "")?;
        }
        Ok(())
    }
}

/// Whether colours are wanted: on a terminal, unless `NO_COLOR` says otherwise.
fn has_colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted
}
