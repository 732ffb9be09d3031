//! A response's head that an origin has sent, with the connection on which the rest of it comes.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::abort::Cut;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::upload::{Broken, Upload};
use crate::transport::wire::Wire;
use crate::upstream::OriginConn;
use crate::upstream::server::Server;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Decoder, Edits, Encoder, Framing, Piece, Response};
use weir_policy::Kind;

/// A response that comes from an origin.
pub(crate) struct OriginReply {
    pub server: Rc<Server>,
    pub conn: Box<OriginConn>,
    pub response: Response,
    pub decoder: Decoder,
    pub upload: Upload,
    /// The targets by which the request came.
    pub cut: Cut,
    /// Whether the response's last byte was read.
    pub ended: bool,
    /// Bytes of the body that were passed on.
    pub passed: u64,
    /// Changes of its head (`rewrite`).
    pub edits: Edits,
    /// Fields of weir's own beside those of the origin (`sticky`).
    pub add: Vec<(&'static str, Vec<u8>)>,
    /// Bytes of the body that are read ahead of the client at most (`buffered`).
    pub ahead: usize,
}

/// How the relay of a body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenBody {
    /// The origin is to blame.
    Origin(Kind, Why),
    /// Something that is held says so: a limit of time, or a crash; the number of the hold.
    Held(usize, Kind),
    /// The client is, or has gone; or weir gives the exchange up.
    Client,
}

impl OriginReply {
    /// Whether the origin was sent the whole request.
    pub fn is_sent_whole(&self) -> bool {
        self.upload.finished && !self.upload.broken && self.conn.wire.unsent() == 0
    }

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

    /// Passes the body on, with its trailers if the client wants them; ready when all of it was read. What the client's
    /// socket has not taken waits in its wire.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Wire,
        encoder: &Encoder,
        trailers: bool,
    ) -> Poll<Result<(), BrokenBody>> {
        loop {
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            if self.cut.is_off() {
                return Poll::Ready(Err(BrokenBody::Client));
            }
            if client.unsent() > HEAD.max(self.ahead) {
                match client.poll_flush(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(BrokenBody::Client)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let mut at = 0;
            match self.decoder.next(self.conn.wire.input(), &mut at) {
                Err(refusal) => {
                    return Poll::Ready(Err(BrokenBody::Origin(Kind::BadResponse, Why::Rule(refusal))));
                }
                Ok(Piece::Data(from, to)) => {
                    self.conn.wire.consume(from);
                    self.passed += (to - from) as u64;
                    encoder.before(to - from, client.queue_to());
                    let sent = if client.unsent() > HEAD || to - from <= SMALL {
                        client.queue(&self.conn.wire.input()[..to - from]);
                        self.conn.wire.consume(to - from);
                        Ok(())
                    } else {
                        client.push_behind(cx, &mut self.conn.wire, to - from)
                    };
                    encoder.after(client.queue_to());
                    if sent.is_err() {
                        return Poll::Ready(Err(BrokenBody::Client));
                    }
                    self.conn.deadline.set(self.server.origin.body_timeout_ns);
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
                    false => return Poll::Ready(Err(BrokenBody::Origin(Kind::Reset, Why::BodyCut))),
                },
                Poll::Pending => {
                    if client.unsent() > 0 && matches!(client.poll_flush(cx), Poll::Ready(Err(_))) {
                        return Poll::Ready(Err(BrokenBody::Client));
                    }
                    if self.is_clients_turn() {
                        // An answer came before the request was whole: the origin may well wait for the client.
                        self.conn.deadline.set(self.server.origin.body_timeout_ns);
                    } else if self.conn.deadline.ended(cx) {
                        let why = Why::BodyLimit(self.server.origin.body_timeout_ns);
                        return Poll::Ready(Err(BrokenBody::Origin(Kind::Timeout, why)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Whether more of the request is wanted and the origin has all that came of it.
    fn is_clients_turn(&self) -> bool {
        !self.upload.finished && !self.upload.broken && self.conn.wire.unsent() == 0
    }

    /// Nobody wants it. Its connection is kept for others if the rest of it is here already.
    pub fn discard(mut self: Box<Self>, lp: &Loop, ex: &Exchange) {
        loop {
            let mut at = 0;
            match self.decoder.next(self.conn.wire.input(), &mut at) {
                Ok(Piece::Data(_, to)) => self.conn.wire.consume(to),
                Ok(Piece::End) => {
                    self.conn.wire.consume(at);
                    self.ended = true;
                    return self.give_back(lp, ex);
                }
                Ok(Piece::More) | Err(_) => return,
            }
        }
    }

    /// The exchange is over: the connection is kept for the next one, if nothing speaks against it.
    ///
    /// The condition stands on every path to a pool (`serving.md` §3): the request was sent whole, the response read whole,
    /// no byte is left over, nobody said close, nothing was upgraded or aborted.
    pub fn give_back(self: Box<Self>, lp: &Loop, ex: &Exchange) {
        let clean = ex.is_complete() && self.is_clean();
        let OriginReply { server, mut conn, response, .. } = *self;
        conn.is_doubtful = response.framing() == Framing::None;
        match (clean, response.binds_connection()) {
            (true, true) => {
                conn.bound = true;
                ex.conn.bind(server, conn);
            }
            (true, false) if conn.bound => ex.conn.bind(server, conn),
            (true, false) => server.put(lp, conn),
            (false, _) => {}
        }
        lp.buffers.keep_response(response);
    }

    /// The same after a drain: the request was complete, and its client is not there any more.
    pub fn give_back_drained(self: Box<Self>, lp: &Loop) {
        let clean = self.is_clean() && !self.response.binds_connection();
        let OriginReply { server, conn, response, .. } = *self;
        if clean && !conn.bound {
            server.put(lp, conn);
        }
        lp.buffers.keep_response(response);
    }

    fn is_clean(&self) -> bool {
        let OriginReply { conn, response, upload, ended, .. } = self;
        *ended
            && upload.finished
            && !upload.broken
            && conn.wire.unsent() == 0
            && conn.wire.input().is_empty()
            && !conn.wire.has_ended()
            && response.keep_alive()
            && response.status() != 101
            // A 204 that announces a body may well send one.
            && (response.status() != 204 || response.field("content-length").is_none_or(|n| n == b"0"))
    }
}

/// Pieces up to this size are copied behind the head, and leave with it at the end of the turn.
const SMALL: usize = 4 * 1024;

/// Bytes of a head that wait for the body which comes with it.
const HEAD: usize = 8 * 1024;
