//! `tallylock lock steal`.

use std::ffi::OsStr;
use std::io::Write;

use tallylock::blocking::Lock;

use super::{ANY_TTL, Held};
use crate::output::{bytes, text};
use crate::question;
use crate::server::Server;
use crate::status::{Failure, Status};

pub(super) fn run(
    server: &Server,
    key: &OsStr,
    expected: &OsStr,
    reason: &str,
    yes: bool,
    output: &mut dyn Write,
) -> Result<Status, Failure> {
    let key = server.key(key)?;
    let expected = bytes(expected.as_encoded_bytes());
    if reason.trim().is_empty() {
        return Err(Failure::usage("--reason says nothing"));
    }
    if !yes {
        question::can_be_asked()?;
    }
    let lock = server.client()?.lock(key, ANY_TTL)?;
    if !yes {
        match asked(&lock, key, &expected)? {
            Some(true) => {}
            Some(false) => return Ok(Status::Nothing),
            None => return not_held(output),
        }
    }
    let Some(stolen) = lock.steal(expected, reason)? else {
        return not_held(output);
    };
    writeln!(output, "{}", text(stolen.message.as_bytes()))?;
    Ok(Status::Fine)
}

/// Whether it is to be stolen; nothing if there is no question, since another holds it, or nobody.
fn asked(lock: &Lock, key: &[u8], expected: &[u8]) -> Result<Option<bool>, Failure> {
    let holder = lock.inspect()?;
    let Some(holder) = holder.filter(|holder| holder.token == expected) else {
        return Ok(None);
    };
    let held = Held::by(key, &holder, false);
    let question = format!(
        "Take the lock from {}, remaining {}?",
        held.who(),
        held.remaining()
    );
    question::ask(&question).map(Some)
}

fn not_held(output: &mut dyn Write) -> Result<Status, Failure> {
    writeln!(output, "this token does not hold it")?;
    Ok(Status::Nothing)
}
