//! RESP, read one value at a time together with the very bytes it came in.

use std::io::{self, Read};

use redis::{Parser, PushKind, Value};

/// A command as a client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// What goes on to the server, unchanged.
    pub(super) bytes: Vec<u8>,
    words: Vec<Vec<u8>>,
}

impl Request {
    /// The next request, or nothing when the client has closed.
    pub(super) fn read(from: &mut Tap<impl Read>) -> io::Result<Option<Self>> {
        let Some((bytes, value)) = from.value()? else {
            return Ok(None);
        };
        let Value::Array(items) = value else {
            return Err(malformed("a request that is no array"));
        };
        let words: Option<Vec<_>> = items
            .into_iter()
            .map(|item| match item {
                Value::BulkString(word) => Some(word),
                _ => None,
            })
            .collect();
        match words {
            Some(words) if !words.is_empty() => Ok(Some(Self { bytes, words })),
            _ => Err(malformed("a request that is no array of strings")),
        }
    }

    /// The command's name in capitals, as the statistics show it.
    pub(super) fn command(&self) -> String {
        String::from_utf8_lossy(&self.words[0]).to_ascii_uppercase()
    }

    /// What follows the command's name.
    pub(super) fn arguments(&self) -> &[Vec<u8>] {
        &self.words[1..]
    }

    /// Whether these bytes occur in the request as it was sent.
    pub(super) fn contains(&self, text: &[u8]) -> bool {
        self.bytes.windows(text.len()).any(|window| window == text)
    }
}

/// A value that a server sent.
#[derive(Debug)]
pub(super) struct Reply {
    /// What goes on to the client, unchanged.
    pub(super) bytes: Vec<u8>,
    value: Value,
}

impl Reply {
    /// The next value, or nothing when the server has closed.
    pub(super) fn read(from: &mut Tap<impl Read>) -> io::Result<Option<Self>> {
        Ok(from.value()?.map(|(bytes, value)| Self { bytes, value }))
    }

    /// Whether it answers no request: a published message, say.
    pub(super) fn is_unasked(&self, subscribed: bool) -> bool {
        match &self.value {
            Value::Push { kind, .. } => !matches!(
                kind,
                PushKind::Subscribe
                    | PushKind::PSubscribe
                    | PushKind::SSubscribe
                    | PushKind::Unsubscribe
                    | PushKind::PUnsubscribe
                    | PushKind::SUnsubscribe
            ),
            // Before RESP3 a message looks like any array; only a connection that has subscribed gets them.
            Value::Array(items) if subscribed => {
                matches!(items.first(), Some(Value::BulkString(word)) if word.ends_with(b"message"))
            }
            _ => false,
        }
    }
}

/// Hands a stream to redis-rs' parser byte by byte, so that the parser never holds the start of the next value, and keeps
/// what it took.
pub(super) struct Tap<R> {
    stream: R,
    parser: Parser,
    taken: Vec<u8>,
}

impl<R: Read> Tap<R> {
    /// The stream had better be buffered.
    pub(super) fn new(stream: R) -> Self {
        Self {
            stream,
            parser: Parser::new(),
            taken: Vec::new(),
        }
    }

    fn value(&mut self) -> io::Result<Option<(Vec<u8>, Value)>> {
        let Self {
            stream,
            parser,
            taken,
        } = self;
        let parsed = parser.parse_value(OneByte { stream, taken });
        let bytes = std::mem::take(taken);
        match parsed {
            Ok(value) => Ok(Some((bytes, value))),
            Err(_) if bytes.is_empty() => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

struct OneByte<'a, R> {
    stream: &'a mut R,
    taken: &'a mut Vec<u8>,
}

impl<R: Read> Read for OneByte<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let one = buffer.len().min(1);
        let count = self.stream.read(&mut buffer[..one])?;
        self.taken.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_one_by_one_with_their_bytes() {
        let stream = b"*2\r\n$3\r\nget\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n".as_slice();
        let mut tap = Tap::new(stream);
        let get = Request::read(&mut tap).unwrap().unwrap();
        assert_eq!(get.command(), "GET");
        assert_eq!(get.arguments(), [b"a\r\nb".to_vec()]);
        assert!(get.contains(b"a\r\nb") && !get.contains(b"PING"));
        let ping = Request::read(&mut tap).unwrap().unwrap();
        assert_eq!(ping.bytes, b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(Request::read(&mut tap).unwrap(), None);
    }

    #[test]
    fn a_request_that_breaks_off_is_an_error() {
        let mut tap = Tap::new(b"*2\r\n$3\r\nGET\r\n$4\r\na".as_slice());
        assert!(Request::read(&mut tap).is_err());
    }

    #[test]
    fn anything_but_an_array_of_strings_is_refused() {
        for stream in ["+PING\r\n", "*0\r\n", "*1\r\n:1\r\n"] {
            assert!(
                Request::read(&mut Tap::new(stream.as_bytes())).is_err(),
                "{stream:?}"
            );
        }
    }

    #[test]
    fn messages_answer_no_request() {
        let message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n".as_slice();
        let reply = Reply::read(&mut Tap::new(message)).unwrap().unwrap();
        assert!(reply.is_unasked(true));
        assert!(!reply.is_unasked(false));
        let push = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n".as_slice();
        let reply = Reply::read(&mut Tap::new(push)).unwrap().unwrap();
        assert!(reply.is_unasked(false));
        let subscribed = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n".as_slice();
        let reply = Reply::read(&mut Tap::new(subscribed)).unwrap().unwrap();
        assert!(!reply.is_unasked(true));
    }
}
