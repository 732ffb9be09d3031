//! A connection with its unconsumed input and unsent output. An idle one holds no buffer.

use crate::io::buffers::{Buffers, Input};
use crate::io::pipes::Pipe;
use crate::transport::socket::Socket;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Bytes that lie elsewhere, and leave behind this number of queued ones.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// Queued bytes before them.
    pub behind: usize,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Payloads of one write at most.
pub const PAYLOADS: usize = 32;

/// A socket and its buffered bytes.
pub struct Wire {
    /// The socket.
    pub socket: Socket,
    buffers: Rc<Buffers>,
    input: Input,
    /// Bytes that the socket has not taken yet, from `sent`.
    out: Vec<u8>,
    sent: usize,
    /// What follows those bytes.
    pipe: Option<Pipe>,
    /// Bytes that the socket has taken, ever, with those that it holds.
    taken: u64,
    /// Whether the other side's end of stream was read.
    ended: bool,
}

impl Wire {
    /// A wire without buffered bytes.
    pub fn new(socket: Socket, buffers: Rc<Buffers>) -> Wire {
        let (input, out) = (Input::default(), Vec::new());
        Wire { socket, buffers, input, out, sent: 0, pipe: None, taken: 0, ended: false }
    }

    /// Releases the socket and its unconsumed input; nothing may be unsent.
    pub fn into_parts(self) -> (Socket, Vec<u8>) {
        (self.socket, self.input.bytes().to_vec())
    }

    /// The input that was not consumed.
    pub fn input(&self) -> &[u8] {
        self.input.bytes()
    }

    /// The same, to be forwarded.
    pub fn input_mut(&mut self) -> &mut Input {
        &mut self.input
    }

