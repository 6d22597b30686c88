//! Commands as JavaScript gets them, and replies as it gives them: in RESP, one piece of bytes, since each thing that crosses costs
//! as much as all that is in it.

use tallylock_core::error::{Code, Error};
use tallylock_core::step::{Command, Outcome, Reply, Undelivered};

/// The commands.
pub(crate) fn encode(commands: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    let head = |bytes: &mut Vec<u8>, mark: u8, count: usize| {
        bytes.push(mark);
        bytes.extend_from_slice(count.to_string().as_bytes());
        bytes.extend_from_slice(b"\r\n");
    };
    for command in commands {
        head(&mut bytes, b'*', command.len());
        for argument in command {
            head(&mut bytes, b'$', argument.len());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

/// One reply a command, out of RESP that our own side has cut to size; nothing of what is none.
pub(crate) fn decode(resp: &[u8]) -> Outcome {
    let mut reader = Reader { rest: resp };
    let mut replies = Vec::new();
    while !reader.rest.is_empty() {
        let reply = reader.reply(DEEPEST).ok_or_else(|| {
            Undelivered::MaybeSent("the server answered with something that is no reply".into())
        })?;
        replies.push(reply);
    }
    Ok(replies)
}

/// Why there are no replies, in the words of a transport: `sent` is `no`, `refused`, or anything else for `maybe`.
///
/// A refusal has either the server's own words or ours.
pub(crate) fn undelivered(sent: &str, message: String, server_words: Option<&str>) -> Undelivered {
    match sent {
        "no" => Undelivered::NotSent(message),
        "refused" => refused(message, server_words),
        _ => Undelivered::MaybeSent(message),
    }
}

fn refused(message: String, server_words: Option<&str>) -> Undelivered {
    let Some(words) = server_words else {
        return Undelivered::Refused(Error::new(Code::Unavailable, message));
    };
    let error = Error::from_reply(words);
    match error.code() {
        // Not ready yet, or too many connections: a little later it may be different.
        Code::Unavailable => Undelivered::NotSent(words.into()),
        Code::Unsupported if is_about_database(words) => Undelivered::Refused(Error::new(
            Code::InvalidArgument,
            format!("the server refuses the database: {words}"),
        )),
        _ => Undelivered::Refused(error),
    }
}

fn is_about_database(words: &str) -> bool {
    words.as_bytes().windows(8).any(|part| part == b"DB index")
}

/// How deep lists may stand in one another, lest the stack ends.
const DEEPEST: u32 = 16;

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn reply(&mut self, depth: u32) -> Option<Reply> {
        let depth = depth.checked_sub(1)?;
        let (mark, line) = self.line()?.split_first()?;
        Some(match mark {
            b'+' => Reply::Text(line.to_vec()),
            b'-' => Reply::Error(String::from_utf8_lossy(line).into_owned()),
            _ => match (mark, number(line)?) {
                (b':', number) => Reply::Integer(number),
                (_, -1) => Reply::Nil,
                (b'$', length) => {
                    let length = usize::try_from(length).ok()?;
                    let text = self.take(length)?.to_vec();
                    self.take(2)?;
                    Reply::Text(text)
                }
                (b'*', length) => {
                    let mut list = Vec::new();
                    for _ in 0..length {
                        list.push(self.reply(depth)?);
                    }
                    Reply::Array(list)
                }
                _ => return None,
            },
        })
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\r')?;
        let line = self.take(end)?;
        self.take(2)?;
        Some(line)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

fn number(line: &[u8]) -> Option<i64> {
    core::str::from_utf8(line).ok()?.parse().ok()
}
