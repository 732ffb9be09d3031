//! The origin's end of an exchange, the counterpart of the client's: one variant for each protocol that origins
//! speak.

use crate::h1::client;
use crate::h2;
use crate::message::{HeadError, HeadKind, OutgoingRequest, Piece, RESPONSE_LIMITS, ResponseBodyError};
use crate::metrics::Ending;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use weir_http1::{Response, Trailers};
use weir_net::io::Core;
use weir_net::io::buffers::Input;
use weir_net::io::pipes::Pipe;

/// A connection to an origin on which no request is in progress.
pub(crate) enum OriginConn {
    /// HTTP/1.1.
    H1(Box<client::Conn>),
    /// A place for one request on an HTTP/2 connection.
    H2(h2::client::Handle),
}

/// A request at its origin.
pub(crate) enum OriginEnd {
    /// HTTP/1.1.
    H1(client::Stream),
    /// HTTP/2.
    H2(Box<h2::client::Stream>),
}

impl OriginConn {
    /// Whether it may be used: open, no unexpected bytes, neither idle for too long nor too old.
    pub fn is_usable(&mut self, now_ns: u64, since_ns: u64, idle_timeout_ns: Option<u64>) -> bool {
        let fresh = idle_timeout_ns.is_none_or(|most| now_ns.saturating_sub(since_ns) < most);
        match self {
            OriginConn::H1(conn) => {
                let ending = match () {
                    () if !fresh => Ending::Idle,
                    () if now_ns >= conn.old_ns => Ending::Age,
                    () if !conn.is_silent() => Ending::Origin,
                    () => return true,
                };
                conn.held.set_ending(ending);
                false
            }
            OriginConn::H2(handle) => fresh && handle.conn().is_usable(now_ns, None),
        }
    }

    /// Sets the reason that is counted if the connection ends from now on.
    pub fn set_ending(&self, ending: Ending) {
        if let OriginConn::H1(conn) = self {
            conn.held.set_ending(ending);
        }
    }

    /// Prepares it for being idle.
    pub fn rest(&mut self) {
        if let OriginConn::H1(conn) = self {
            conn.rest();
        }
    }

    /// The number of requests that were begun on it.
    pub fn requests(&self) -> u64 {
        match self {
            OriginConn::H1(conn) => conn.requests,
            OriginConn::H2(handle) => handle.requests(),
        }
    }

    /// When it was made, ns.
    pub fn opened_ns(&self) -> u64 {
        match self {
            OriginConn::H1(conn) => conn.opened_ns,
            OriginConn::H2(handle) => handle.conn().opened_ns,
        }
    }

    /// The address of the other end; `None`: a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            OriginConn::H1(conn) => conn.socket().peer(),
            OriginConn::H2(handle) => handle.conn().peer,
        }
    }

    /// Whether it belongs to one client's connection (NTLM, Negotiate).
    pub fn is_bound(&self) -> bool {
        matches!(self, OriginConn::H1(conn) if conn.bound)
    }

    /// Whether it carries upgrades: by HTTP/2 only where the origin's settings allow it.
    pub fn takes_upgrades(&self) -> bool {
        match self {
            OriginConn::H1(_) => true,
            OriginConn::H2(handle) => handle.conn().has_extended_connect(),
        }
    }

    /// Begins a request on it.
    pub fn begin(self, core: &Core, ask: &OutgoingRequest<'_>) -> OriginEnd {
        match self {
            OriginConn::H1(conn) => OriginEnd::H1(client::Stream::begin(core, conn, ask, &RESPONSE_LIMITS)),
            OriginConn::H2(handle) => OriginEnd::H2(Box::new(h2::client::Stream::begin(core, handle, ask))),
        }
    }
}

/// Each method calls that of the protocol.
macro_rules! ask {
    ($self:ident, $stream:ident => $answer:expr) => {
        match $self {
            OriginEnd::H1($stream) => $answer,
            OriginEnd::H2($stream) => $answer,
        }
    };
}

