//! A socket whose reads and writes end at a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use tallylock_core::step::Undelivered;

use super::deadline::Deadline;
use crate::endpoint::Address;
use crate::socket::{Look, look};
use crate::tls;

/// So many bytes fit into the send buffer of any socket that owes nothing: writing them does not block.
const FITS_EVERYWHERE: usize = 4096;

/// A connected socket.
///
/// The kernel's time-outs are not set for each call, which would cost more than half of what a call costs otherwise:
/// they stand at a *slice* of the usual time-out, after which the deadline is looked at, and are only set anew when less
/// than that is left.
pub(super) struct Stream {
    socket: Socket,
    slice: Duration,
    read_timeout: Duration,
    write_timeout: Duration,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects before the deadline.
    pub(super) fn connect(
        address: &Address,
        slice: Duration,
        deadline: &mut Deadline,
    ) -> Result<Self, Undelivered> {
        let not_sent = |error: io::Error| {
            Undelivered::NotSent(format!("cannot connect to {address}: {error}"))
        };
        let plain = |socket| Self {
            socket,
            slice,
            read_timeout: Duration::ZERO,
            write_timeout: Duration::ZERO,
        };
        match address {
            Address::Unix(path) => UnixStream::connect(path)
                .map(|socket| plain(Socket::Unix(socket)))
                .map_err(not_sent),
            Address::Tcp { host, port } => connect_tcp(host, *port, deadline)
                .map(|socket| plain(Socket::Tcp(socket)))
                .map_err(not_sent),
            Address::Tls { host, port } => {
                let session = ClientConnection::new(tls::config()?, tls::server_name(host)?)
                    .map_err(|error| tls::undelivered(&io::Error::other(error)))?;
                let socket = connect_tcp(host, *port, deadline).map_err(not_sent)?;
                let mut stream = plain(Socket::Tls(Box::new(StreamOwned::new(session, socket))));
                stream
                    .shake_hands(deadline)
                    .map_err(|error| tls::undelivered(&error))?;
                Ok(stream)
            }
        }
    }

    /// Writes all of it before the deadline. After an error some bytes may be on their way, but not all.
    pub(super) fn write_all(
        &mut self,
        mut bytes: &[u8],
        deadline: &mut Deadline,
    ) -> io::Result<()> {
        let may_block = bytes.len() > FITS_EVERYWHERE;
        while !bytes.is_empty() {
            match self.write_some(deadline, |socket| socket.write(bytes))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        if may_block {
            deadline.refresh();
        }
        match self.socket {
            // What was written already is not to fail for a flush of nothing.
            Socket::Tls(ref stream) if stream.conn.wants_write() => {
                self.write_some(deadline, Write::flush)
            }
            Socket::Tls(_) | Socket::Tcp(_) | Socket::Unix(_) => Ok(()),
        }
    }

    /// Reads what there is, waiting for it until the deadline.
    pub(super) fn read(&mut self, buffer: &mut [u8], deadline: &mut Deadline) -> io::Result<usize> {
        loop {
            self.limit_read(deadline)?;
            match self.socket.read(buffer) {
                Err(error) if is_passing(&error) => deadline.refresh(),
                result => return result,
            }
        }
    }

    /// Whether the other side has neither closed the connection nor sent anything.
    pub(super) fn is_quiet(&self) -> bool {
        look(self.socket.fd()) == Look::Quiet
    }

    fn shake_hands(&mut self, deadline: &mut Deadline) -> io::Result<()> {
        loop {
            deadline.refresh();
            self.limit_read(deadline)?;
            self.limit_write(deadline)?;
            let Socket::Tls(stream) = &mut self.socket else {
                return Ok(());
            };
            if !stream.conn.is_handshaking() {
                return Ok(());
            }
            match stream.conn.complete_io(&mut stream.sock) {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
        }
    }

    fn write_some<T>(
        &mut self,
        deadline: &mut Deadline,
        mut write: impl FnMut(&mut Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            self.limit_write(deadline)?;
            match write(&mut self.socket) {
                Err(error) if is_passing(&error) => deadline.refresh(),
                result => return result,
            }
        }
    }

    fn limit_read(&mut self, deadline: &Deadline) -> io::Result<()> {
        if let Some(limit) = limit(self.read_timeout, self.slice, deadline.left()?) {
            self.socket.tcp_or_unix(
                |tcp| tcp.set_read_timeout(Some(limit)),
                |unix| unix.set_read_timeout(Some(limit)),
            )?;
            self.read_timeout = limit;
        }
        Ok(())
    }

    fn limit_write(&mut self, deadline: &Deadline) -> io::Result<()> {
        if let Some(limit) = limit(self.write_timeout, self.slice, deadline.left()?) {
            self.socket.tcp_or_unix(
                |tcp| tcp.set_write_timeout(Some(limit)),
                |unix| unix.set_write_timeout(Some(limit)),
            )?;
            self.write_timeout = limit;
        }
        Ok(())
    }
}

impl Socket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }

    fn tcp_or_unix<T>(
        &self,
        tcp: impl FnOnce(&TcpStream) -> T,
        unix: impl FnOnce(&UnixStream) -> T,
    ) -> T {
        match self {
            Self::Tcp(socket) => tcp(socket),
            Self::Unix(socket) => unix(socket),
            Self::Tls(stream) => tcp(&stream.sock),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.flush(),
            Self::Unix(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// What the kernel's time-out must be set to, if it cannot stay.
fn limit(present: Duration, slice: Duration, left: Duration) -> Option<Duration> {
    let wanted = slice.min(left);
    (present > left || present < wanted).then_some(wanted)
}

/// Whether a read or write ended for a reason that says nothing about the connection: a signal, or the end of a slice.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
    )
}

fn connect_tcp(host: &str, port: u16, deadline: &mut Deadline) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in resolve(host, port, deadline.left()?)? {
        deadline.refresh();
        match TcpStream::connect_timeout(&address, deadline.left()?) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                deadline.refresh();
                return Ok(socket);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The addresses of a host. A name is looked up on a thread of its own, since the system's resolver knows no deadline.
fn resolve(host: &str, port: u16, patience: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let host = host.to_owned();
    thread::Builder::new()
        .name("tallylock-resolve".into())
        .spawn(move || {
            let found = (host.as_str(), port)
                .to_socket_addrs()
                .map(Iterator::collect);
            // Nobody waits for it any more if the deadline has passed.
            let _ = sender.send(found);
        })?;
    match receiver.recv_timeout(patience) {
        Ok(found) => found,
        Err(_) => Err(io::Error::new(
            ErrorKind::TimedOut,
            "the name was not resolved in time",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_out_of_the_kernel_stays_while_it_does() {
        let (slice, far) = (Duration::from_millis(500), Duration::from_secs(60));
        assert_eq!(limit(slice, slice, far), None);
        assert_eq!(limit(Duration::ZERO, slice, far), Some(slice));
        let near = Duration::from_millis(100);
        assert_eq!(limit(slice, slice, near), Some(near));
        assert_eq!(limit(near, slice, far), Some(slice), "and back again");
    }
}