    /// Consumes the first `n` bytes of the input.
    pub fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    /// Reads once; 0 is the end of the stream. With a full buffer it is `Ok(usize::MAX)`: consume something first.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.fill(cx, false)
    }

    /// The same with a small buffer at first, which grows: data that may wait for long holds no large one.
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
        // Before a buffer is taken: most checks find nothing.
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

    /// Moves at most `most` bytes that have arrived into an empty pipe; 0 is the end of the stream. The input must be
    /// empty.
    ///
    /// # Errors
    /// Those of [`Socket::poll_read_pipe`]; bytes can still be read.
    pub fn poll_fill_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.input.is_empty(), "what was read comes first");
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        let moved = self.socket.poll_read_pipe(cx, pipe, most);
        self.ended = matches!(moved, Poll::Ready(Ok(0)));
        moved
    }

    /// Sends what is queued, then what is in this pipe; the rest follows with the next flush. Nothing may be queued
    /// before that.
    ///
    /// # Errors
    /// Those of a write.
    pub fn push_pipe(&mut self, cx: &mut Context<'_>, pipe: Pipe) -> io::Result<()> {
        debug_assert!(self.pipe.is_none(), "one pipe at a time");
        self.pipe = Some(pipe);
        match self.poll_flush(cx) {
            Poll::Ready(Err(e)) => Err(e),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Whether a pipe is not empty yet.
    pub fn has_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// The total of bytes that the socket has taken: while it grows, the other side reads.
    pub fn taken(&self) -> u64 {
        self.taken - self.socket.held() as u64
    }

    /// The value of [`Wire::taken`] when the socket has taken everything.
    pub fn queued(&self) -> u64 {
        self.taken() + self.unsent() as u64
    }

    /// Moves the rest of the input to a buffer of its size.
    pub fn shrink(&mut self) {
        self.input.shrink();
    }

    /// Reads more bytes of a tunnel; `false` is the end of the stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.input.is_empty() {
            return Poll::Ready(Ok(true));
        }
        self.poll_fill(cx).map_ok(|n| n > 0)
    }

    /// Closes the socket, even if the wire has other owners.
    pub fn close(&mut self) {
        self.taken = self.taken();
        self.socket = Socket::Closed;
    }

    /// Whether the other side's end of stream was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes these bytes and queues those that the socket does not take. To be called with little or nothing queued.
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

    /// Writes and consumes the first `n` bytes of another connection's input, with `head` before them.
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

    /// The same after what is queued already: a prepared head leaves with its body in one send.
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

    /// Queues bytes for the next flush.
    pub fn queue(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.queue_to().extend_from_slice(bytes);
        }
    }

    /// The queue of the next flush, to append to.
    pub fn queue_to(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.pipe.is_none(), "what is in a pipe comes first");
        if self.out.capacity() == 0 {
            self.out = self.buffers.small();
        }
        // Sent bytes are removed as soon as they are the larger part, so that a queue that never empties does not
        // grow.
        if self.sent > 0 && self.sent >= self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.out
    }

    /// Bytes that the socket has not taken, or that it still holds (TLS).
    pub fn unsent(&self) -> usize {
        self.out.len() - self.sent + self.pipe.as_ref().map_or(0, Pipe::held) + self.socket.held()
    }

    /// The memory of the queue, bytes; 0 if it is empty.
    pub fn kept(&self) -> usize {
        if self.unsent() == 0 { 0 } else { self.out.capacity() + self.socket.held() }
    }

    /// Writes what is queued.
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
        while let Some(pipe) = &mut self.pipe {
            match ready!(self.socket.poll_write_pipe(cx, pipe))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.taken += n as u64,
            }
            self.pipe.take_if(|pipe| pipe.held() == 0);
        }
        self.socket.poll_flush(cx)
    }

    /// Bytes in the queue.
    pub fn queued_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Writes what is queued, with payloads between from where they lie, in one call. What the socket does not take is
    /// queued: the payloads are needed no more. No more than [`PAYLOADS`], in the order of their places.
    pub fn poll_flush_around(
        &mut self,
        cx: &mut Context<'_>,
        payloads: &[Payload<'_>],
    ) -> Poll<io::Result<()>> {
        debug_assert!(payloads.len() <= PAYLOADS, "the rest comes later");
        let mut slices = [IoSlice::new(&[]); 2 * PAYLOADS + 1];
        let (queue, mut at, mut count) = (&self.out[self.sent..], 0, 0);
        for payload in payloads.iter().take(PAYLOADS) {
            slices[count] = IoSlice::new(&queue[at..payload.behind]);
            slices[count + 1] = IoSlice::new(payload.bytes);
            (at, count) = (payload.behind, count + 2);
        }
        slices[count] = IoSlice::new(&queue[at..]);
        let slices = &slices[..=count];
        let taken = match self.socket.poll_write_vectored(cx, slices) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(taken) => taken?,
            Poll::Pending => 0,
        };
        self.taken += taken as u64;
        let rest = self.rest_of(slices, taken);
        self.buffers.keep_small(std::mem::replace(&mut self.out, rest));
        self.sent = 0;
        self.poll_flush(cx)
    }

    /// What is left of these behind the first `taken` bytes.
    fn rest_of(&self, slices: &[IoSlice<'_>], taken: usize) -> Vec<u8> {
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        let (mut rest, mut skipped) = (self.buffers.small(), taken);
        rest.reserve(all - taken);
        for slice in slices {
            let here = skipped.min(slice.len());
            rest.extend_from_slice(&slice[here..]);
            skipped -= here;
        }
        rest
    }

    /// Whether the other side's system has all that was queued, as far as this one tells; nothing more can be sent then
    /// ([`Socket::has_delivered`]).
    pub fn has_delivered(&self) -> bool {
        self.unsent() == 0 && self.socket.has_delivered()
    }

    /// Releases what an idle connection does not need.
    pub fn rest(&mut self) {
        if self.out.is_empty() && self.out.capacity() > 0 {
            self.buffers.keep_small(std::mem::take(&mut self.out));
        }
        self.shrink();
    }
}
