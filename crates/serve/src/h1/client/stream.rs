//! One request on a connection to an origin, and its answer.

use super::Conn;
use crate::message::{HeadError, HeadKind, OutgoingRequest, Piece, ResponseBodyError, keep_response};
use crate::metrics::Ending;
use std::io;
use std::task::{Context, Poll};
use weir_http1::{
    BodyOut, Decoder, Encoder, Framing, Limits, Refusal, RequestInfo, Response, Seek, Trailers,
};
use weir_net::io::Core;
use weir_net::io::buffers::Input;
use weir_net::io::pipes::Pipe;

/// Pieces of a body up to this size are copied behind what is queued, so that a head and a small body leave in one
/// send.
const SMALL: usize = 16 * 1024;

/// A request on its connection.
pub(crate) struct Stream {
    conn: Box<Conn>,
    /// The last head that came.
    pub response: Box<Response>,
    seek: Seek,
    asked: RequestInfo,
    limits: &'static Limits,
    request: Encoder,
    decoder: Decoder,
    /// How often bytes of the answer's head have arrived.
    reads: u32,
    /// Whether the response's last byte was read.
    ended: bool,
}

impl Stream {
    /// Queues the request's head.
    pub fn begin(
        core: &Core,
        mut conn: Box<Conn>,
        ask: &OutgoingRequest<'_>,
        limits: &'static Limits,
    ) -> Stream {
        let body = body_out(ask.request.framing());
        let out = conn.wire.queue_to();
        weir_http1::render_request(ask.request, ask.checked, ask.hop, ask.edits, body, out);
        conn.requests += 1;
        conn.held.set_ending(Ending::Exchange);
        let asked = RequestInfo {
            head: ask.request.is_head(),
            connect: ask.request.is_connect(),
            upgrade: ask.checked.upgrade,
        };
        Stream {
            conn,
            response: core.spares.take(),
            seek: Seek::default(),
            asked,
            limits,
            request: Encoder::new(body),
            decoder: Decoder::new(Framing::None, limits),
            reads: 0,
            ended: false,
        }
    }

    /// Sets the limit of the origin's silence.
    pub fn set_deadline(&self, after_ns: Option<u64>) {
        self.conn.deadline.set(after_ns);
    }

    /// Whether that limit has passed; otherwise wakes the task then.
    pub fn is_late(&self, cx: &mut Context<'_>) -> bool {
        self.conn.deadline.ended(cx)
    }

    /// Bytes of the request that the socket has not taken.
    pub fn unsent(&self) -> usize {
        self.conn.wire.unsent()
    }

