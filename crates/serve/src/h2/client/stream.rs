//! One request on a connection to an origin, and its answer.

use super::Handle;
use crate::h2::link::{Fate, Incoming, LinkEnd, OpenStream};
use crate::message::{HeadError, HeadKind, OutgoingRequest, Piece, ResponseBodyError, keep_response};
use crate::metrics::Ending;
use std::io;
use std::task::{Context, Poll};
use weir_http1::{BodyOut, Framing, RequestInfo, Response, Trailers};
use weir_http2::{ErrorCode, Rendered};
use weir_net::io::Core;
use weir_net::io::buffers::Input;
use weir_net::io::deadlines::Deadline;

/// A request at its origin.
pub(crate) struct Stream {
    /// `None`: the request could not be sent.
    stream: Option<OpenStream>,
    handle: Handle,
    /// Whether a tunnel was asked for: CONNECT, or an upgrade by extended CONNECT.
    is_tunnel: bool,
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
    /// Sends the request's head. An upgrade goes as an extended CONNECT (RFC 8441).
    pub fn begin(core: &Core, mut handle: Handle, ask: &OutgoingRequest<'_>) -> Stream {
        let body = match ask.request.framing() {
            Framing::Length(n) => BodyOut::Length(n),
            Framing::Chunked => BodyOut::Chunked,
            Framing::None | Framing::Close => BodyOut::None,
        };
        let is_connect = ask.request.is_connect();
        let upgrade = ask.checked.upgrade.then(|| weir_http1::first_upgrade(ask.request, ask.hop)).flatten();
        let is_tunnel = is_connect || upgrade.is_some();
        let is_end = matches!(body, BodyOut::None | BodyOut::Length(0)) && !is_tunnel;
        let mut rendered = core.buffers.small();
        weir_http1::render_request(ask.request, ask.checked, ask.hop, ask.edits, body, &mut rendered);
        handle.begin();
        let conn = handle.conn();
        let asked =
            RequestInfo { head: ask.request.is_head(), connect: is_connect, upgrade: upgrade.is_some() };
        let head = Rendered::new(&rendered).mark(ask.request.sensitive_names());
        let mut line = head.request_line(conn.https);
        if let Some(protocol) = upgrade {
            line = line.into_extended_connect(protocol);
        }
        let stream = conn.link.request(&line, &head, asked, is_end);
        core.buffers.keep_small(rendered);
        if stream.is_none() && conn.link.codec.borrow().is_ending() {
            conn.ends(Ending::Origin);
        }
        Stream {
            stream,
            is_tunnel,
            recv: None,
            response: core.spares.take(),
            deadline: core.deadlines.add(),
            reads: 0,
            nothing: Default::default(),
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
        self.stream.as_ref().map_or(0, OpenStream::unsent)
    }

    /// Sends what is queued; ready when the origin had room for it.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stream {
            Some(stream) => stream.poll_flush(cx),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Queues a piece of the request's body.
    pub fn queue_data(&mut self, bytes: &[u8]) {
        if let Some(stream) = &self.stream {
            stream.queue(bytes);
        }
    }

    /// Sends the first `n` bytes of the client's input.
    pub fn send_data(&mut self, _cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        match &self.stream {
            Some(stream) => stream.push(from, n),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the request's body, but no tunnel, whose request has none. `named`: whether the head's Connection names a
    /// field.
    pub fn send_end(&mut self, trailers: &Trailers, named: impl Fn(&[u8]) -> bool) {
        if let Some(stream) = self.stream.as_ref().filter(|_| !self.is_tunnel) {
            stream.finish(crate::h2::passed_on(trailers, named));
        }
    }

    /// Reads the next head into `response`.
    pub fn poll_head(&mut self, cx: &mut Context<'_>, core: &Core) -> Poll<Result<HeadKind, HeadError>> {
        let Some(stream) = &self.stream else { return Poll::Ready(Err(HeadError::Unprocessed)) };
        let Some(head) = stream.take_head() else {
            if let Some(fate) = stream.fate() {
                return Poll::Ready(Err(self.why(fate)));
            }
            stream.await_input(cx);
            return Poll::Pending;
        };
        self.reads += 1;
        let response = head.read.map_err(HeadError::Rule)?;
        keep_response(core, std::mem::replace(&mut self.response, response));
        if head.kind == HeadKind::Final {
            let framing = self.response.framing();
            let has_ended = framing == Framing::None && !self.is_tunnel;
            // Of an answer without a body nothing else is read that could say so, as DATA behind 204.
            if has_ended && let Some(Fate::Malformed(why)) = stream.fate() {
                return Poll::Ready(Err(HeadError::Malformed(why)));
            }
            let length = if let Framing::Length(n) = framing { Some(n) } else { None };
            self.recv = Some(Incoming::new(core, length, has_ended));
        }
        Poll::Ready(Ok(head.kind))
    }

    /// Why no head arrived. An origin refuses before any work by REFUSED_STREAM, or by a GOAWAY below the stream (RFC
    /// 9113 §8.7).
    fn why(&self, fate: Fate) -> HeadError {
        let conn = self.handle.conn();
        match fate {
            Fate::Malformed(why) => HeadError::Malformed(why),
            Fate::Reset(code) => HeadError::Reset(code),
            Fate::Refused => HeadError::Refused,
            Fate::Unprocessed => HeadError::Unprocessed,
            Fate::Cut => match (conn.link.end(), conn.opened.get()) {
                (Some(end), _) if is_flood(end) => HeadError::Flooded,
                _ if conn.liveness.is_dead() => HeadError::Unanswered,
                (_, Some(Err(why))) => HeadError::Opening(why),
                _ if self.reads == 0 => HeadError::Silent,
                _ => HeadError::Cut,
            },
        }
    }

    /// Why the body is incomplete; `None`: it is complete, and only the rest of the request is not wanted.
    fn why_cut(&self, fate: Fate, is_whole: bool) -> Option<ResponseBodyError> {
        let conn = self.handle.conn();
        match fate {
            Fate::Malformed(why) => Some(ResponseBodyError::Malformed(why)),
            // The origin ended the stream or the connection after its answer, while the request was still being sent.
            _ if is_whole => None,
            Fate::Reset(code) => Some(ResponseBodyError::Reset(code)),
            _ if conn.link.end().is_some_and(is_flood) => Some(ResponseBodyError::Flooded),
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
        let (Some(recv), Some(stream)) = (&mut self.recv, &self.stream) else {
            return Poll::Ready(Ok(Piece::End));
        };
        let polled = recv.poll(stream, cx);
        polled.map(|piece| piece.or_else(|fate| self.end_body(fate)))
    }

    fn end_body(&self, fate: Fate) -> Result<Piece, ResponseBodyError> {
        let is_whole = self.recv.as_ref().is_none_or(Incoming::has_its_length);
        self.why_cut(fate, is_whole).map_or(Ok(Piece::End), Err)
    }

    /// The next piece of what has arrived.
    pub fn next_piece(&mut self) -> Option<Result<Piece, ResponseBodyError>> {
        let (Some(recv), Some(stream)) = (&mut self.recv, &self.stream) else { return Some(Ok(Piece::End)) };
        let next = recv.next(stream)?;
        Some(next.or_else(|fate| self.end_body(fate)))
    }

    /// Whether the rest of the answer's body has arrived.
    pub fn has_come_whole(&mut self) -> bool {
        match (&self.recv, &self.stream) {
            (Some(recv), Some(stream)) => recv.has_come_whole(stream),
            _ => true,
        }
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&mut self) -> &mut Input {
        self.recv.as_mut().map_or(&mut self.nothing.0, |recv| &mut recv.input)
    }

    /// Reports that the consumed part was forwarded: the origin may send as much more.
    pub fn release(&mut self) {
        if let (Some(recv), Some(stream)) = (&mut self.recv, &self.stream) {
            recv.release(stream);
        }
    }

    /// The answer's trailers, once its body has ended.
    pub fn trailers(&self) -> &Trailers {
        self.recv.as_ref().map_or(&self.nothing.1, |recv| &recv.trailers)
    }

    /// Ends the exchange. Unfinished parts are cancelled; the connection stays with its target.
    pub fn end(self, core: &Core) {
        keep_response(core, self.response);
    }

    /// As a tunnel: reads more bytes from the origin; `false` is its end of stream.
    pub fn poll_tunnel(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.release();
        let gone = || io::ErrorKind::ConnectionReset.into();
        self.poll_data(cx).map(|piece| piece.map(|piece| piece != Piece::End).map_err(|_| gone()))
    }

    /// As a tunnel: whether the origin's end of stream follows what was consumed.
    pub fn has_ended_tunnel(&self) -> bool {
        match (&self.recv, &self.stream) {
            (Some(recv), Some(stream)) => recv.is_drained(stream),
            _ => false,
        }
    }

    /// As a tunnel: the client's end of stream leaves with the bytes before it.
    pub fn end_tunnel(&self) {
        if let Some(stream) = &self.stream {
            stream.finish(None);
        }
    }

    /// As a tunnel: ends the stream to the origin.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(stream) = &self.stream {
            stream.finish(None);
        }
        self.poll_flush(cx)
    }

    /// As a tunnel: whether the origin has reset it; otherwise wakes the task then.
    pub fn is_broken(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stream) = &self.stream else { return true };
        stream.await_room(cx);
        stream.fate().is_some()
    }

    /// As a tunnel: whether everything has room. A reset would overtake what has none, and nothing else.
    pub fn has_delivered(&self) -> bool {
        self.unsent() == 0
    }

    /// As a tunnel: resets the stream.
    pub fn reset_tunnel(&mut self) {
        if let Some(stream) = &self.stream {
            stream.reset(ErrorCode::CANCEL);
        }
    }

    /// Bytes that were sent to the origin on this stream or are queued.
    pub fn queued(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.sent() + stream.unsent() as u64)
    }
}

/// Whether a connection has ended because its peer sent too much that brought nothing.
fn is_flood(end: LinkEnd) -> bool {
    matches!(end, LinkEnd::Fault(error) if error.code == ErrorCode::ENHANCE_YOUR_CALM)
}
