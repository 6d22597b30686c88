//! A real server, asked word by word on one socket: neither redis-rs nor our own client is in between.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use redis::{Parser, Value};
use tallylock_core::step::{Call, Reply};
use tallylock_core::time::Ttl;

use crate::compare::Left;

pub(crate) struct Real {
    stream: BufReader<TcpStream>,
    parser: Parser,
}

impl Real {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            parser: Parser::new(),
        }
    }

    pub(crate) fn command(&mut self, words: &[impl AsRef<[u8]>]) -> Reply {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word.as_ref());
        }
        let bytes = command.get_packed_command();
        self.stream.get_mut().write_all(&bytes).unwrap();
        reply(self.parser.parse_value(&mut self.stream).unwrap())
    }

    pub(crate) fn call(&mut self, call: &Call) -> Vec<Reply> {
        call.commands
            .iter()
            .map(|words| self.command(words))
            .collect()
    }

    pub(crate) fn put(&mut self, key: &[u8], text: &[u8], ttl: Option<Ttl>) {
        self.command(&[b"SET".as_slice(), key, text]);
        self.expire(key, ttl);
    }

    pub(crate) fn put_list(&mut self, key: &[u8], ttl: Option<Ttl>) {
        self.remove(key);
        self.command(&[b"RPUSH".as_slice(), key, b"x"]);
        self.expire(key, ttl);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.command(&[b"DEL".as_slice(), key]);
    }

    fn expire(&mut self, key: &[u8], ttl: Option<Ttl>) {
        if let Some(ttl) = ttl {
            let millis = ttl.as_millis().to_string();
            self.command(&[b"PEXPIRE".as_slice(), key, millis.as_bytes()]);
        }
    }

    /// Every key with its text, or nothing for another type, and its remaining milliseconds, in the order of the keys.
    pub(crate) fn left(&mut self) -> Vec<Left> {
        let Reply::Array(keys) = self.command(&[b"KEYS".as_slice(), b"*"]) else {
            panic!("KEYS gives an array");
        };
        let mut left: Vec<Left> = keys
            .into_iter()
            .map(|key| {
                let Reply::Text(key) = key else {
                    panic!("a key is a text")
                };
                let text = match self.command(&[b"GET".as_slice(), &key]) {
                    Reply::Text(text) => Some(text),
                    Reply::Error(_) => None,
                    other => panic!("GET of a key that is there gave {other:?}"),
                };
                let Reply::Integer(ttl) = self.command(&[b"PTTL".as_slice(), &key]) else {
                    panic!("PTTL gives a number");
                };
                (key, text, u64::try_from(ttl).ok())
            })
            .collect();
        left.sort();
        left
    }
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(text) => Reply::Text(text),
        Value::SimpleString(text) => Reply::Text(text.into_bytes()),
        Value::Okay => Reply::Text(b"OK".to_vec()),
        Value::Array(values) => Reply::Array(values.into_iter().map(reply).collect()),
        Value::ServerError(error) => Reply::Error(format!(
            "{} {}",
            error.code(),
            error.details().unwrap_or_default()
        )),
        other => panic!("a reply that no script gives: {other:?}"),
    }
}