    /// Sends what is queued; ready when the socket has taken it.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.wire.poll_flush(cx)
    }

    /// Queues a piece of the request's body.
    pub fn queue_data(&mut self, bytes: &[u8]) {
        self.request.before(bytes.len(), self.conn.wire.queue_to());
        self.conn.wire.queue(bytes);
        self.request.after(self.conn.wire.queue_to());
    }

    /// Sends the first `n` bytes of the client's input.
    pub fn send_data(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        let wire = &mut self.conn.wire;
        self.request.before(n, wire.queue_to());
        let sent = if n <= SMALL {
            wire.queue(&from.bytes()[..n]);
            from.consume(n);
            Ok(())
        } else {
            wire.push_behind(cx, from, n)
        };
        self.request.after(wire.queue_to());
        sent
    }

    /// Whether the request's data may come through a pipe: it is sent as it is.
    pub fn takes_pipes(&self) -> bool {
        self.request.is_plain() && self.conn.wire.socket.is_plain()
    }

    /// Sends what is in a pipe.
    pub fn send_pipe(&mut self, cx: &mut Context<'_>, pipe: Pipe) -> io::Result<()> {
        self.conn.wire.push_pipe(cx, pipe)
    }

    /// Whether a pipe is to be emptied before more can be sent.
    pub fn has_pipe(&self) -> bool {
        self.conn.wire.has_pipe()
    }

    /// Queues the end of the request's body. `named`: whether the head's Connection names a field.
    pub fn send_end(&mut self, trailers: &Trailers, named: impl Fn(&[u8]) -> bool) {
        self.request.end_without(Some(trailers), named, self.conn.wire.queue_to());
    }

    /// Reads the next head into `response`. `sparing`: with a small buffer, so that little of the body is read with
    /// it.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        core: &Core,
        sparing: bool,
    ) -> Poll<Result<HeadKind, HeadError>> {
        loop {
            match self.take_head() {
                Ok(true) if self.response.is_interim() => return Poll::Ready(Ok(HeadKind::Interim)),
                Ok(true) => {
                    self.decoder = Decoder::new(self.response.framing(), self.limits);
                    self.ended = self.decoder.ended();
                    return Poll::Ready(Ok(HeadKind::Final));
                }
                Ok(false) => {}
                Err(refusal) => return Poll::Ready(Err(HeadError::Rule(refusal))),
            }
            let wire = &mut self.conn.wire;
            match if sparing { wire.poll_fill_small(cx) } else { wire.poll_fill(cx) } {
                Poll::Ready(Ok(usize::MAX)) => return Poll::Ready(Err(HeadError::TooLong)),
                Poll::Ready(Ok(n)) if n > 0 => {
                    self.reads += 1;
                    core.now();
                }
                Poll::Ready(_) if self.reads > 0 => return Poll::Ready(Err(HeadError::Cut)),
                Poll::Ready(_) => {
                    let refused = self.conn.wire.socket.tls_failure().map(HeadError::Tls);
                    return Poll::Ready(Err(refused.unwrap_or(HeadError::Silent)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// How often bytes of the answer's head have arrived.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// Whether a head is complete; it is then parsed and consumed.
    fn take_head(&mut self) -> Result<bool, Refusal> {
        let input = self.conn.wire.input();
        if input.is_empty() {
            return Ok(false);
        }
        let at_once =
            if self.seek.is_fresh() { self.response.take(input, self.asked, self.limits) } else { None };
        let length = match at_once {
            Some(length) => length,
            None => {
                let Some(length) = self.seek.response(input, self.limits)? else { return Ok(false) };
                self.response.parse(&input[..length], self.asked, self.limits)?;
                length
            }
        };
        self.conn.wire.consume(length);
        self.seek.reset();
        Ok(true)
    }

    /// Reads more of the answer's body.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, ResponseBodyError>> {
        loop {
            if let Some(piece) = self.next_piece() {
                return Poll::Ready(piece.map_err(ResponseBodyError::Rule));
            }
            match self.conn.wire.poll_fill(cx) {
                Poll::Ready(Ok(n)) if n > 0 => {}
                Poll::Ready(end) if end.is_ok() && self.decoder.eof().is_ok() => {
                    self.ended = true;
                    return Poll::Ready(Ok(Piece::End));
                }
                Poll::Ready(_) => return Poll::Ready(Err(ResponseBodyError::Cut)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The bytes of the answer's body that may go through a pipe: all that are left, if their number is known, none of
    /// them was read and they arrive as they are.
    pub fn pipeable(&self) -> Option<u64> {
        let is_plain = self.conn.wire.input().is_empty() && self.conn.wire.socket.is_plain();
        self.decoder.remaining().filter(|_| is_plain)
    }

    /// As [`Stream::poll_data`], into an empty pipe: at most `most` bytes and [`Stream::pipeable`]. If the pipe is empty
    /// after that, a piece is in the input: the end of the stream and errors are judged where bytes are read.
    pub fn poll_data_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<Result<Piece, ResponseBodyError>> {
        match self.conn.wire.poll_fill_pipe(cx, pipe, most) {
            Poll::Ready(Ok(n)) if n > 0 => {
                self.decoder.skip(n as u64);
                self.ended = self.decoder.ended();
                Poll::Ready(Ok(Piece::Data(n)))
            }
            _ => self.poll_data(cx),
        }
    }

    /// The next piece of what was read already; `None`: more must be read.
    pub fn next_piece(&mut self) -> Option<Result<Piece, Refusal>> {
        if self.ended {
            return Some(Ok(Piece::End));
        }
        let mut at = 0;
        match self.decoder.next(self.conn.wire.input(), &mut at) {
            Err(refusal) => Some(Err(refusal)),
            Ok(weir_http1::Piece::Data(from, to)) => {
                self.conn.wire.consume(from);
                Some(Ok(Piece::Data(to - from)))
            }
            Ok(weir_http1::Piece::End) => {
                self.conn.wire.consume(at);
                self.ended = true;
                Some(Ok(Piece::End))
            }
            Ok(weir_http1::Piece::More) => {
                self.conn.wire.consume(at);
                None
            }
        }
    }

    /// Whether the rest of the answer's body was read already, as far as the framing shows.
    pub fn has_come_whole(&mut self) -> bool {
        self.ended || self.decoder.would_end_within(self.conn.wire.input().len())
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&mut self) -> &mut Input {
        self.conn.wire.input_mut()
    }

    /// The answer's trailers, once its body has ended.
    pub fn trailers(&self) -> &Trailers {
        self.decoder.trailers()
    }

    /// Ends the exchange; returns the connection if it can be reused (`docs/spec/serving.md#reuse`): the request was
    /// sent completely (`sent`), the response was read completely, no byte is left over, neither side said close,
    /// nothing was upgraded or aborted.
    pub fn end(self, core: &Core, sent: bool) -> Option<Box<Conn>> {
        let clean = sent && self.is_clean();
        let Stream { mut conn, response, .. } = self;
        conn.is_doubtful = response.framing() == Framing::None;
        conn.bound |= response.binds_connection();
        keep_response(core, response);
        clean.then_some(conn)
    }

    fn is_clean(&self) -> bool {
        let Stream { conn, response, ended, .. } = self;
        *ended
            && conn.wire.unsent() == 0
            && conn.wire.input().is_empty()
            && !conn.wire.has_ended()
            && response.keep_alive()
            && response.status() != 101
            // A 204 that announces a body may well send one.
            && (response.status() != 204 || response.field("content-length").is_none_or(|n| n == b"0"))
    }

    /// As a tunnel: reads more bytes from the origin; `false` is its end of stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.conn.wire.poll_tunnel(cx)
    }

    /// As a tunnel: sends the first `n` bytes of another connection's input.
    pub fn send_tunnel(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        self.conn.wire.push_from(cx, from, n, &[])
    }

    /// As a tunnel: ends the stream to the origin.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.wire.socket.poll_shutdown(cx)
    }

    /// As a tunnel: whether the origin's connection is broken.
    pub fn is_broken(&self) -> bool {
        self.conn.wire.socket.is_broken()
    }

    /// As a tunnel: whether more can be read now.
    pub fn has_more(&mut self) -> bool {
        let wire = &mut self.conn.wire;
        !wire.input().is_empty() || !wire.has_ended() && wire.socket.has_input()
    }

    /// As a tunnel: whether the origin has everything that was sent, as far as the system tells. Nothing more can be
    /// sent then.
    pub fn has_delivered(&self) -> bool {
        self.conn.wire.has_delivered()
    }

    /// As a tunnel: makes the connection end in a reset.
    pub fn reset_tunnel(&mut self) {
        self.conn.wire.socket.end_in_reset(true);
    }

    /// Bytes that were sent to the origin on this connection or are queued.
    pub fn queued(&self) -> u64 {
        self.conn.wire.queued()
    }
}

/// The framing of a request's body to the origin: as it arrived.
fn body_out(framing: Framing) -> BodyOut {
    match framing {
        Framing::Length(n) => BodyOut::Length(n),
        Framing::Chunked => BodyOut::Chunked,
        Framing::None | Framing::Close => BodyOut::None,
    }
}
