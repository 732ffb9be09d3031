//! The client's end of an exchange: one variant for each protocol that clients speak. Callers ask it, never a socket,
//! what can be read or flushed.

use crate::h1::server;
use crate::h2;
use crate::message::{Disposition, Piece, RequestBodyError, ResponseHead};
use crate::metrics::RequestLimit;
use crate::transport::session::Session;
use std::cell::{Ref, RefMut};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Edits, Response, Trailers};
use weir_http2::ErrorCode;
use weir_net::io::buffers::Input;
use weir_net::io::pipes::Pipe;
use weir_net::io::reuse::ReusedBox;

/// A request's client.
pub(crate) enum ClientEnd {
    /// HTTP/1.0 or HTTP/1.1.
    H1(server::Stream),
    /// HTTP/2.
    H2(ReusedBox<h2::server::Stream>),
}

/// Each method calls that of the protocol.
macro_rules! ask {
    ($self:ident, $stream:ident => $answer:expr) => {
        match $self {
            ClientEnd::H1($stream) => $answer,
            ClientEnd::H2($stream) => $answer,
        }
    };
    ($self:ident, $h1:ident => $old:expr, $h2:ident => $new:expr) => {
        match $self {
            ClientEnd::H1($h1) => $old,
            ClientEnd::H2($h2) => $new,
        }
    };
}

impl ClientEnd {
    /// The part of the connection that all protocols share.
    pub fn session(&self) -> &Rc<Session> {
        ask!(self, stream => stream.session())
    }

    /// Whether the request has no body.
    pub fn has_no_body(&self) -> bool {
        ask!(self, stream => stream.has_no_body())
    }

