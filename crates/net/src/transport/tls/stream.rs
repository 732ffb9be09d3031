//! A TLS connection: rustls between a plain socket and whoever reads and writes.
//!
//! What waits inside counts. Plaintext that nobody has read makes it readable, as an end or an error does. Ciphertext that
//! the system has not taken is [`Stream::held`], counted in bytes of what was written, and nothing more is taken before it
//! has left. rustls reads 4 KiB a call, so it is fed from a buffer of the loop; nothing of that stays with the connection but
//! what rustls cannot take while plaintext waits.

use super::TlsError;
use crate::io::buffers::Buffers;
use crate::transport::socket::Socket;
use rustls::Connection;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

/// Bytes that are encrypted at once at most: four records.
const BATCH: usize = 64 * 1024;

/// What rustls may hand on beside what was just read: the rest of a record.
const RECORD: usize = 18 * 1024;

/// What rustls takes at once, and in a handshake what is read at once.
const SMALL_READ: usize = 4 * 1024;

/// How far the other side's direction has come.
#[derive(Clone, Debug, PartialEq)]
enum End {
    Open,
    /// By close_notify.
    Closed,
    /// The connection ended without it: something may be missing.
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
    /// What of it was written by the user of this connection, all of `out`.
    batch: usize,
    /// Whether close_notify was said.
    is_shut: bool,
}

impl Stream {
    /// A connection whose handshake is still to be done.
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

    /// What it runs on.
    pub fn plain(&self) -> &Socket {
        &self.plain
    }

    /// The same, whose handshake has failed.
    pub fn into_plain(self) -> Socket {
        self.plain
    }

    /// What rustls knows of it.
    pub fn tls(&self) -> &Connection {
        &self.tls
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<TlsError> {
        if let End::Failed(e) = &self.end { Some(TlsError::from_rustls(e)) } else { None }
    }

    /// Hands bytes over that were read from the socket before TLS had it.
    pub fn feed_first(&mut self, bytes: &[u8]) {
        self.feed(bytes, &mut []);
    }

    /// Does the handshake, as far as it goes without waiting.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TlsError>> {
        loop {
            if let End::Failed(e) = &self.end {
                let why = TlsError::from_rustls(e);
                // The alert; whether it arrives makes no difference.
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

    /// Whether all that was to be said has left, and something has come back, an end or an error included.
    pub fn poll_answered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.poll_readable(cx).map(Ok)
    }

    /// Whether something may be read, an end or an error included; else the task is woken then.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_own_input() { Poll::Ready(()) } else { self.plain.poll_readable(cx) }
    }

    /// Reads what has come, at most as much as fits; 0 is the end of the stream, said by the other side.
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

    /// Writes as much as is taken: a few records, and nothing while the system has not taken those before.
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
        // More than fits into the buffer: there is none, but nothing is lost.
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

    /// What was written has left this process.
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

    /// Says that nothing more will be written: close_notify, then the end of the plain stream.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.is_shut, true) {
            self.tls.send_close_notify();
        }
        ready!(self.poll_flush(cx))?;
        self.plain.poll_shutdown(cx)
    }

    /// The connection is about to be closed in order: says so, if the system takes that at once.
    pub fn say_end(&mut self) {
        if !std::mem::replace(&mut self.is_shut, true) {
            self.tls.send_close_notify();
            let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Whether the other side has ended or broken the connection, though bytes may still lie unread.
    pub fn is_hung_up(&self) -> bool {
        self.end != End::Open || self.plain.is_hung_up()
    }

    /// Whether something can be read, though no event may have told yet. What has come is looked into: a ticket of a session
    /// is nothing that anybody reads.
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

    /// Reads from the socket once. Plaintext that fits goes to `into`, and is counted; 0: there was none, yet.
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
        // What rustls answers by itself: tickets, updates of keys, alerts.
        if let Poll::Ready(Err(e)) = self.poll_flush(cx)
            && got == 0
        {
            return Poll::Ready(Err(e));
        }
        Poll::Ready(Ok(got))
    }

    /// Has rustls decrypt what has come; how much plaintext went to `into`.
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
                // It takes nothing though nothing waits.
                self.end = End::Failed(rustls::Error::General("a record is too long".to_owned()));
            }
        }
        got
    }

    /// Plaintext that waits.
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

    /// What a read says after the last byte.
    fn ended(&self) -> io::Result<usize> {
        match &self.end {
            End::Closed => Ok(0),
            End::Open | End::Cut => Err(io::ErrorKind::UnexpectedEof.into()),
            End::Failed(e) => Err(io::Error::new(io::ErrorKind::InvalidData, e.clone())),
        }
    }

    /// Ciphertext that rustls has made goes to what waits for the system.
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
