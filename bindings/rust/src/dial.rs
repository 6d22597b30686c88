//! Opening a socket, without a deadline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tallylock_core::step::Undelivered;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::endpoint::Address;
use crate::tls;

/// What bytes go through, with or without TLS.
pub(crate) type Stream = Box<dyn Duplex>;

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Duplex for S {}

/// Connects; gives the socket a second time too, to look at.
pub(crate) async fn dial(address: &Address) -> Result<(Stream, OwnedFd), Undelivered> {
    let not_sent =
        |error: io::Error| Undelivered::NotSent(format!("cannot connect to {address}: {error}"));
    match address {
        Address::Unix(path) => {
            let socket = UnixStream::connect(path).await.map_err(not_sent)?;
            let view = view(&socket).map_err(not_sent)?;
            Ok((Box::new(socket), view))
        }
        Address::Tcp { host, port } => {
            let socket = connect_tcp(host, *port).await.map_err(not_sent)?;
            let view = view(&socket).map_err(not_sent)?;
            Ok((Box::new(socket), view))
        }
        Address::Tls { host, port } => {
            let (connector, name) = (TlsConnector::from(tls::config()?), tls::server_name(host)?);
            let socket = connect_tcp(host, *port).await.map_err(not_sent)?;
            let view = view(&socket).map_err(not_sent)?;
            let stream = connector
                .connect(name, socket)
                .await
                .map_err(|error| tls::undelivered(&error))?;
            Ok((Box::new(stream), view))
        }
    }
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn view(socket: &impl AsFd) -> io::Result<OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}
