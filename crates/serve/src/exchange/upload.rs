//! A request's body on its way to an origin: what is kept first, then what comes.

use crate::control::event_loop::Loop;
use crate::exchange::failure::Failure;
use crate::exchange::{Exchange, More};
use crate::transport::wire::Wire;
use std::task::{Context, Poll};
use weir_http1::{BodyOut, Encoder};
use weir_topology::plan::fixed;

/// Pieces up to this size are copied behind what waits already, so that a head and a small body leave in one send.
const SMALL: usize = 16 * 1024;

/// The upload of one attempt.
pub(crate) struct Upload {
    /// How much of the kept bytes was sent.
    at: usize,
    /// Bytes that may be kept.
    keep: usize,
    encoder: Encoder,
    /// Whether all waits for the socket, or was taken by it.
    pub finished: bool,
    /// Whether the origin has stopped taking it.
    pub broken: bool,
}

/// Who broke an upload.
pub(crate) enum Broken {
    /// The client: the exchange is over.
    Client(Failure),
    /// The origin: it may have answered before.
    Origin,
}

impl Upload {
    /// An upload from the beginning.
    pub fn new(body: BodyOut, keep: usize) -> Upload {
        Upload { at: 0, keep, encoder: Encoder::new(body), finished: false, broken: false }
    }

    /// Sends on; ready when all was taken by the socket.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        lp: &Loop,
        ex: &Exchange,
        wire: &mut Wire,
    ) -> Poll<Result<(), Broken>> {
        loop {
            if self.finished || wire.unsent() >= fixed::MAX_UPLOAD_QUEUE_BYTES {
                match wire.poll_flush(cx) {
                    Poll::Ready(Ok(())) if self.finished => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Broken::Origin)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            match self.poll_piece(cx, lp, ex, wire) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                Poll::Pending => {
                    // What was put together waits for no further byte.
                    if let Poll::Ready(Err(_)) = wire.poll_flush(cx) {
                        return Poll::Ready(Err(Broken::Origin));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        lp: &Loop,
        ex: &Exchange,
        wire: &mut Wire,
    ) -> Poll<Result<(), Broken>> {
        let mut body = ex.body.borrow_mut();
        if self.at < body.kept.len() {
            let piece = &body.kept[self.at..];
            self.encoder.before(piece.len(), wire.queue_to());
            wire.queue(piece);
            self.encoder.after(wire.queue_to());
            self.at = body.kept.len();
            return Poll::Ready(Ok(()));
        }
        if body.complete {
            let named = |name: &[u8]| ex.request.names(name);
            self.encoder.end_without(Some(body.decoder.trailers()), named, wire.queue_to());
            self.finished = true;
            return Poll::Ready(Ok(()));
        }
        match ex.poll_more(cx, lp, &mut body) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(failure)) => Poll::Ready(Err(Broken::Client(failure))),
            Poll::Ready(Ok(More::End)) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(More::Data(from, to))) => {
                let mut client = ex.conn.wire.borrow_mut();
                if body.is_kept && body.kept.len() + to - from <= self.keep {
                    body.kept.extend_from_slice(&client.input()[from..to]);
                    client.consume(to);
                    return Poll::Ready(Ok(()));
                }
                body.is_kept = false;
                body.kept = Vec::new();
                self.at = 0;
                self.encoder.before(to - from, wire.queue_to());
                let sent = if to - from <= SMALL {
                    wire.queue(&client.input()[from..to]);
                    client.consume(to);
                    Ok(())
                } else {
                    client.consume(from);
                    wire.push_behind(cx, &mut client, to - from)
                };
                self.encoder.after(wire.queue_to());
                Poll::Ready(sent.map_err(|_| Broken::Origin))
            }
        }
    }
}
