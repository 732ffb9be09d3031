//! A connected socket as the relay sees it: four poll functions. TLS is a further variant, around one of the others.

use crate::io::pipes::Pipe;
use crate::io::runtime::{Runtime, Stream};
use crate::transport::tls;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection that no loop watches yet, and that does not block.
pub enum Raw {
    /// TCP, of either version of IP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl AsRawFd for Raw {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Raw::Tcp(socket) => socket.as_raw_fd(),
            Raw::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

impl Raw {
    /// Registers it with this loop.
    ///
    /// # Errors
    /// The system cannot watch more descriptors.
    pub fn watch(self, rt: &Runtime) -> io::Result<Socket> {
        Ok(match self {
            Raw::Tcp(stream) => Socket::Tcp(Stream::new(rt, stream)?),
            Raw::Unix(stream) => Socket::Unix(Stream::new(rt, stream)?),
        })
    }
}

/// A stream of bytes in both directions.
pub enum Socket {
    /// TCP, of either version of IP.
    Tcp(Stream<TcpStream>),
    /// A Unix socket, named or one of a pair.
    Unix(Stream<UnixStream>),
    /// TLS on one of them.
    Tls(Box<tls::Stream>),
    /// It was closed, though it may still have an owner.
    Closed,
}

/// The result of using a closed socket.
fn closed<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl Socket {
    /// Ready when something may be read, an end or an error included; otherwise wakes the task then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Socket::Tcp(s) => s.poll_readable(cx),
            Socket::Unix(s) => s.poll_readable(cx),
            Socket::Tls(s) => s.poll_readable(cx),
            Socket::Closed => Poll::Ready(()),
        }
    }

    /// Reads what has arrived, as much as fits; 0 is the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => s.poll_read(cx, into),
            Socket::Unix(s) => s.poll_read(cx, into),
            Socket::Tls(s) => s.poll_read(cx, into),
            Socket::Closed => closed(),
        }
    }

    /// Writes as much as the socket takes.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => s.poll_write(cx, bytes),
            Socket::Unix(s) => s.poll_write(cx, bytes),
            Socket::Tls(s) => s.poll_write(cx, bytes),
            Socket::Closed => closed(),
        }
    }

    /// Writes from several places as much as the socket takes, in one call; by TLS from the first of them.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => s.poll_write_vectored(cx, slices),
            Socket::Unix(s) => s.poll_write_vectored(cx, slices),
            Socket::Tls(s) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                s.poll_write(cx, first.map_or(&[], |first| &first[..]))
            }
            Socket::Closed => closed(),
        }
    }

    /// Ready when something may be written, an error included; otherwise wakes the task then. TLS holds bytes itself.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Socket::Tcp(s) => s.poll_writable(cx),
            Socket::Unix(s) => s.poll_writable(cx),
            Socket::Tls(_) | Socket::Closed => Poll::Ready(()),
        }
    }

    /// Whether bytes can go through a pipe from and to it: they are sent as they are.
    pub fn is_plain(&self) -> bool {
        matches!(self, Socket::Tcp(_) | Socket::Unix(_))
    }

    /// Moves at most `most` bytes that have arrived into an empty pipe; 0 is the end of the stream.
    ///
    /// # Errors
    /// Those of a read, and those of a socket that is not plain or that the system does not splice.
    pub fn poll_read_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => s.poll_read_pipe(cx, pipe, most),
            Socket::Unix(s) => s.poll_read_pipe(cx, pipe, most),
            Socket::Tls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            Socket::Closed => closed(),
        }
    }

    /// Moves to the socket what is in a pipe, as much as it takes.
    ///
    /// # Errors
    /// Those of a write, and that of a socket that is not plain.
    pub fn poll_write_pipe(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(s) => s.poll_write_pipe(cx, pipe),
            Socket::Unix(s) => s.poll_write_pipe(cx, pipe),
            Socket::Tls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            Socket::Closed => closed(),
        }
    }

    /// Ready when everything written has left this process. Plain sockets hold nothing back; TLS does.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(_) | Socket::Unix(_) => Poll::Ready(Ok(())),
            Socket::Tls(s) => s.poll_flush(cx),
            Socket::Closed => closed(),
        }
    }

    /// Bytes that were written and have not left this process.
    pub fn held(&self) -> usize {
        if let Socket::Tls(s) = self { s.held() } else { 0 }
    }

    /// Reads what is there, outside of the budget and without waiting; not for TLS, whose raw bytes mean nothing.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(s) => s.read_now(into),
            Socket::Unix(s) => s.read_now(into),
            Socket::Tls(_) | Socket::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Ends the stream in the direction of the peer.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Tcp(s) => Poll::Ready(s.io().shutdown(Shutdown::Write)),
            Socket::Unix(s) => Poll::Ready(s.io().shutdown(Shutdown::Write)),
            Socket::Tls(s) => s.poll_shutdown(cx),
            Socket::Closed => closed(),
        }
    }

    /// Announces an orderly close. TLS sends that, a plain socket shows it by closing.
    pub fn say_end(&mut self) {
        if let Socket::Tls(s) = self {
            s.say_end();
        }
    }

    /// Why TLS on it failed, if it did.
    pub fn tls_failure(&self) -> Option<tls::TlsError> {
        if let Socket::Tls(s) = self { s.failure() } else { None }
    }

    /// Whether the other side has ended or broken the connection, though bytes may still be unread.
    pub fn is_hung_up(&self) -> bool {
        match self {
            Socket::Tls(s) => s.is_hung_up(),
            _ => self.events(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR),
        }
    }

    /// Whether something can be read, even before an event has reported it.
    pub fn has_input(&mut self) -> bool {
        match self {
            Socket::Tls(s) => s.has_input(),
            _ => self.events(PollFlags::IN),
        }
    }

    /// Whether the connection is broken in both directions.
    pub fn is_broken(&self) -> bool {
        match self {
            Socket::Tls(s) => s.is_broken(),
            _ => self.events(PollFlags::HUP | PollFlags::ERR),
        }
    }

    /// Whether the task that runs may still read and write in its turn.
    pub fn has_budget(&self) -> bool {
        match self {
            Socket::Tcp(s) => s.has_budget(),
            Socket::Unix(s) => s.has_budget(),
            Socket::Tls(s) => s.plain().has_budget(),
            Socket::Closed => true,
        }
    }

    /// The other side's address; `None` for Unix sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(s) => s.io().peer_addr().ok(),
            Socket::Tls(s) => s.plain().peer(),
            Socket::Unix(_) | Socket::Closed => None,
        }
    }

    /// Whether TLS agreed on HTTP/2 (ALPN).
    pub fn is_h2(&self) -> bool {
        matches!(self, Socket::Tls(s) if s.tls().alpn_protocol() == Some(b"h2"))
    }

    /// Whether TLS has resumed a session.
    pub fn is_resumed(&self) -> bool {
        matches!(self, Socket::Tls(s) if s.tls().handshake_kind() == Some(rustls::HandshakeKind::Resumed))
    }

    /// This side's address; `None` for Unix sockets.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(s) => s.io().local_addr().ok(),
            Socket::Tls(s) => s.plain().local(),
            Socket::Unix(_) | Socket::Closed => None,
        }
    }

    /// Sets whether closing it sends a reset: only a reset cannot be taken for the end of a body that ends with its
    /// connection.
    pub fn end_in_reset(&self, reset: bool) {
        if let Some(fd) = self.fd() {
            let linger = reset.then_some(std::time::Duration::ZERO);
            // It fails for closed sockets, and for Unix sockets, which have no reset.
            let _ = socket2::SockRef::from(&fd).set_linger(linger);
        }
    }

    /// Whether the other side's system has all that was written, as far as this one tells: for a socket that is to end
    /// in a reset, which destroys what waits here. The socket is of no use for more writes after that: its buffer is
    /// made as small as can be.
    pub fn has_delivered(&self) -> bool {
        match self {
            Socket::Tcp(s) => {
                // The system says of a socket that it takes more, not that nothing waits. With the least of buffers,
                // and no more than one byte allowed to be unsent, the two are nearly the same: less than a segment is
                // on its way then.
                let socket = SockRef::from(s);
                let set = socket.set_tcp_notsent_lowat(1).and_then(|()| socket.set_send_buffer_size(1));
                set.is_err() || self.events(PollFlags::OUT | PollFlags::HUP | PollFlags::ERR)
            }
            Socket::Tls(s) => s.held() == 0 && s.plain().has_delivered(),
            // What is written to a Unix socket is at its other end at once.
            Socket::Unix(_) | Socket::Closed => true,
        }
    }

    /// Raises TCP_USER_TIMEOUT above `limit_ns`, the connection's longest write limit (`None`: none): otherwise the
    /// system ends a connection with a shut window after `least_ns`, which its socket began with, and so before weir
    /// does.
    pub fn extend_user_timeout(&self, limit_ns: Option<u64>, least_ns: u64) {
        const SLACK_NS: u64 = 1_000_000_000;
        if let (Socket::Tcp(_), Some(fd)) = (self, self.fd())
            && limit_ns.is_none_or(|limit_ns| limit_ns.saturating_add(SLACK_NS) > least_ns)
        {
            let limit = limit_ns.map(|ns| Duration::from_nanos(ns.saturating_add(SLACK_NS)));
            // It fails if the connection has ended meanwhile.
            let _ = SockRef::from(&fd).set_tcp_user_timeout(limit);
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Socket::Tcp(s) => Some(s.as_fd()),
            Socket::Unix(s) => Some(s.as_fd()),
            Socket::Tls(s) => s.plain().fd(),
            Socket::Closed => None,
        }
    }

    /// A closed socket counts as ready for anything.
    fn events(&self, any: PollFlags) -> bool {
        let Some(fd) = self.fd() else { return true };
        let mut fds = [PollFd::from_borrowed_fd(fd, any)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().intersects(any)
    }
}
