//! How a command ends: its exit code, and the line that says why.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use tallylock::{Code, Error};

/// An exit code. From 64 on they are those of `sysexits.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Status {
    /// All is well.
    Fine = 0,
    /// There is no such key, the question was answered with no, or `doctor --strict` has warnings.
    Nothing = 1,
    /// `doctor` has found problems.
    Problems = 2,
    /// The arguments are wrong.
    Usage = 64,
    /// The key holds something else.
    Data = 65,
    /// The server cannot be reached, or does not answer.
    Unavailable = 69,
    /// The server cannot do this.
    Unsupported = 70,
    /// The output cannot be written.
    Output = 74,
    /// Whether it was done is not known.
    Unknown = 75,
    /// The password is wrong, or the account may not do this.
    Forbidden = 77,
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the output has gone: there is nobody to tell.
    ReaderGone,
    /// To be told in one line.
    Told(Status, String),
}

impl Status {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl Failure {
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self::Told(Status::Usage, why.into())
    }

    /// The same failure, with what was done before it.
    pub(crate) fn after(self, done: impl Display) -> Self {
        match self {
            Self::ReaderGone => Self::ReaderGone,
            Self::Told(status, why) => Self::Told(status, format!("{why} ({done})")),
        }
    }

    /// Tells it on standard error, and gives the exit code.
    pub(crate) fn tell(self) -> Status {
        match self {
            Self::ReaderGone => Status::Fine,
            Self::Told(status, why) => {
                // Where standard error is closed, the exit code is all that can be told.
                let _ = writeln!(io::stderr(), "tallylock: {why}");
                status
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.code() {
            Code::InvalidArgument => Status::Usage,
            Code::WrongType | Code::NotAnInteger | Code::Overflow | Code::Conflict => Status::Data,
            Code::Unavailable | Code::Timeout => Status::Unavailable,
            Code::OutcomeUnknown => Status::Unknown,
            Code::Forbidden => Status::Forbidden,
            _ => Status::Unsupported,
        };
        Self::Told(status, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::Told(
            Status::Output,
            format!("the output cannot be written: {error}"),
        )
    }
}