    /// Reads more of the request's body; `told`: the client knows that it is its turn, so its silence counts.
    pub fn poll_body(&self, cx: &mut Context<'_>, told: bool) -> Poll<Result<Piece, RequestBodyError>> {
        ask!(self, stream => stream.poll_body(cx, told))
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&self) -> RefMut<'_, Input> {
        ask!(self, stream => stream.input())
    }

    /// Reports that the consumed part of the request's body was forwarded, so more may arrive (HTTP/2; with HTTP/1.1
    /// only what is wanted is read).
    pub fn release(&self) {
        if let ClientEnd::H2(stream) = self {
            stream.release();
        }
    }

    /// The request's trailers, once its body has ended.
    pub fn trailers(&self) -> Ref<'_, Trailers> {
        ask!(self, stream => stream.trailers())
    }

    /// Starts to count the silence of a client that is to send more.
    pub fn expects_body(&self) {
        ask!(self, stream => stream.expects_body());
    }

    /// Sends 100 (Continue).
    pub fn send_continue(&self, cx: &mut Context<'_>) {
        ask!(self, h1 => h1.send_continue(cx), h2 => h2.send_continue());
    }

    /// Forwards an interim response. A client that is gone is noticed when it is read.
    pub fn send_interim(&self, cx: &mut Context<'_>, response: &Response) {
        ask!(self, h1 => h1.send_interim(cx, response), h2 => h2.send_interim(response));
    }

    /// Begins the final response.
    pub fn send_head(&self, head: &ResponseHead<'_>) {
        ask!(self, stream => stream.send_head(head));
    }

    /// Whether the head of the final response was sent.
    pub fn has_sent_head(&self) -> bool {
        ask!(self, stream => stream.has_sent_head())
    }

    /// Sends the head after which the connection is a tunnel.
    pub fn send_switch(&self, response: &Response, edits: &Edits, add: &[(&'static str, Vec<u8>)]) {
        ask!(self, stream => stream.send_switch(response, edits, add));
    }

    /// Begins a complete local answer; returns how much of the body was taken at once.
    pub fn send_answer(
        &self,
        status: u16,
        fields: &[(&str, &[u8])],
        body: &[u8],
        close: bool,
        date: [u8; 29],
    ) -> usize {
        match self {
            ClientEnd::H1(stream) => stream.send_answer(status, fields, body, close, date),
            ClientEnd::H2(stream) => return stream.send_answer(status, fields, body, date),
        }
        body.len()
    }

    /// Sends more of the body of such an answer; returns how much was taken.
    pub fn send_more(&self, cx: &mut Context<'_>, rest: &[u8]) -> io::Result<usize> {
        ask!(self, _h1 => Ok(rest.len()), h2 => h2.send_more(cx, rest))
    }

    /// Ready when more may be written: little or at most `ahead` bytes are unsent, and this process may buffer more,
    /// or the data is `counted` already.
    pub fn poll_capacity(&self, cx: &mut Context<'_>, ahead: usize, counted: bool) -> Poll<io::Result<()>> {
        ask!(self, h1 => h1.poll_capacity(cx, ahead), h2 => h2.poll_capacity(cx, ahead, counted))
    }

    /// Whether its unsent bytes count as buffered (`sync/buffered.rs`).
    pub fn counts(&self) -> bool {
        matches!(self, ClientEnd::H2(_))
    }

    /// Sends the first `n` bytes of an origin's input.
    pub fn send_data(&self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        ask!(self, stream => stream.send_data(cx, from, n))
    }

    /// The bytes of the request's body that may go through a pipe; `None`: they are read.
    pub fn pipeable(&self) -> Option<u64> {
        match self {
            ClientEnd::H1(stream) => stream.pipeable(),
            ClientEnd::H2(_) => None,
        }
    }

    /// As [`ClientEnd::poll_body`], into an empty pipe: at most `most` bytes and [`ClientEnd::pipeable`]. If the pipe is
    /// empty after that, a piece is in the input.
    pub fn poll_body_pipe(
        &self,
        cx: &mut Context<'_>,
        told: bool,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<Result<Piece, RequestBodyError>> {
        ask!(self, h1 => h1.poll_body_pipe(cx, told, pipe, most), h2 => h2.poll_body(cx, told))
    }

    /// Whether data may come through a pipe: it is sent as it is.
    pub fn takes_pipes(&self) -> bool {
        match self {
            ClientEnd::H1(stream) => stream.takes_pipes(),
            ClientEnd::H2(_) => false,
        }
    }

    /// Sends what is in a pipe.
    pub fn send_pipe(&self, cx: &mut Context<'_>, pipe: Pipe) -> io::Result<()> {
        match self {
            ClientEnd::H1(stream) => stream.send_pipe(cx, pipe),
            ClientEnd::H2(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Ends the response's body; `named`: whether the head's Connection names a field.
    pub fn send_end(&self, trailers: Option<&Trailers>, named: impl Fn(&[u8]) -> bool) {
        ask!(self, stream => stream.send_end(trailers, named));
    }

    /// Ready when the client's connection has taken everything that was written; otherwise wakes the task then.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ask!(self, stream => stream.poll_flush(cx))
    }

    /// Bytes that the client has not taken.
    pub fn unsent(&self) -> usize {
        ask!(self, stream => stream.unsent())
    }

    /// Bytes of the response's body (or of a tunnel) that the client has taken.
    pub fn sent(&self) -> u64 {
        ask!(self, stream => stream.sent())
    }

    /// The limit that the client has reached by taking nothing of the unsent bytes; otherwise wakes the task then.
    pub fn poll_stalled(&self, cx: &mut Context<'_>) -> Option<RequestLimit> {
        ask!(self, stream => stream.poll_stalled(cx))
    }

    /// The limit for which weir has ended the whole connection, if it has.
    pub fn ended_by(&self) -> Option<RequestLimit> {
        ask!(self, _h1 => None, h2 => h2.ended_by())
    }

    /// Whether the client has left; `complete`: the request was read completely.
    pub fn is_gone(&self, cx: &mut Context<'_>, complete: bool) -> bool {
        ask!(self, h1 => h1.is_gone(cx, complete), h2 => h2.is_gone(cx))
    }

    /// Ends an exchange whose answer was taken completely. `complete`: the request was too; `asked`: the client wants
    /// the connection to end.
    pub fn finish(&self, complete: bool, asked: bool) -> Disposition {
        ask!(self, h1 => h1.finish(complete, asked), h2 => h2.finish())
    }

    /// Drops the rest of the body of a request that was answered for its head, so that the client can read the answer
    /// (HTTP/2; with HTTP/1.1 the whole connection lingers).
    pub fn drop_upload(&self) {
        if let ClientEnd::H2(stream) = self {
            stream.drop_upload();
        }
    }

    /// Resets the client's stream if it has one (HTTP/2).
    pub fn reset(&self, code: ErrorCode) -> Disposition {
        ask!(self, h1 => h1.abort(), h2 => h2.reset(code))
    }

    /// Breaks the answer off visibly.
    pub fn abort(&self) -> Disposition {
        ask!(self, stream => stream.abort())
    }

    /// As a tunnel: resets the client's connection, or its stream.
    pub fn reset_tunnel(&self) -> Disposition {
        ask!(self, _h1 => Disposition::Reset, h2 => h2.reset_tunnel())
    }

    /// As a tunnel: reads more bytes; `false` is the client's end of stream.
    pub fn poll_tunnel(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        ask!(self, stream => stream.poll_tunnel(cx))
    }

    /// As a tunnel: sends the first `n` bytes of the origin's input.
    pub fn send_tunnel(&self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        ask!(self, stream => stream.send_tunnel(cx, from, n))
    }

    /// As a tunnel: whether the client's end of stream follows what was consumed (HTTP/2; with HTTP/1.1 a read shows it).
    pub fn has_ended_tunnel(&self) -> bool {
        ask!(self, _h1 => false, h2 => h2.has_ended_tunnel())
    }

    /// As a tunnel: the origin's end of stream leaves with the bytes before it (HTTP/2).
    pub fn end_tunnel(&self) {
        if let ClientEnd::H2(stream) = self {
            stream.end_tunnel();
        }
    }

    /// As a tunnel: ends the stream to the client.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ask!(self, stream => stream.poll_shutdown(cx))
    }

    /// As a tunnel: whether the client has broken it, even if nothing is read from it any more.
    pub fn is_broken(&self, cx: &mut Context<'_>) -> bool {
        ask!(self, h1 => h1.is_broken(), h2 => h2.is_gone(cx))
    }

    /// As a tunnel: whether more can be read now, though a read may have to wait for the task's turn (HTTP/2: it never
    /// has to).
    pub fn has_more(&self) -> bool {
        ask!(self, h1 => h1.has_more(), _h2 => false)
    }

    /// As a tunnel: whether the client has everything that was sent, as far as the system tells. Nothing more can be
    /// sent then.
    pub fn has_delivered(&self) -> bool {
        ask!(self, stream => stream.has_delivered())
    }
}
