//! One request on a connection to an origin, and its answer.

use super::Handle;
use crate::h2::recv::Incoming;
use crate::h2::send::Outgoing;
use crate::h2::{fields, is_own_flood};
use crate::message::{
    HeadError, HeadKind, OutgoingRequest, Piece, RESPONSE_LIMITS, ResponseBodyError, heads,
};
use crate::metrics::Ending;
use h2::Reason;
use h2::client::ResponseFuture;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use weir_http1::{BodyOut, Framing, RequestInfo, Response, Trailers};
use weir_net::io::Core;
use weir_net::io::buffers::{Buffers, Input};
use weir_net::io::deadlines::Deadline;

/// A request at its origin.
pub(crate) struct Stream {
    handle: Handle,
    buffers: Rc<Buffers>,
    asked: RequestInfo,
    /// `None`: the request could not be sent.
    answer: Option<ResponseFuture>,
    send: Outgoing,
    /// Present once the final head has arrived.
    recv: Option<Incoming>,
    /// The last head that came.
    pub response: Box<Response>,
    deadline: Deadline,
    /// How often a head has arrived.
    reads: u32,
    /// Empty input, before the head.
    nothing: (Input, Trailers),
}

impl Stream {
    /// Sends the request's head.
    pub fn begin(core: &Core, mut handle: Handle, ask: &OutgoingRequest<'_>) -> Stream {
        let body = match ask.request.framing() {
            Framing::Length(n) => BodyOut::Length(n),
            Framing::Chunked => BodyOut::Chunked,
            Framing::None | Framing::Close => BodyOut::None,
        };
        let ends = matches!(body, BodyOut::None | BodyOut::Length(0)) && !ask.request.is_connect();
        let mut rendered = core.buffers.small();
        weir_http1::render_request(ask.request, ask.checked, ask.hop, ask.edits, body, &mut rendered);
        handle.begin();
        let conn = handle.conn();
        let request = fields::request(&rendered, ask.request.is_connect(), conn.https);
        core.buffers.keep_small(rendered);
        let mut send = Outgoing::default();
        let sent = request.and_then(|request| conn.sender.clone().send_request(request, ends).ok());
        let answer = sent.map(|(answer, stream)| {
            send.begin(stream, ends);
            answer
        });
        if answer.is_none() {
            conn.ends(Ending::Origin);
        }
        Stream {
            asked: RequestInfo {
                head: ask.request.is_head(),
                connect: ask.request.is_connect(),
                upgrade: false,
            },
            answer,
            send,
            recv: None,
            response: heads::take_response(),
            deadline: core.deadlines.add(),
            reads: 0,
            nothing: Default::default(),
            buffers: core.buffers.clone(),
            handle,
        }
    }

    /// Sets the limit of the origin's silence.
    pub fn set_deadline(&self, after_ns: Option<u64>) {
        self.deadline.set(after_ns);
    }

    /// Whether that limit has passed; otherwise wakes the task then.
    pub fn is_late(&self, cx: &mut Context<'_>) -> bool {
        self.deadline.ended(cx)
    }

    /// Bytes of the request that the origin had no room for.
    pub fn unsent(&self) -> usize {
        self.send.unsent()
    }

