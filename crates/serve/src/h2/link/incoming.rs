//! A body that is received on a stream, of either side. Its bytes give window back only when they were forwarded, so
//! that a sender is at most a window ahead of the reader.

use super::open_stream::OpenStream;
use super::slot::Fate;
use crate::message::Piece;
use crate::sync::buffered::{self, BufferedBytes};
use std::task::{Context, Poll};
use weir_http1::Trailers;
use weir_net::io::Core;
use weir_net::io::buffers::Input;
use weir_net::io::deadlines::{Deadline, TICK_NS};
use weir_plan::fixed::H2_STREAM_WINDOW_BYTES;

/// The received part of a body.
pub(crate) struct Incoming {
    /// What was taken and not consumed; it begins with the data of a piece.
    pub input: Input,
    /// Once the body has ended.
    pub trailers: Trailers,
    has_ended: bool,
    /// Whether the rest is not wanted here any more.
    is_left: bool,
    /// Bytes that have not arrived, if its length is known.
    missing: Option<u64>,
    /// Bytes that were taken and gave no window back yet.
    unreleased: usize,
    /// The part of that which was forwarded while this process buffered too much.
    kept_back: usize,
    /// What may be buffered here at least: the window that it begins with.
    most: usize,
    /// Counts what may be buffered here, unread or read and not forwarded.
    held: BufferedBytes,
    /// When retained window is given back.
    pause: Deadline,
}

impl Incoming {
    /// A body of this length, if it is known. `has_ended`: there is none.
    pub fn new(core: &Core, length: Option<u64>, has_ended: bool) -> Incoming {
        let window = H2_STREAM_WINDOW_BYTES as usize;
        let most = length.map_or(window, |length| usize::try_from(length).unwrap_or(window).min(window));
        let most = if has_ended { 0 } else { most };
        Incoming {
            input: Input::default(),
            trailers: Trailers::default(),
            has_ended,
            is_left: false,
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
        self.has_ended
    }

    /// Whether nothing follows what was consumed.
    pub fn is_drained(&self, stream: &OpenStream) -> bool {
        self.has_ended || self.input.is_empty() && stream.is_drained()
    }

    /// Whether all bytes of its length have arrived, however the stream ended.
    pub fn has_its_length(&self) -> bool {
        self.missing == Some(0)
    }

    /// Whether the rest of it has arrived.
    pub fn has_come_whole(&self, stream: &OpenStream) -> bool {
        self.has_ended || stream.has_ended()
    }

    /// The next piece of what has arrived.
    pub fn next(&mut self, stream: &OpenStream) -> Option<Result<Piece, Fate>> {
        if self.is_left {
            return Some(Err(Fate::Cut));
        }
        if self.input.is_empty() && !self.has_ended {
            self.take(stream);
        }
        match self.input.bytes().len() {
            0 if self.has_ended => Some(Ok(Piece::End)),
            0 => stream.fate().map(Err),
            n => Some(Ok(Piece::Data(n))),
        }
    }

    fn take(&mut self, stream: &OpenStream) {
        self.input = stream.take_arrived();
        let n = self.input.bytes().len();
        if n > 0 {
            self.missing = self.missing.map(|missing| missing.saturating_sub(n as u64));
            self.unreleased += n;
            self.held.set(self.most.max(n));
        } else if stream.has_ended() {
            if let Some(trailers) = stream.take_trailers() {
                self.trailers = *trailers;
            }
            self.has_ended = true;
            self.most = 0;
            self.held.set(0);
        }
    }

    /// Reads more of it.
    pub fn poll(&mut self, stream: &OpenStream, cx: &mut Context<'_>) -> Poll<Result<Piece, Fate>> {
        if let Some(piece) = self.next(stream) {
            return Poll::Ready(piece);
        }
        // Nothing of it is buffered here. After a while it continues although others wait: they may wait for what it
        // ends. What was taken is forwarded, and kept back, only after this.
        if self.unreleased > 0 && self.pause.ended(cx) {
            self.give(stream, self.kept_back);
        }
        stream.await_input(cx);
        Poll::Pending
    }

    /// Reports that everything consumed was forwarded: as much more may arrive; later if this process already buffers
    /// too much.
    pub fn release(&mut self, stream: &OpenStream) {
        let written = self.unreleased - self.input.bytes().len();
        if self.is_left || written == 0 {
            return;
        }
        if buffered::is_over_limit() {
            if self.kept_back == 0 {
                self.pause.set(Some(TICK_NS));
            }
            // Forwarded bytes are no longer here, and no others replace them.
            self.kept_back = written;
            self.held.set(self.most.saturating_sub(written));
        } else {
            self.give(stream, written);
        }
    }

    /// Gives back this much window.
    fn give(&mut self, stream: &OpenStream, bytes: usize) {
        self.pause.set(None);
        self.kept_back = 0;
        self.unreleased -= bytes;
        self.held.set(self.most.max(self.input.bytes().len()));
        stream.release(bytes);
    }

    /// Stops reading the body; returns the rest, to be taken and dropped; `None`: it has ended.
    pub fn leave(&mut self, stream: &OpenStream) -> Option<UnwantedBody> {
        if std::mem::replace(&mut self.is_left, true) {
            return None;
        }
        self.held.set(0);
        stream.release(std::mem::take(&mut self.unreleased));
        UnwantedBody::new(stream)
    }
}

/// The rest of an unwanted body. While it is taken its sender can read the answer, which many do only then; dropping
/// it tells the sender to stop (RST_STREAM with NO_ERROR, RFC 9113 §8.1).
pub(crate) struct UnwantedBody(OpenStream);

impl UnwantedBody {
    /// The rest of this stream; `None`: all of it has arrived.
    pub fn new(stream: &OpenStream) -> Option<UnwantedBody> {
        if stream.has_ended() || stream.fate().is_some() {
            return None;
        }
        Some(UnwantedBody(stream.clone()))
    }

    /// Drops what arrives, piece by piece; ready at the end.
    pub fn poll(&mut self, cx: &mut Context<'_>, came: impl FnOnce()) -> Poll<()> {
        let n = self.0.take_arrived().bytes().len();
        if n > 0 {
            self.0.release(n);
            came();
        }
        if self.0.has_ended() || self.0.fate().is_some() {
            return Poll::Ready(());
        }
        self.0.await_input(cx);
        Poll::Pending
    }
}
