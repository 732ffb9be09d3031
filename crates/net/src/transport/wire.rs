//! A connection with what was read and not used up, and what was written and not yet taken. Idle, it holds no buffer.

use crate::io::buffers::{Buffers, Input};
use crate::transport::socket::Socket;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A socket and its bytes on the way.
pub struct Wire {
    /// What carries it.
    pub socket: Socket,
    buffers: Rc<Buffers>,
    input: Input,
    /// What the socket has not taken yet, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// Bytes that the socket has taken, ever, with those that it holds.
    taken: u64,
    /// The other side's end of stream was read.
    ended: bool,
}

impl Wire {
    /// Nothing read, nothing written.
    pub fn new(socket: Socket, buffers: Rc<Buffers>) -> Wire {
        Wire { socket, buffers, input: Input::default(), out: Vec::new(), sent: 0, taken: 0, ended: false }
    }

    /// The socket, and what was read of it and not used up; nothing waits to be written.
    pub fn into_parts(self) -> (Socket, Vec<u8>) {
        (self.socket, self.input.bytes().to_vec())
    }

    /// What was read and not used up.
    pub fn input(&self) -> &[u8] {
        self.input.bytes()
    }

    /// The same, to be passed on.
    pub fn input_mut(&mut self) -> &mut Input {
        &mut self.input
    }

    /// The first `n` bytes of the input are used up.
    pub fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    /// Reads once; 0 is the end of the stream. With a full buffer it is `Ok(usize::MAX)`: use something up first.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.fill(cx, false)
    }

    /// The same with a small buffer to begin with, which grows: what may wait for long holds no large one.
    pub fn poll_fill_small(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.fill(cx, true)
    }

    #[inline]
    fn fill(&mut self, cx: &mut Context<'_>, small: bool) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        if self.input.is_full() {
            return Poll::Ready(Ok(usize::MAX));
        }
        // Before a buffer is taken: most looks find nothing.
        ready!(self.socket.poll_readable(cx));
        let Wire { input, buffers, socket, ended, .. } = self;
        let read = match small {
            true => input.fill_small(buffers, |space| socket.poll_read(cx, space)),
            false => input.fill(buffers, |space| socket.poll_read(cx, space)),
        };
        if let Poll::Ready(Ok(n)) = read {
            *ended = n == 0;
        }
        read
    }

    /// Bytes that the socket has taken, ever: as long as they become more, the other side reads.
    pub fn taken(&self) -> u64 {
        self.taken - self.socket.held() as u64
    }

    /// What [`Wire::taken`] will be when the socket has taken all that waits.
    pub fn queued(&self) -> u64 {
        self.taken() + self.unsent() as u64
    }

    /// What is left of the input moves to a buffer of its size.
    pub fn shrink(&mut self) {
        self.input.shrink();
    }

    /// More bytes of a tunnel; `false` is the end of the stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.input.is_empty() {
            return Poll::Ready(Ok(true));
        }
        self.poll_fill(cx).map_ok(|n| n > 0)
    }

    /// The socket is closed, whoever else knows the wire.
    pub fn close(&mut self) {
        self.taken = self.taken();
        self.socket = Socket::Closed;
    }

    /// Whether the other side's end of stream was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes these bytes; what the socket does not take waits. To be called with nothing waiting, or little.
    pub fn push(&mut self, cx: &mut Context<'_>, mut bytes: &[u8]) -> io::Result<()> {
        while self.unsent() == 0 && !bytes.is_empty() {
            match self.socket.poll_write(cx, bytes) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => {
                    self.taken += n as u64;
                    bytes = &bytes[n..];
                }
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => break,
            }
        }
        self.queue(bytes);
        Ok(())
    }

    /// Writes the first `n` bytes that another connection has read, with `head` before them, and uses them up.
    pub fn push_from(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Input,
        n: usize,
        head: &[u8],
    ) -> io::Result<()> {
        let n = n.min(from.bytes().len());
        if n == 0 {
            return self.push(cx, head);
        }
        if head.is_empty() || from.put_before(head) {
            let whole = head.len() + n;
            self.push(cx, &from.bytes()[..whole])?;
            from.consume(whole);
        } else {
            let mut both = Vec::with_capacity(head.len() + n);
            both.extend_from_slice(head);
            both.extend_from_slice(&from.bytes()[..n]);
            self.push(cx, &both)?;
            from.consume(n);
        }
        Ok(())
    }

    /// The same, with what waits already before it: a head that was put together leaves with its body in one send.
    pub fn push_behind(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.out);
        let sent = std::mem::take(&mut self.sent);
        self.push_from(cx, from, n, &before[sent..])?;
        if self.out.is_empty() {
            before.clear();
            self.out = before;
        }
        Ok(())
    }

    /// Bytes to be written with the next flush.
    pub fn queue(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.queue_to().extend_from_slice(bytes);
        }
    }

    /// Where bytes to be written with the next flush are appended.
    pub fn queue_to(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = self.buffers.small();
        }
        // What was sent goes as soon as it is the larger part: a queue that never empties does not grow.
        if self.sent > 0 && self.sent >= self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.out
    }

    /// Bytes that the socket has not taken, or that wait inside it (TLS).
    pub fn unsent(&self) -> usize {
        self.out.len() - self.sent + self.socket.held()
    }

    /// The memory that this takes, or nothing if nothing waits.
    pub fn kept(&self) -> usize {
        if self.unsent() == 0 { 0 } else { self.out.capacity() + self.socket.held() }
    }

    /// Writes what waits.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            match self.socket.poll_write(cx, &self.out[self.sent..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    self.taken += n as u64;
                    self.sent += n;
                }
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.sent > 0 {
            self.out.clear();
            self.sent = 0;
        }
        self.socket.poll_flush(cx)
    }

    /// Gives back what an idle connection does not need.
    pub fn rest(&mut self) {
        if self.out.is_empty() && self.out.capacity() > 0 {
            self.buffers.keep_small(std::mem::take(&mut self.out));
        }
        self.shrink();
    }
}
