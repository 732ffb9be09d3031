//! A TLS connection: rustls between a plain socket and its user.
//!
//! Data inside counts. Unread plaintext makes it readable, as an end or an error does. Ciphertext that the system has
//! not taken is [`Stream::held`], counted in bytes of plaintext, and nothing more is taken before it has left. rustls
//! reads 4 KiB a call, so it is fed from a buffer of the loop; only what rustls cannot take while plaintext waits
//! stays with the connection.

use super::TlsError;
use crate::io::buffers::Buffers;
use crate::transport::socket::Socket;
use rustls::Connection;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

/// The limit of bytes that are encrypted at once: four records.
const BATCH: usize = 64 * 1024;

/// What rustls may return beside what was just read: the rest of a record.
const RECORD: usize = 18 * 1024;

/// The amount that rustls takes at once, and that is read at once in a handshake.
const SMALL_READ: usize = 4 * 1024;

/// The state of the direction from the other side.
#[derive(Clone, Debug, PartialEq)]
enum End {
    Open,
    /// By close_notify.
    Closed,
    /// Without close_notify: something may be missing.
    Cut,
    Failed(rustls::Error),
}

/// The connection.
pub struct Stream {
    plain: Socket,
    tls: Connection,
    buffers: Rc<Buffers>,
    end: End,
    /// Plaintext inside rustls.
    waiting: usize,
    /// Ciphertext that rustls could not take while that waits.
    left: Vec<u8>,
    /// Ciphertext that the system has not taken, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// The number of plaintext bytes behind all of `out`.
    batch: usize,
    /// Whether close_notify was sent.
    is_shut: bool,
}

impl Stream {
    /// A connection before its handshake.
    pub fn new(plain: Socket, tls: impl Into<Connection>, buffers: Rc<Buffers>) -> Stream {
        Stream {
            plain,
            tls: tls.into(),
            buffers,
            end: End::Open,
            waiting: 0,
            left: Vec::new(),
            out: Vec::new(),
            sent: 0,
            batch: 0,
            is_shut: false,
        }
    }

    /// The socket below.
    pub fn plain(&self) -> &Socket {
        &self.plain
    }

    /// Releases the socket after a failed handshake.
    pub fn into_plain(self) -> Socket {
        self.plain
    }

    /// The state of rustls.
    pub fn tls(&self) -> &Connection {
        &self.tls
    }

    /// The reason of its failure, if it has failed.
    pub fn failure(&self) -> Option<TlsError> {
        if let End::Failed(e) = &self.end { Some(TlsError::from_rustls(e)) } else { None }
    }

    /// Adds bytes that were read from the socket before TLS began.
    pub fn feed_first(&mut self, bytes: &[u8]) {
        self.feed(bytes, &mut []);
    }

