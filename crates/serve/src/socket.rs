//! A connected socket as the relay sees it: four poll functions. Protocols on top (TLS) will be further variants.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A stream of bytes both ways.
pub(crate) enum Socket {
    /// TCP, of either version of IP.
    Tcp(TcpStream),
    /// A Unix socket, named or one of a pair.
    Unix(UnixStream),
}

impl Socket {
    /// Reads what has come, at most as much as fits; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            Socket::Tcp(s) => Pin::new(s).poll_read(cx, &mut buffer),
            Socket::Unix(s) => Pin::new(s).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Writes as much as is taken.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_write(cx, bytes),
            Socket::Unix(s) => Pin::new(s).poll_write(cx, bytes),
        }
    }

    /// What was written has left this process. (Sockets keep nothing back; TLS will.)
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_flush(cx),
            Socket::Unix(s) => Pin::new(s).poll_flush(cx),
        }
    }

    /// Says that nothing more will be written.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Socket::Unix(s) => Pin::new(s).poll_shutdown(cx),
        }
    }

    /// Whether the other side has ended or broken the connection, though bytes may still lie unread.
    pub fn is_hung_up(&self) -> bool {
        self.events(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }

    /// Whether something can be read, though no event may have told yet.
    pub fn has_input(&self) -> bool {
        self.events(PollFlags::IN)
    }

    /// Whether the connection is broken in both directions.
    pub fn is_broken(&self) -> bool {
        self.events(PollFlags::HUP | PollFlags::ERR)
    }

    /// The other side's address; `None` for Unix sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(s) => s.peer_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    fn events(&self, any: PollFlags) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), any)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().intersects(any)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(s) => s.as_fd(),
            Socket::Unix(s) => s.as_fd(),
        }
    }
}
