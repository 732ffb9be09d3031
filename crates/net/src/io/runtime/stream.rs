//! Connections and listeners on the runtime: system calls are made when the system has reported that they will
//! succeed.

use crate::io::pipes::Pipe;
use crate::io::runtime::Runtime;
use crate::io::runtime::source::{Source, Watch};
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use socket2::SockAddr;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

/// A connection of the standard library, which must not block.
pub struct Stream<S> {
    // Closed before its slot is reused.
    io: S,
    source: Source,
}

impl<S: AsFd> Stream<S>
where
    for<'a> &'a S: Read + Write,
{
    /// Registers it with the runtime.
    pub fn new(rt: &Runtime, io: S) -> io::Result<Stream<S>> {
        let source = Source::watch(rt, &io, Watch::Connection)?;
        Ok(Stream { io, source })
    }

    /// Connects a non-blocking socket to this address.
    pub async fn connect(rt: &Runtime, socket: socket2::Socket, address: &SockAddr) -> io::Result<Stream<S>>
    where
        S: From<OwnedFd>,
    {
        match socket.connect(address) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(e) => return Err(e),
        }
        let source = Source::watch(rt, &socket, Watch::Connecting)?;
        poll_fn(|cx| source.poll_writable(cx)).await;
        if let Some(e) = socket.take_error()? {
            return Err(e);
        }
        Ok(Stream { io: S::from(OwnedFd::from(socket)), source })
    }

    /// Ready when something may be read, an end or an error included; otherwise wakes the task then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.source.poll_readable(cx)
    }

    /// Reads what has arrived, as much as fits; 0 is the end of the stream.
    pub fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let room = into.len();
        let read = self.poll_take(cx, |mut io| io.read(into));
        if let Poll::Ready(Ok(n)) = read {
            self.source.spent(n);
            // Everything was read; later input raises an event.
            if n > 0 && n < room {
                self.source.mark_drained();
            }
        }
        read
    }

    /// Moves at most `most` bytes that have arrived into an empty pipe; 0 is the end of the stream. Fewer than `most`
    /// may also be what the pipe takes.
    pub fn poll_read_pipe(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let moved = self.poll_take(cx, |io| pipe.fill(io, most));
        self.note_moved(&moved);
        moved
    }

    fn poll_take(
        &self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&S) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.source.poll_readable(cx));
        if !self.source.spend(cx) {
            return Poll::Pending;
        }
        loop {
            match take(&self.io) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.source.clear_readable();
                    return self.source.poll_readable(cx).map(|()| Err(e));
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// Reads what is there, outside of the budget and without waiting.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.io).read(into)
    }

    /// Writes as much as the socket takes.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.poll_give(cx, |mut io| io.write(bytes));
        if let Poll::Ready(Ok(n)) = written {
            self.source.spent(n);
        }
        written
    }

    /// The same from several places.
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_give(cx, |mut io| io.write_vectored(slices));
        if let Poll::Ready(Ok(n)) = written {
            self.source.spent(n);
        }
        written
    }

    /// Ready when something may be written, or there is an error; otherwise wakes the task then.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.source.poll_writable(cx)
    }

    /// Moves to the socket what is in a pipe, as much as it takes.
    pub fn poll_write_pipe(&self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        let moved = self.poll_give(cx, |io| pipe.drain(io));
        self.note_moved(&moved);
        moved
    }

    /// Counts bytes that were moved and not copied, which takes less time: as a quarter.
    fn note_moved(&self, moved: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(n)) = moved {
            self.source.spent(n / 4);
        }
    }

    fn poll_give(
        &self,
        cx: &mut Context<'_>,
        mut give: impl FnMut(&S) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.source.poll_writable(cx));
        if !self.source.spend(cx) {
            return Poll::Pending;
        }
        loop {
            match give(&self.io) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.source.await_writable(&self.io)?;
                    return self.source.poll_writable(cx).map(|()| Err(e));
                }
                given => return Poll::Ready(given),
            }
        }
    }

    /// Whether the task that runs may still read and write in its turn.
    pub fn has_budget(&self) -> bool {
        self.source.has_budget()
    }

    /// The connection itself.
    pub fn io(&self) -> &S {
        &self.io
    }
}

impl<S: AsFd> AsFd for Stream<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// A listening socket.
pub struct Acceptor {
    listener: OwnedFd,
    source: Source,
}

impl Acceptor {
    /// Registers it with the runtime.
    pub fn new(rt: &Runtime, listener: OwnedFd) -> io::Result<Acceptor> {
        let source = Source::watch(rt, &listener, Watch::Listener)?;
        Ok(Acceptor { listener, source })
    }

    /// Accepts a non-blocking connection, and its peer's address. One in each turn, so that other tasks get theirs:
    /// further ones are reported again, without a call in vain when there are none.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(OwnedFd, Option<SocketAddrAny>)>> {
        self.source.listen(&self.listener)?;
        ready!(self.source.poll_readable(cx));
        self.source.mark_drained();
        match self.accept() {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                self.source.poll_readable(cx).map(|()| Err(e))
            }
            accepted => Poll::Ready(accepted),
        }
    }

    /// Duplicates the socket, for another process.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.listener.try_clone()
    }

    /// The same, without an event.
    pub fn accept(&self) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
        Ok(acceptfrom_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?)
    }

    /// Pauses accepting: until the end of the pause the system does not report clients.
    pub fn quiet(&self) {
        // If it fails, the loop checks in vain until accepting resumes.
        let _ = self.source.quiet(&self.listener);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // Loops share Unix listeners: this descriptor is not the only one.
        self.source.forget(&self.listener);
    }
}