    /// Sends what is queued; ready when the origin had room for it.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send.poll_flush(cx)
    }

    /// Queues a piece of the request's body.
    pub fn queue_data(&mut self, bytes: &[u8]) {
        self.send.queue(bytes);
    }

    /// Sends the first `n` bytes of the client's input.
    pub fn send_data(&mut self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        let sent = self.send.push(cx, &from.bytes()[..n]);
        from.consume(n);
        sent
    }

    /// Ends the request's body. `named`: whether the head's Connection names a field.
    pub fn send_end(&mut self, trailers: &Trailers, named: impl Fn(&[u8]) -> bool) {
        self.send.finish(fields::trailers(trailers, named));
    }

    /// Reads the next head into `response`.
    pub fn poll_head(&mut self, cx: &mut Context<'_>, core: &Core) -> Poll<Result<HeadKind, HeadError>> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(Err(HeadError::Unprocessed)) };
        if let Poll::Ready(Some(Ok(interim))) = answer.poll_informational(cx) {
            self.read_head(&interim, false)?;
            return Poll::Ready(Ok(HeadKind::Interim));
        }
        let answered = ready!(Pin::new(answer).poll(cx));
        let (head, body) = answered.map_err(|e| self.why(&e))?.into_parts();
        let has_body = !body.is_end_stream();
        self.read_head(&http::Response::from_parts(head, ()), has_body)?;
        let ended = self.response.framing() == Framing::None && !self.asked.connect;
        let length = if let Framing::Length(n) = self.response.framing() { Some(n) } else { None };
        self.recv = Some(Incoming::new(core, body, length, ended));
        Poll::Ready(Ok(HeadKind::Final))
    }

    fn read_head(&mut self, head: &http::Response<()>, has_body: bool) -> Result<(), HeadError> {
        self.reads += 1;
        let mut scratch = self.buffers.small();
        let fields = head.headers().iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        let status = head.status().as_u16();
        let read =
            self.response.convert(status, fields, self.asked, has_body, &RESPONSE_LIMITS, &mut scratch);
        self.handle.conn().shared.frames.borrow_mut().accept_head(scratch.len());
        self.buffers.keep_small(scratch);
        read.map_err(HeadError::Rule)
    }

    /// Why no head arrived. An origin refuses before any work by REFUSED_STREAM, or by a GOAWAY below the stream (RFC
    /// 9113 §8.7).
    fn why(&self, e: &h2::Error) -> HeadError {
        let conn = self.handle.conn();
        match e.reason() {
            _ if conn.shared.is_flooded() || is_own_flood(e) => HeadError::Flooded,
            _ if e.is_go_away() && e.is_remote() => {
                conn.ends(Ending::Origin);
                HeadError::Unprocessed
            }
            Some(Reason::REFUSED_STREAM) if e.is_reset() => HeadError::Refused,
            Some(reason) if e.is_reset() && e.is_remote() => HeadError::Reset(reason),
            Some(reason) if e.is_reset() => HeadError::Malformed(reason),
            _ if conn.liveness.is_dead() => HeadError::Unanswered,
            _ if self.reads == 0 => HeadError::Silent,
            _ => HeadError::Cut,
        }
    }

    /// Why the body is incomplete; `None`: it is complete, and only the rest of the request is not wanted.
    fn why_cut(&self, e: &h2::Error, stream: u32, whole: bool) -> Option<ResponseBodyError> {
        let conn = self.handle.conn();
        let shared = &conn.shared;
        match e.reason() {
            _ if shared.is_flooded() || is_own_flood(e) => Some(ResponseBodyError::Flooded),
            // The origin ended the connection after its answer, while the request was still being sent.
            _ if whole && !(e.is_reset() && e.is_library()) => None,
            _ if !e.is_library() && shared.frames.borrow().has_ended(stream) => None,
            Some(reason) if e.is_reset() && e.is_remote() => Some(ResponseBodyError::Reset(reason)),
            Some(reason) if e.is_reset() => Some(ResponseBodyError::Malformed(reason)),
            _ if conn.liveness.is_dead() => Some(ResponseBodyError::Unanswered),
            _ => Some(ResponseBodyError::Cut),
        }
    }

    /// How often a part of the answer's head has arrived.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// Reads more of the answer's body.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, ResponseBodyError>> {
        let Some(recv) = &mut self.recv else { return Poll::Ready(Ok(Piece::End)) };
        Poll::Ready(match ready!(recv.poll(cx)) {
            Ok(Piece::End) => {
                let trailers = recv.take_trailers_bytes();
                self.handle.conn().shared.frames.borrow_mut().accept_head(trailers);
                Ok(Piece::End)
            }
            Ok(piece) => Ok(piece),
            Err(e) => {
                let (stream, whole) = (recv.stream(), recv.has_its_length());
                self.why_cut(&e, stream, whole).map_or(Ok(Piece::End), Err)
            }
        })
    }

    /// The next piece of what has arrived.
    pub fn next_piece(&mut self) -> Option<Result<Piece, ResponseBodyError>> {
        match self.poll_data(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(piece) => Some(piece),
            Poll::Pending => None,
        }
    }

    /// Whether the rest of the answer's body has arrived.
    pub fn has_come_whole(&mut self) -> bool {
        self.recv.as_mut().is_none_or(Incoming::has_come_whole)
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&mut self) -> &mut Input {
        self.recv.as_mut().map_or(&mut self.nothing.0, |recv| &mut recv.input)
    }

    /// Reports that the consumed part was forwarded: the origin may send as much more.
    pub fn release(&mut self) {
        if let Some(recv) = &mut self.recv {
            recv.release();
        }
    }

    /// The answer's trailers, once its body has ended.
    pub fn trailers(&self) -> &Trailers {
        self.recv.as_ref().map_or(&self.nothing.1, |recv| &recv.trailers)
    }

    /// Ends the exchange. Unfinished parts are cancelled; the connection stays with its target.
    pub fn end(self) {
        heads::keep_response(self.response);
    }

    /// As a tunnel: reads more bytes from the origin; `false` is its end of stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.release();
        let gone = || io::ErrorKind::ConnectionReset.into();
        self.poll_data(cx).map(|piece| piece.map(|piece| piece != Piece::End).map_err(|_| gone()))
    }

    /// As a tunnel: ends the stream to the origin.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send.finish(None);
        self.send.poll_flush(cx)
    }

    /// As a tunnel: begins it.
    pub fn begin_tunnel(&mut self) {
        self.send.begin_tunnel();
    }

    /// As a tunnel: whether the origin has reset it; otherwise wakes the task then.
    pub fn is_broken(&mut self, cx: &mut Context<'_>) -> bool {
        self.send.poll_reset(cx).is_ready()
    }

    /// As a tunnel: whether the connection has written everything that was sent.
    pub fn has_delivered(&self) -> bool {
        self.send.is_written()
    }

    /// As a tunnel: resets the stream.
    pub fn reset_tunnel(&mut self) {
        self.send.reset(Reason::CANCEL);
    }

    /// Bytes that were sent to the origin on this stream or are queued.
    pub fn queued(&self) -> u64 {
        self.send.sent() + self.send.unsent() as u64
    }
}
