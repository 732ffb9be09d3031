//! A listening socket of one loop, and the connections that it accepts.

use super::bind::Bound;
use rustix::net::SocketAddrAny;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use weir_net::io::runtime::{Acceptor, Runtime};
use weir_net::transport::socket::Raw;

/// The socket.
pub(crate) struct ListeningSocket {
    acceptor: Acceptor,
    is_unix: bool,
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub socket: Raw,
    /// The address of its other end, if it has one.
    pub peer: Option<SocketAddr>,
}

/// One loop's socket of a bound listener, before its runtime runs.
pub(crate) enum LoopSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Bound {
    /// The sockets, one for each loop.
    pub fn sockets(self) -> Vec<LoopSocket> {
        match self {
            Bound::Tcp(sockets, _) => sockets.into_iter().map(LoopSocket::Tcp).collect(),
            Bound::Unix(sockets) => sockets.into_iter().map(LoopSocket::Unix).collect(),
        }
    }
}

impl LoopSocket {
    /// Registers the socket with this loop.
    pub fn watch(self, rt: &Runtime) -> io::Result<ListeningSocket> {
        let (listener, is_unix) = match self {
            LoopSocket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                (OwnedFd::from(socket), false)
            }
            LoopSocket::Unix(socket) => (OwnedFd::from(socket), true),
        };
        Ok(ListeningSocket { acceptor: Acceptor::new(rt, listener)?, is_unix })
    }
}

impl ListeningSocket {
    /// The registered socket.
    pub fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    /// Accepts the next connection.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        self.acceptor.poll_accept(cx).map_ok(|(socket, peer)| self.of_kind(socket, peer))
    }

    fn of_kind(&self, socket: OwnedFd, peer: Option<SocketAddrAny>) -> Accepted {
        match self.is_unix {
            false => {
                let peer = peer.and_then(|peer| peer.try_into().ok());
                Accepted { socket: Raw::Tcp(socket.into()), peer }
            }
            true => Accepted { socket: Raw::Unix(socket.into()), peer: None },
        }
    }

    /// Accepts a connection that waits without an event; `None`: none waits.
    pub fn next(&self) -> io::Result<Option<Accepted>> {
        loop {
            match self.acceptor.accept() {
                Ok((socket, peer)) => return Ok(Some(self.of_kind(socket, peer))),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // Skips a connection that broke before it was accepted.
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }
}
