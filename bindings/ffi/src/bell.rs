//! Wakes an event loop that watches file descriptors.

use std::io::{ErrorKind, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use tallylock::{Code, Error};

use crate::error::CallError;

/// The writing end of a pair of sockets.
pub(crate) struct Bell(UnixStream);

impl Bell {
    /// A bell, and the descriptor of the reading end, which the receiver owns.
    pub(crate) fn new() -> Result<(Self, i32), CallError> {
        let pair = || {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            writer.set_nonblocking(true)?;
            Ok((Self(writer), reader.into_raw_fd()))
        };
        pair().map_err(|error: std::io::Error| {
            Error::new(
                Code::Unavailable,
                format!("the system gives no pair of sockets: {error}"),
            )
            .into()
        })
    }

    pub(crate) fn ring(&self) {
        loop {
            match (&self.0).write(&[1]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Full: it rings already. Closed: nobody listens any more.
                Ok(_) | Err(_) => return,
            }
        }
    }
}
