//! A response's head that an origin has sent, with the connection on which the rest of it comes.

use super::OriginConn;
use super::server::Server;
use super::upload::{Broken, Upload};
use crate::deadlines::Deadline;
use crate::event_loop::Loop;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::wire::Wire;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Decoder, Encoder, Piece, Response};
use weir_policy::Kind;

/// A response that comes from an origin.
pub(crate) struct OriginReply {
    pub server: Rc<Server>,
    pub conn: OriginConn,
    pub response: Response,
    pub decoder: Decoder,
    pub upload: Upload,
    /// Silence of the origin.
    pub deadline: Deadline,
    /// Whether the response's last byte was read.
    pub ended: bool,
    /// Bytes of the body that were passed on.
    pub passed: u64,
}

/// How the relay of a body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenBody {
    /// The origin is to blame.
    Origin(Kind),
    /// The client is, or has gone.
    Client,
}

impl OriginReply {
    /// Goes on with the request's body, if it is still under way: an origin may answer before it has come whole.
    pub fn poll_upload(&mut self, cx: &mut Context<'_>, lp: &Loop, ex: &Exchange) -> Result<(), Failure> {
        if self.upload.finished && self.conn.wire.unsent() == 0 || self.upload.broken {
            return Ok(());
        }
        match self.upload.poll(cx, lp, ex, &mut self.conn.wire) {
            Poll::Ready(Err(Broken::Client(failure))) => Err(failure),
            Poll::Ready(Err(Broken::Origin)) => {
                self.upload.broken = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Passes the body on, with its trailers if the client wants them; ready when the client's socket has taken all of it.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Wire,
        encoder: &Encoder,
        trailers: bool,
    ) -> Poll<Result<(), BrokenBody>> {
        loop {
            if client.unsent() > 0 && (self.ended || client.unsent() > HEAD) {
                match client.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(BrokenBody::Client)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            let mut at = 0;
            match self.decoder.next(self.conn.wire.input(), &mut at) {
                Err(_) => return Poll::Ready(Err(BrokenBody::Origin(Kind::BadResponse))),
                Ok(Piece::Data(from, to)) => {
                    self.conn.wire.consume(from);
                    self.passed += (to - from) as u64;
                    encoder.before(to - from, client.queue_to());
                    let sent = client.push_behind(cx, &mut self.conn.wire, to - from);
                    encoder.after(client.queue_to());
                    if sent.is_err() {
                        return Poll::Ready(Err(BrokenBody::Client));
                    }
                    self.deadline.set(self.server.origin.body_timeout_ns);
                    continue;
                }
                Ok(Piece::End) => {
                    self.conn.wire.consume(at);
                    self.ended = true;
                    let named = |name: &[u8]| self.response.names(name);
                    encoder.end_without(trailers.then(|| self.decoder.trailers()), named, client.queue_to());
                    continue;
                }
                Ok(Piece::More) => self.conn.wire.consume(at),
            }
            match self.conn.wire.poll_fill(cx) {
                Poll::Ready(Ok(n)) if n > 0 => {}
                Poll::Ready(end) => match end.is_ok() && self.decoder.eof().is_ok() {
                    true => {
                        self.ended = true;
                        encoder.end(None, client.queue_to());
                    }
                    false => return Poll::Ready(Err(BrokenBody::Origin(Kind::Reset))),
                },
                Poll::Pending => {
                    if client.unsent() > 0 && matches!(client.poll_flush(cx), Poll::Ready(Err(_))) {
                        return Poll::Ready(Err(BrokenBody::Client));
                    }
                    if self.deadline.ended(cx) {
                        return Poll::Ready(Err(BrokenBody::Origin(Kind::Timeout)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// The exchange is over: the connection is kept for the next one, if nothing speaks against it.
    ///
    /// The condition stands on every path to a pool (`serving.md` §3): the request was sent whole, the response read whole,
    /// no byte is left over, nobody said close, nothing was upgraded or aborted.
    pub fn give_back(self: Box<Self>, lp: &Loop, ex: &Exchange) {
        let OriginReply { server, conn, response, upload, ended, .. } = *self;
        let clean = ended
            && ex.is_complete()
            && upload.finished
            && !upload.broken
            && conn.wire.unsent() == 0
            && conn.wire.input().is_empty()
            && !conn.wire.has_ended()
            && response.keep_alive()
            && response.status() != 101;
        match (clean, response.binds_connection()) {
            (true, true) => ex.conn.bind(server, OriginConn { bound: true, ..conn }),
            (true, false) if conn.bound => ex.conn.bind(server, conn),
            (true, false) => server.put(lp, conn),
            (false, _) => {}
        }
        lp.buffers.keep_response(response);
    }
}

/// Bytes of a head that wait for the body which comes with it.
const HEAD: usize = 8 * 1024;
