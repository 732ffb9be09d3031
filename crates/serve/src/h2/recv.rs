//! A body that comes on a stream, of either side. Its bytes give window back only when they were written on, so that a sender is
//! never more than a window ahead of whoever reads.

use crate::h1::Piece;
use crate::h2::fields;
use crate::io::buffers::{Buffers, Input};
use bytes::Bytes;
use h2::RecvStream;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_http1::Trailers;

/// What has come of a body.
pub(crate) struct Incoming {
    stream: RecvStream,
    buffers: Rc<Buffers>,
    /// What was read and not used up: the data of a piece stands first.
    pub input: Input,
    /// Once the body has ended.
    pub trailers: Trailers,
    ended: bool,
    /// Bytes that were read and gave no window back yet.
    held: usize,
}

impl Incoming {
    /// A body that comes on this stream. `ended`: there is none.
    pub fn new(stream: RecvStream, buffers: Rc<Buffers>, ended: bool) -> Incoming {
        Incoming { stream, buffers, input: Input::default(), trailers: Trailers::default(), ended, held: 0 }
    }

    /// Whether it was read to its end.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// More of it.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, h2::Error>> {
        if !self.input.is_empty() {
            return Poll::Ready(Ok(Piece::Data(self.input.bytes().len())));
        }
        while !self.ended {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.take(&data);
                    return Poll::Ready(Ok(Piece::Data(data.len())));
                }
                Some(Err(e)) => return Poll::Ready(Err(e)),
                None => {
                    if let Some(trailers) = ready!(self.stream.poll_trailers(cx))? {
                        self.trailers = fields::read_trailers(&trailers);
                    }
                    self.ended = true;
                }
            }
        }
        Poll::Ready(Ok(Piece::End))
    }

    fn take(&mut self, data: &Bytes) {
        self.held += data.len();
        let Incoming { input, buffers, .. } = self;
        // A frame is smaller than a buffer.
        let _ = input.fill(buffers, |space| {
            space[..data.len()].copy_from_slice(data);
            Poll::Ready(Ok::<_, ()>(data.len()))
        });
    }

    /// All that was used up of it was written on: as much more may come.
    pub fn release(&mut self) {
        let written = self.held - self.input.bytes().len();
        if written > 0 {
            self.held -= written;
            // It fails only where more is given back than came.
            let _ = self.stream.flow_control().release_capacity(written);
        }
    }
}
