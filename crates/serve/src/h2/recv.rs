//! A body that is received on a stream, of either side. Its bytes give window back only when they were forwarded, so
//! that a sender is at most a window ahead of the reader.

use crate::h2::fields;
use crate::message::Piece;
use crate::sync::buffered::{self, BufferedBytes};
use bytes::Bytes;
use h2::RecvStream;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use weir_http1::Trailers;
use weir_net::io::Core;
use weir_net::io::buffers::{Buffers, Input};
use weir_net::io::deadlines::{Deadline, TICK_NS};
use weir_plan::fixed::H2_STREAM_WINDOW_BYTES;

/// The received part of a body.
pub(crate) struct Incoming {
    /// `None` after [`Incoming::leave`].
    stream: Option<RecvStream>,
    buffers: Rc<Buffers>,
    /// What was read and not consumed; it begins with the data of a piece.
    pub input: Input,
    /// Once the body has ended.
    pub trailers: Trailers,
    /// Bytes of their names and values, until they are asked for.
    trailers_bytes: usize,
    ended: bool,
    /// Bytes that have not arrived, if its length is known.
    missing: Option<u64>,
    /// Bytes that were read and gave no window back yet.
    unreleased: usize,
    /// The part of that which was forwarded while this process buffered too much.
    kept_back: usize,
    /// The limit of what is buffered here: less than its window.
    most: usize,
    /// Counts what may be buffered here, unread or read and not forwarded.
    held: BufferedBytes,
    /// When retained window is given back.
    pause: Deadline,
}

impl Incoming {
    /// The body of this stream, of this length if it is known. `ended`: there is none.
    pub fn new(core: &Core, stream: RecvStream, length: Option<u64>, ended: bool) -> Incoming {
        let window = H2_STREAM_WINDOW_BYTES as usize;
        let most = length.map_or(window, |length| usize::try_from(length).unwrap_or(window).min(window));
        let most = if ended { 0 } else { most };
        Incoming {
            stream: Some(stream),
            buffers: core.buffers.clone(),
            input: Input::default(),
            trailers: Trailers::default(),
            trailers_bytes: 0,
            ended,
            missing: length,
            unreleased: 0,
            kept_back: 0,
            most,
            held: BufferedBytes::new(most),
            pause: core.deadlines.add(),
        }
    }

    /// Whether it was read completely.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the rest of it has arrived.
    pub fn has_come_whole(&mut self) -> bool {
        // Reads the connection first, so that the stream shows whether anything follows.
        let read = self.poll(&mut Context::from_waker(Waker::noop()));
        !matches!(read, Poll::Ready(Err(_)))
            && (self.ended || self.stream.as_ref().is_none_or(RecvStream::is_end_stream))
    }

    /// The number of its stream.
    pub fn stream(&self) -> u32 {
        self.stream.as_ref().map_or(0, |stream| stream.stream_id().as_u32())
    }

    /// Bytes of the trailers that have arrived; returned once.
    pub fn take_trailers_bytes(&mut self) -> usize {
        std::mem::take(&mut self.trailers_bytes)
    }

    /// Reads more of it.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, h2::Error>> {
        if !self.input.is_empty() {
            return Poll::Ready(Ok(Piece::Data(self.input.bytes().len())));
        }
        while !self.ended {
            let Some(stream) = &mut self.stream else { return Poll::Ready(Err(h2::Reason::CANCEL.into())) };
            let polled = stream.poll_data(cx);
            // Nothing of it is buffered here. After a while it continues although others wait: they may wait for what
            // it ends.
            if polled.is_pending() && self.unreleased > 0 && self.pause.ended(cx) {
                self.give(self.kept_back);
                continue;
            }
            match ready!(polled) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.take(&data);
                    return Poll::Ready(Ok(Piece::Data(data.len())));
                }
                Some(Err(e)) => return Poll::Ready(Err(e)),
                None => {
                    if let Some(trailers) = ready!(stream.poll_trailers(cx))? {
                        self.trailers = fields::read_trailers(&trailers);
                        self.trailers_bytes = trailers.iter().map(|(n, v)| n.as_str().len() + v.len()).sum();
                    }
                    self.ended = true;
                    self.most = 0;
                    self.held.set(0);
                }
            }
        }
        Poll::Ready(Ok(Piece::End))
    }

    /// Whether all bytes of its length have arrived, however the stream ended.
    pub fn has_its_length(&self) -> bool {
        self.missing == Some(0)
    }

    fn take(&mut self, data: &Bytes) {
        self.missing = self.missing.map(|missing| missing.saturating_sub(data.len() as u64));
        self.unreleased += data.len();
        let Incoming { input, buffers, .. } = self;
        // A frame is smaller than a buffer.
        let _ = input.fill(buffers, |space| {
            space[..data.len()].copy_from_slice(data);
            Poll::Ready(Ok::<_, ()>(data.len()))
        });
    }

    /// Reports that everything consumed was forwarded: as much more may arrive; later if this process already buffers
    /// too much.
    pub fn release(&mut self) {
        if self.stream.is_none() {
            return;
        }
        let written = self.unreleased - self.input.bytes().len();
        if written > 0 && buffered::is_over_limit() {
            if self.kept_back == 0 {
                self.pause.set(Some(TICK_NS));
            }
            // Forwarded bytes are no longer here, and no others replace them.
            self.kept_back = written;
            self.held.set(self.most.saturating_sub(written));
        } else if written > 0 {
            self.give(written);
        }
    }

    /// Gives back this much window.
    fn give(&mut self, bytes: usize) {
        self.pause.set(None);
        self.kept_back = 0;
        self.unreleased -= bytes;
        self.held.set(self.most);
        // It fails only if more is given back than arrived.
        if let Some(stream) = &mut self.stream {
            let _ = stream.flow_control().release_capacity(bytes);
        }
    }

    /// Stops reading the body; returns the rest, to be taken and dropped; `None`: it has ended.
    pub fn leave(&mut self) -> Option<UnwantedBody> {
        let stream = self.stream.take_if(|stream| !stream.is_end_stream())?;
        self.held.set(0);
        UnwantedBody::new(stream, std::mem::take(&mut self.unreleased))
    }
}

/// The rest of an unwanted body. While it is taken its sender can read the answer, which many do only then; dropping
/// it tells the sender to stop (RST_STREAM with NO_ERROR, RFC 9113 §8.1).
pub(crate) struct UnwantedBody(RecvStream);

impl UnwantedBody {
    /// The rest of this stream, on which this many bytes were read without giving window back; `None`: all of it has
    /// arrived.
    pub fn new(mut stream: RecvStream, unreleased: usize) -> Option<UnwantedBody> {
        let _ = stream.flow_control().release_capacity(unreleased);
        let mut rest = UnwantedBody(stream);
        rest.poll(&mut Context::from_waker(Waker::noop()), || {}).is_pending().then_some(rest)
    }

    /// Drops what arrives, piece by piece; ready at the end.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut came: impl FnMut()) -> Poll<()> {
        while let Some(Ok(data)) = ready!(self.0.poll_data(cx)) {
            let _ = self.0.flow_control().release_capacity(data.len());
            came();
        }
        Poll::Ready(())
    }
}
