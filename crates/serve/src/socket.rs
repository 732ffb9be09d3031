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
    /// It was closed, though somebody may still know it.
    Closed,
}

/// What every use of a closed socket says.
fn closed<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl Socket {
    /// Reads what has come, at most as much as fits; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            Socket::Tcp(s) => Pin::new(s).poll_read(cx, &mut buffer),
            Socket::Unix(s) => Pin::new(s).poll_read(cx, &mut buffer),
            Socket::Closed => return closed(),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Writes as much as is taken.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_write(cx, bytes),
            Socket::Unix(s) => Pin::new(s).poll_write(cx, bytes),
            Socket::Closed => closed(),
        }
    }

    /// What was written has left this process. (Sockets keep nothing back; TLS will.)
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_flush(cx),
            Socket::Unix(s) => Pin::new(s).poll_flush(cx),
            Socket::Closed => closed(),
        }
    }

    /// Says that nothing more will be written.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Socket::Unix(s) => Pin::new(s).poll_shutdown(cx),
            Socket::Closed => closed(),
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
            Socket::Unix(_) | Socket::Closed => None,
        }
    }

    /// From now on closing it ends in a reset, or does not any more: only a reset cannot be taken for the end of a body that
    /// ends with its connection.
    pub fn end_in_reset(&self, reset: bool) {
        if let Some(fd) = self.fd() {
            let linger = reset.then_some(std::time::Duration::ZERO);
            // It fails for what is closed already, and for Unix sockets, which know no reset.
            let _ = socket2::SockRef::from(&fd).set_linger(linger);
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Socket::Tcp(s) => Some(s.as_fd()),
            Socket::Unix(s) => Some(s.as_fd()),
            Socket::Closed => None,
        }
    }

    /// A closed socket is whatever is asked.
    fn events(&self, any: PollFlags) -> bool {
        let Some(fd) = self.fd() else { return true };
        let mut fds = [PollFd::from_borrowed_fd(fd, any)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().intersects(any)
    }
}