    /// Runs the handshake.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TlsError>> {
        loop {
            if let End::Failed(e) = &self.end {
                let why = TlsError::from_rustls(e);
                // Sends the alert; whether it arrives makes no difference.
                let _ = self.poll_flush(cx);
                return Poll::Ready(Err(why));
            }
            ready!(self.poll_flush(cx)).map_err(|_| TlsError::Broken)?;
            if !self.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if self.end != End::Open {
                return Poll::Ready(Err(TlsError::Broken));
            }
            let more = ready!(self.poll_more(cx, &mut []));
            if more.is_err() && !matches!(self.end, End::Failed(_)) {
                return Poll::Ready(Err(TlsError::Broken));
            }
        }
    }

    /// Ready when everything queued was sent, and something has come back, an end or an error included.
    pub fn poll_answered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.poll_readable(cx).map(Ok)
    }

    /// Ready when something may be read, an end or an error included; otherwise wakes the task then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_own_input() { Poll::Ready(()) } else { self.plain.poll_readable(cx) }
    }

    /// Reads what has arrived, as much as fits; 0 is the end of the stream, by close_notify.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let got = self.take(into);
            if got > 0 {
                return Poll::Ready(Ok(got));
            }
            let got = match std::mem::take(&mut self.left) {
                left if !left.is_empty() => self.feed(&left, into),
                _ if self.end != End::Open => return Poll::Ready(self.ended()),
                _ => ready!(self.poll_more(cx, into))?,
            };
            if got > 0 {
                return Poll::Ready(Ok(got));
            }
        }
    }

    /// Writes a few records, and nothing while the system has not taken those before.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        if self.is_shut || matches!(self.end, End::Cut | End::Failed(_)) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = self.tls.writer().write(&bytes[..bytes.len().min(BATCH)])?;
        let mut chunk = self.buffers.take();
        let mut cipher = 0;
        {
            let mut space = chunk.space();
            while self.tls.wants_write() {
                match self.tls.write_tls(&mut space)? {
                    0 => break,
                    written => cipher += written,
                }
            }
        }
        chunk.filled(cipher);
        let taken = match self.plain.poll_write(cx, chunk.bytes()) {
            Poll::Ready(taken) => taken?,
            Poll::Pending => 0,
        };
        if taken < cipher {
            self.out.extend_from_slice(&chunk.bytes()[taken..]);
            self.batch = (n * self.out.len()).div_ceil(cipher);
        }
        // More than fits into the buffer cannot happen, and would not be lost.
        self.collect()?;
        Poll::Ready(Ok(n))
    }

    /// Bytes that were written and have not left this process.
    pub fn held(&self) -> usize {
        match self.out.len() {
            0 => 0,
            all => (self.batch * (all - self.sent)).div_ceil(all),
        }
    }

    /// Ready when everything written has left this process.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.collect()?;
        while self.sent < self.out.len() {
            match ready!(self.plain.poll_write(cx, &self.out[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.sent += n,
            }
        }
        if self.sent > 0 {
            self.out = Vec::new();
            (self.sent, self.batch) = (0, 0);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the stream: close_notify, then the end of the plain stream.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_shut, true) {
            self.tls.send_close_notify();
        }
        ready!(self.poll_flush(cx))?;
        self.plain.poll_shutdown(cx)
    }

    /// Announces an orderly close, if the system takes that at once.
    pub fn say_end(&mut self) {
        if !std::mem::replace(&mut self.is_shut, true) {
            self.tls.send_close_notify();
            let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Whether the other side has ended or broken the connection, though bytes may still be unread.
    pub fn is_hung_up(&self) -> bool {
        self.end != End::Open || self.plain.is_hung_up()
    }

    /// Whether something can be read, even before an event has reported it. Decrypts what has arrived: a session
    /// ticket is not input.
    pub fn has_input(&mut self) -> bool {
        while !self.has_own_input() && self.plain.has_input() {
            let mut bytes = [0; SMALL_READ];
            match self.plain.read_now(&mut bytes) {
                Ok(0) => self.end = End::Cut,
                Ok(n) => _ = self.feed(&bytes[..n], &mut []),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        self.has_own_input()
    }

    /// Whether the connection is broken in both directions.
    pub fn is_broken(&self) -> bool {
        matches!(self.end, End::Failed(_)) || self.plain.is_broken()
    }

    fn has_own_input(&self) -> bool {
        self.waiting > 0 || !self.left.is_empty() || self.end != End::Open
    }

    /// Reads from the socket once. Plaintext that fits is put into `into`, and counted; 0: there was none yet.
    fn poll_more(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let buffers = self.buffers.clone();
        let mut chunk = buffers.take();
        let space = chunk.space();
        let most = into.len().saturating_sub(RECORD).max(SMALL_READ).min(space.len());
        let n = ready!(self.plain.poll_read(cx, &mut space[..most]))?;
        if n == 0 {
            self.end = End::Cut;
            return Poll::Ready(self.ended());
        }
        let got = self.feed(&space[..n], into);
        // Sends what rustls answers by itself: tickets, updates of keys, alerts.
        if let Poll::Ready(Err(e)) = self.poll_flush(cx)
            && got == 0
        {
            return Poll::Ready(Err(e));
        }
        Poll::Ready(Ok(got))
    }

    /// Lets rustls decrypt what has arrived; returns how much plaintext was put into `into`.
    fn feed(&mut self, mut cipher: &[u8], into: &mut [u8]) -> usize {
        let mut got = 0;
        while !cipher.is_empty() && self.end == End::Open {
            if self.waiting > 0 {
                self.left = cipher.to_vec();
                break;
            }
            let taken = self.tls.read_tls(&mut cipher);
            match self.tls.process_new_packets() {
                Ok(state) => {
                    self.waiting = state.plaintext_bytes_to_read();
                    if state.peer_has_closed() {
                        self.end = End::Closed;
                    }
                }
                Err(e) => self.end = End::Failed(e),
            }
            got += self.take(&mut into[got..]);
            if !matches!(taken, Ok(1..)) && self.end == End::Open {
                // rustls takes nothing although no plaintext waits.
                self.end = End::Failed(rustls::Error::General("a record is too long".to_owned()));
            }
        }
        got
    }

    /// Returns waiting plaintext.
    fn take(&mut self, into: &mut [u8]) -> usize {
        let mut got = 0;
        while self.waiting > 0 && got < into.len() {
            match self.tls.reader().read(&mut into[got..]) {
                Ok(n) if n > 0 => {
                    got += n;
                    self.waiting = self.waiting.saturating_sub(n);
                }
                _ => self.waiting = 0,
            }
        }
        got
    }

    /// The result of a read after the last byte.
    fn ended(&self) -> io::Result<usize> {
        match &self.end {
            End::Closed => Ok(0),
            End::Open | End::Cut => Err(io::ErrorKind::UnexpectedEof.into()),
            End::Failed(e) => Err(io::Error::new(io::ErrorKind::InvalidData, e.clone())),
        }
    }

    /// Moves ciphertext from rustls to the queue for the system.
    fn collect(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
