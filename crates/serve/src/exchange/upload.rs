//! A request's body on its way to an origin: the kept bytes first, then those that arrive.

use super::{Exchange, Failure, OriginEnd, pipes};
use crate::message::Piece;
use std::task::{Context, Poll};
use weir_plan::fixed;

/// The upload of one attempt.
pub(crate) struct Upload {
    /// The number of kept bytes that were sent.
    at: usize,
    /// Bytes that may be kept.
    keep: usize,
    /// The length of the last piece that arrived.
    last_piece: usize,
    /// Whether everything was queued to the connection or taken by it.
    pub finished: bool,
    /// Whether the origin no longer takes it.
    pub broken: bool,
}

/// The side that broke an upload.
pub(crate) enum BrokenUpload {
    /// The client: the exchange is over.
    Client(Failure),
    /// The origin: it may have answered before.
    Origin,
}

impl Upload {
    /// An upload from the beginning of the body; up to `keep` bytes are kept.
    pub fn new(keep: usize) -> Upload {
        Upload { at: 0, keep, last_piece: 0, finished: false, broken: false }
    }

    /// Sends more; ready when the connection has taken everything.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        ex: &Exchange,
        origin: &mut OriginEnd,
    ) -> Poll<Result<(), BrokenUpload>> {
        loop {
            if self.finished || origin.unsent() >= fixed::MAX_UPLOAD_QUEUE_BYTES || origin.has_pipe() {
                match origin.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {
                        ex.client.release();
                        if self.finished {
                            return Poll::Ready(Ok(()));
                        }
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(BrokenUpload::Origin)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            match self.poll_piece(cx, ex, origin) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                Poll::Pending => {
                    // What was queued does not wait for more bytes.
                    match origin.poll_flush(cx) {
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(BrokenUpload::Origin)),
                        Poll::Ready(Ok(())) => ex.client.release(),
                        Poll::Pending => {}
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        ex: &Exchange,
        origin: &mut OriginEnd,
    ) -> Poll<Result<(), BrokenUpload>> {
        let mut body = ex.body.borrow_mut();
        if self.at < body.kept.len() {
            origin.queue_data(&body.kept[self.at..]);
            self.at = body.kept.len();
            return Poll::Ready(Ok(()));
        }
        if body.complete {
            let named = |name: &[u8]| ex.request.names(name);
            origin.send_end(&ex.client.trailers(), named);
            self.finished = true;
            return Poll::Ready(Ok(()));
        }
        let mut pipe = None;
        match pipes::poll_request(cx, ex, &mut body, origin, self.last_piece, &mut pipe) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(failure)) => Poll::Ready(Err(BrokenUpload::Client(failure))),
            Poll::Ready(Ok(Piece::End)) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(Piece::Data(n))) => {
                self.last_piece = n;
                if let Some(pipe) = pipe {
                    let sent = origin.send_pipe(cx, pipe);
                    return Poll::Ready(sent.map_err(|_| BrokenUpload::Origin));
                }
                let mut input = ex.client.input();
                if body.is_kept && body.kept.len() + n <= self.keep {
                    body.kept.extend_from_slice(&input.bytes()[..n]);
                    input.consume(n);
                    return Poll::Ready(Ok(()));
                }
                body.is_kept = false;
                body.kept = Vec::new();
                self.at = 0;
                let sent = origin.send_data(cx, &mut input, n);
                Poll::Ready(sent.map_err(|_| BrokenUpload::Origin))
            }
        }
    }
}
