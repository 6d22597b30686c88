//! A server for tests that answers the hello alone, when the test lets it, and tells in which order calls came.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tallylock_core::step::{Call, CallId, Lane, Node};
use tallylock_core::time::Ttl;
use tokio::runtime::Handle;

use crate::connections::Connections;
use crate::endpoint::Target;

/// Longer than any test.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Listener(TcpListener);

/// A connection whose hello was not answered yet.
pub(crate) struct Accepted(TcpStream);

impl Listener {
    pub(crate) fn bind() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Connections to it that are opened on this runtime.
    pub(crate) fn connections(&self, runtime: &Handle) -> Arc<Connections> {
        let url = format!("redis://{}", self.0.local_addr().unwrap());
        let Target::Server(endpoint) = Target::parse(&url).unwrap() else {
            unreachable!("it is no server in memory")
        };
        Arc::new(Connections::new(endpoint, timeout(), runtime.clone()))
    }

    /// Waits for a connection, and for its hello.
    pub(crate) fn accept(&self) -> Accepted {
        let (mut stream, _) = self.0.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        Accepted(stream)
    }
}

impl Accepted {
    /// Answers the hello, and tells which [calls](call) come then until the last.
    pub(crate) fn serve(mut self, last: u32) -> Vec<u32> {
        self.0.write_all(b"+OK\r\n").unwrap();
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        let last = format!("{last:04}\r\n");
        while !text.ends_with(&last) {
            let count = self.0.read(&mut bytes).unwrap();
            assert!(count > 0, "{text}");
            text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        let calls = text.split("ECHO\r\n$4\r\n").skip(1);
        calls.map(|call| call[..4].parse().unwrap()).collect()
    }
}

pub(crate) fn call(number: u32) -> Call {
    Call {
        id: CallId(number),
        node: Node::ONLY,
        lane: Lane::Shared,
        commands: vec![vec![
            b"ECHO".as_slice().into(),
            format!("{number:04}").into_bytes().into(),
        ]],
    }
}

/// How long is waited for an answer.
pub(crate) fn timeout() -> Ttl {
    Ttl::from_duration(TIMEOUT).unwrap()
}
