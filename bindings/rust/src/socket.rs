//! What can be told about a socket without asking the other side.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// What lies in a socket's receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Nothing.
    Quiet,
    /// Bytes that nobody has read yet.
    Unread,
    /// The end: the other side has closed the connection, or it was reset.
    Closed,
}

/// After so many milliseconds without use, a connection is looked at before it is used: the server may have gone.
pub(crate) const TRUSTED_FOR: u64 = 5;

/// Looks into the receive buffer and leaves it as it is.
pub(crate) fn look(socket: impl AsFd) -> Look {
    let mut byte = [0_u8; 1];
    match recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Err(Errno::WOULDBLOCK) => Look::Quiet,
        Ok((_, 1..)) => Look::Unread,
        Ok(_) | Err(_) => Look::Closed,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_look_changes_nothing() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(look(&ours), Look::Quiet);
        theirs.write_all(b"x").unwrap();
        assert_eq!((look(&ours), look(&ours)), (Look::Unread, Look::Unread));
        drop(theirs);
        assert_eq!(
            look(&ours),
            Look::Unread,
            "what was sent before comes first"
        );
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(look(&ours), Look::Closed);
    }
}
