//! A body that is sent on a stream, of either side: capacity is reserved before anything is handed to the connection,
//! which holds no more of a stream than its peer's window takes. The rest waits here.
//!
//! Small pieces that arrive together leave together: peers count small DATA frames that were not read yet, and end a
//! connection with too many of them, and so all of its streams.

use crate::sync::buffered::BufferedBytes;
use bytes::{Buf, Bytes, BytesMut};
use h2::{Reason, SendStream};
use http::HeaderMap;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Pieces below this are put together, up to as much as a frame holds.
const SMALL: usize = 4 * 1024;
/// The largest piece of a body that is kept in one: what most peers take as a frame.
pub(crate) const FRAME: usize = 16 * 1024;

/// A piece of a body, which counts as buffered until the connection has written it.
pub(crate) struct Data {
    bytes: Bytes,
    held: BufferedBytes,
    /// Of a tunnel: shows by its count that this piece was not written yet.
    unwritten: Option<Rc<()>>,
}

impl Data {
    fn new(bytes: Bytes) -> Data {
        Data { held: BufferedBytes::new(bytes.len()), bytes, unwritten: None }
    }

    /// Its first `n` bytes.
    fn split_to(&mut self, n: usize) -> Data {
        let unwritten = self.unwritten.clone();
        Data { bytes: self.bytes.split_to(n), held: self.held.split(n), unwritten }
    }
}

impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Data {
        Data::new(bytes)
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, n: usize) {
        self.bytes.advance(n);
    }
}

/// The unsent part of a body.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Once the head was sent.
    stream: Option<SendStream<Data>>,
    waiting: VecDeque<Data>,
    /// Small pieces that wait behind that.
    small: BytesMut,
    unsent: usize,
    /// The end waits behind that, with its trailers.
    end: Option<Option<HeaderMap>>,
    ended: bool,
    sent: u64,
    /// Of a tunnel: each piece that the connection has not written yet holds it.
    unwritten: Option<Rc<()>>,
}

impl Outgoing {
    /// Notes that the head was sent. `ended`: there is no body.
    pub fn begin(&mut self, stream: SendStream<Data>, ended: bool) {
        self.stream = Some(stream);
        self.ended = ended;
    }

    /// Queues bytes: each piece in memory of its own, so that sent pieces are freed and not kept by unsent ones.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.unsent += bytes.len();
        if bytes.len() < SMALL {
            self.small.extend_from_slice(bytes);
        }
        if bytes.len() >= SMALL || self.small.len() >= FRAME - SMALL {
            self.gather();
        }
        if bytes.len() >= SMALL {
            let Outgoing { waiting, unwritten, .. } = self;
            let data = |piece: &[u8]| Data {
                unwritten: unwritten.clone(),
                ..Data::new(Bytes::copy_from_slice(piece))
            };
            waiting.extend(bytes.chunks(FRAME).map(data));
        }
    }

    /// The same for as many of them as the other side takes, once there is enough for a frame.
    pub fn push(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        self.queue(bytes);
        if self.unsent < FRAME {
            return Ok(());
        }
        match self.poll_flush(cx) {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
    }

    /// Joins small pieces.
    fn gather(&mut self) {
        if !self.small.is_empty() {
            let data = Data::new(self.small.split().freeze());
            self.waiting.push_back(Data { unwritten: self.unwritten.clone(), ..data });
        }
    }

    /// Queues the end.
    pub fn finish(&mut self, trailers: Option<HeaderMap>) {
        if !self.ended && self.end.is_none() {
            self.end = Some(trailers);
            if self.unsent == 0 {
                // A broken stream is noticed when it is flushed.
                let _ = self.send_end();
            }
        }
    }

    /// Hands over what the other side has room for; ready when everything was.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.gather();
        while let Some(first) = self.waiting.front_mut() {
            let Some(stream) = &mut self.stream else { return Poll::Ready(Err(broken())) };
            let room = stream.capacity();
            if room == 0 {
                stream.reserve_capacity(self.unsent);
                match stream.poll_capacity(cx) {
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Ready(_) => return Poll::Ready(Err(broken())),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let part = first.split_to(room.min(first.remaining()));
            self.unsent -= part.remaining();
            self.sent += part.remaining() as u64;
            if !first.has_remaining() {
                self.waiting.pop_front();
            }
            let last = self.waiting.is_empty() && self.end.take_if(|trailers| trailers.is_none()).is_some();
            self.ended |= last;
            stream.send_data(part, last).map_err(|_| broken())?;
        }
        Poll::Ready(self.send_end())
    }

    /// Sends the end if nothing is queued before it.
    fn send_end(&mut self) -> io::Result<()> {
        let (Some(end), Some(stream)) = (self.end.take(), &mut self.stream) else { return Ok(()) };
        self.ended = true;
        let sent = match end {
            Some(trailers) => stream.send_trailers(trailers),
            None => stream.send_data(Bytes::new().into(), true),
        };
        sent.map_err(|_| broken())
    }

    /// Begins a tunnel: from now on [`Outgoing::is_written`] is known.
    pub fn begin_tunnel(&mut self) {
        self.unwritten = Some(Rc::default());
    }

    /// As a tunnel: whether the connection has written everything. A reset would overtake what it has not.
    pub fn is_written(&self) -> bool {
        self.unsent == 0 && self.unwritten.as_ref().is_none_or(|own| Rc::strong_count(own) == 1)
    }

    /// Bytes that are queued.
    pub fn unsent(&self) -> usize {
        self.unsent
    }

    /// Bytes that the other side had room for.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Breaks it off.
    pub fn reset(&mut self, reason: Reason) {
        if let Some(stream) = &mut self.stream {
            stream.send_reset(reason);
        }
    }

    /// The reason for which the other side has broken it off; otherwise wakes the task then.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Option<Reason>> {
        match &mut self.stream {
            Some(stream) => stream.poll_reset(cx).map(|reason| reason.ok()),
            None => Poll::Pending,
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}