impl OriginEnd {
    /// Sets the limit of the origin's silence.
    pub fn set_deadline(&self, after_ns: Option<u64>) {
        ask!(self, stream => stream.set_deadline(after_ns));
    }

    /// Whether that limit has passed; otherwise wakes the task then.
    pub fn is_late(&self, cx: &mut Context<'_>) -> bool {
        ask!(self, stream => stream.is_late(cx))
    }

    /// Bytes of the request that the connection has not taken.
    pub fn unsent(&self) -> usize {
        ask!(self, stream => stream.unsent())
    }

    /// Sends what is queued; ready when the connection has taken it.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ask!(self, stream => stream.poll_flush(cx))
    }

    /// Queues a piece of the request's body that was kept.
    pub fn queue_data(&mut self, bytes: &[u8]) {
        ask!(self, stream => stream.queue_data(bytes));
    }

    /// Sends the first `n` bytes of the client's input.
    pub fn send_data(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        ask!(self, stream => stream.send_data(cx, from, n))
    }

    /// Whether the request's data may come through a pipe: it is sent as it is.
    pub fn takes_pipes(&self) -> bool {
        match self {
            OriginEnd::H1(stream) => stream.takes_pipes(),
            OriginEnd::H2(_) => false,
        }
    }

    /// Sends what is in a pipe.
    pub fn send_pipe(&mut self, cx: &mut Context<'_>, pipe: Pipe) -> io::Result<()> {
        match self {
            OriginEnd::H1(stream) => stream.send_pipe(cx, pipe),
            OriginEnd::H2(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether a pipe is to be emptied before more can be sent.
    pub fn has_pipe(&self) -> bool {
        matches!(self, OriginEnd::H1(stream) if stream.has_pipe())
    }

    /// Ends the request's body; `named`: whether the head's Connection names a field.
    pub fn send_end(&mut self, trailers: &Trailers, named: impl Fn(&[u8]) -> bool) {
        ask!(self, stream => stream.send_end(trailers, named));
    }

    /// Reads up to the next head. `sparing`: with a small buffer, so that little of the body is read with it.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        core: &Core,
        sparing: bool,
    ) -> Poll<Result<HeadKind, HeadError>> {
        match self {
            OriginEnd::H1(stream) => stream.poll_head(cx, core, sparing),
            // Its window bounds what arrives.
            OriginEnd::H2(stream) => stream.poll_head(cx, core),
        }
    }

    /// How often a part of the answer's head has arrived.
    pub fn reads(&self) -> u32 {
        ask!(self, stream => stream.reads())
    }

    /// The last head that was read.
    pub fn response(&self) -> &Response {
        ask!(self, stream => &stream.response)
    }

    /// Reads more of the answer's body.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, ResponseBodyError>> {
        ask!(self, stream => stream.poll_data(cx))
    }

    /// The bytes of the answer's body that may go through a pipe; `None`: they are read.
    pub fn pipeable(&self) -> Option<u64> {
        match self {
            OriginEnd::H1(stream) => stream.pipeable(),
            OriginEnd::H2(_) => None,
        }
    }

    /// As [`OriginEnd::poll_data`], into an empty pipe: at most `most` bytes and [`OriginEnd::pipeable`]. If the pipe is
    /// empty after that, a piece is in the input.
    pub fn poll_data_pipe(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<Result<Piece, ResponseBodyError>> {
        match self {
            OriginEnd::H1(stream) => stream.poll_data_pipe(cx, pipe, most),
            OriginEnd::H2(stream) => stream.poll_data(cx),
        }
    }

    /// Discards the part of the answer's body that has arrived; returns whether that was all of it.
    pub fn skip_what_is_here(&mut self) -> bool {
        ask!(self, stream => loop {
            match stream.next_piece() {
                Some(Ok(Piece::Data(n))) => stream.input().consume(n),
                Some(Ok(Piece::End)) => return true,
                Some(Err(_)) | None => return false,
            }
        })
    }

    /// Whether the rest of the answer's body has arrived, as far as the framing shows.
    pub fn has_come_whole(&mut self) -> bool {
        ask!(self, stream => stream.has_come_whole())
    }

    /// The next piece of the answer's body that is already in a lent buffer, which counts nowhere.
    pub fn lent_piece(&mut self) -> Option<Result<Piece, ResponseBodyError>> {
        match self {
            OriginEnd::H1(stream) => stream.next_piece().map(|piece| piece.map_err(ResponseBodyError::Rule)),
            OriginEnd::H2(_) => None,
        }
    }

    /// Whether the body counts before it is read: by the stream's window.
    pub fn is_counted(&self) -> bool {
        matches!(self, OriginEnd::H2(_))
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&mut self) -> &mut Input {
        ask!(self, stream => stream.input())
    }

    /// Reports that the consumed part of the answer was forwarded, so more may arrive (HTTP/2; with HTTP/1.1 only
    /// what is wanted is read).
    pub fn release(&mut self) {
        if let OriginEnd::H2(stream) = self {
            stream.release();
        }
    }

    /// The answer's trailers, once its body has ended.
    pub fn trailers(&self) -> &Trailers {
        ask!(self, stream => stream.trailers())
    }

    /// Ends the exchange; returns the connection if it can be reused. `sent`: the request was sent completely.
    pub fn end(self, core: &Core, sent: bool) -> Option<OriginConn> {
        match self {
            OriginEnd::H1(stream) => stream.end(core, sent).map(OriginConn::H1),
            // The connection stays with the target.
            OriginEnd::H2(stream) => {
                stream.end(core);
                None
            }
        }
    }

    /// As a tunnel: reads more bytes; `false` is the origin's end of stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        ask!(self, stream => stream.poll_tunnel(cx))
    }

    /// As a tunnel: sends the first `n` bytes of the client's input.
    pub fn send_tunnel(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        match self {
            OriginEnd::H1(stream) => stream.send_tunnel(cx, from, n),
            OriginEnd::H2(stream) => stream.send_data(cx, from, n),
        }
    }

    /// As a tunnel: whether the origin's end of stream follows what was consumed (HTTP/2; with HTTP/1.1 a read shows it).
    pub fn has_ended_tunnel(&self) -> bool {
        matches!(self, OriginEnd::H2(stream) if stream.has_ended_tunnel())
    }

    /// As a tunnel: the client's end of stream leaves with the bytes before it (HTTP/2).
    pub fn end_tunnel(&self) {
        if let OriginEnd::H2(stream) = self {
            stream.end_tunnel();
        }
    }

    /// As a tunnel: ends the stream to the origin.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ask!(self, stream => stream.poll_shutdown(cx))
    }

    /// As a tunnel: whether the origin has broken it, even if nothing is read from it any more.
    pub fn is_broken(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            OriginEnd::H1(stream) => stream.is_broken(),
            OriginEnd::H2(stream) => stream.is_broken(cx),
        }
    }

    /// As a tunnel: whether more can be read now, though a read may have to wait for the task's turn (HTTP/2: it never
    /// has to).
    pub fn has_more(&mut self) -> bool {
        match self {
            OriginEnd::H1(stream) => stream.has_more(),
            OriginEnd::H2(_) => false,
        }
    }

    /// As a tunnel: whether the origin has everything that was sent, as far as the system tells. Nothing more can be
    /// sent then.
    pub fn has_delivered(&self) -> bool {
        ask!(self, stream => stream.has_delivered())
    }

    /// As a tunnel: resets the origin's connection, or its stream, in place of an end in order.
    pub fn reset_tunnel(&mut self) {
        ask!(self, stream => stream.reset_tunnel());
    }

    /// Bytes that were sent to the origin or are queued.
    pub fn queued(&self) -> u64 {
        ask!(self, stream => stream.queued())
    }
}
