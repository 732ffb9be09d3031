//! One request on a client's connection: its body is read, its answer is written. The client's end of an exchange.

use super::Conn;
use super::unwanted::linger;
use crate::h2;
use crate::h2::link::{Fate, Incoming, OpenStream};
use crate::h2::stall::Stall;
use crate::message::{Disposition, Piece, RequestBodyError, ResponseHead};
use crate::metrics::RequestLimit;
use crate::sync::buffered;
use crate::transport::session::Session;
use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Client, Edits, Framing, Request, Response, Trailers, Version};
use weir_http2::{ErrorCode, Rendered};
use weir_net::io::buffers::Input;
use weir_net::io::deadlines::{Deadline, TICK_NS};

/// The largest piece of an own answer that is queued at once.
const PIECE: usize = 16 * 1024;

/// The limit of an answer's queued bytes, above which no more are read from its origin.
const AHEAD: usize = 8 * 1024;

/// A request in progress.
pub(crate) struct Stream {
    conn: Rc<Conn>,
    stream: OpenStream,
    is_head: bool,
    /// Whether it came as an extended CONNECT.
    is_extended: bool,
    recv: RefCell<Incoming>,
    has_sent_head: Cell<bool>,
    has_no_body: bool,
    body_deadline: OnceCell<Deadline>,
    stall: Stall,
    /// When an answer continues that was paused because this process buffers too much.
    pause: OnceCell<Deadline>,
}

/// The traits of an HTTP/2 client: it always accepts trailers, and answers carry nothing about the connection.
pub(super) fn client_traits(head: bool) -> Client {
    Client { version: Version::H2, head, te_trailers: true, close: false, keep_alive_10: false }
}

impl Stream {
    /// The request with this head, which was just read.
    pub fn new(conn: Rc<Conn>, request: &Request, stream: OpenStream) -> Stream {
        let has_no_body = matches!(request.framing(), Framing::None | Framing::Length(0));
        let length = if let Framing::Length(n) = request.framing() { Some(n) } else { None };
        // Data on a CONNECT belongs to the tunnel, not to a body.
        let is_extended = request.is_extended_connect();
        let has_ended = has_no_body && !request.is_connect() && !is_extended;
        Stream {
            is_head: request.is_head(),
            is_extended,
            recv: RefCell::new(Incoming::new(&conn.core, length, has_ended)),
            has_sent_head: Cell::new(false),
            has_no_body,
            body_deadline: OnceCell::new(),
            stall: Stall::default(),
            pause: OnceCell::new(),
            stream,
            conn,
        }
    }

    /// The part of the connection that all protocols share.
    pub fn session(&self) -> &Rc<Session> {
        &self.conn.session
    }

    /// Whether there is no body.
    pub fn has_no_body(&self) -> bool {
        self.has_no_body || self.recv.borrow().has_ended()
    }

    /// Reads more of the body. `told`: the client knows that it is its turn, so its silence counts.
    pub fn poll_body(&self, cx: &mut Context<'_>, told: bool) -> Poll<Result<Piece, RequestBodyError>> {
        if self.has_no_body {
            return Poll::Ready(Ok(Piece::End));
        }
        let mut recv = self.recv.borrow_mut();
        match recv.poll(&self.stream, cx) {
            Poll::Ready(Ok(piece)) => {
                let limit_ns = self.session().listener.http.body_timeout_ns;
                self.body_deadline().set(limit_ns.filter(|_| piece != Piece::End));
                Poll::Ready(Ok(piece))
            }
            // For example of another length than announced: the stream was reset for it.
            Poll::Ready(Err(Fate::Malformed(why))) => {
                Poll::Ready(Err(RequestBodyError::Refused(why.status())))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(RequestBodyError::Gone)),
            Poll::Pending if told && self.body_deadline().ended(cx) => {
                self.session().listener.counts.broke("body-late");
                Poll::Ready(Err(RequestBodyError::Late))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn body_deadline(&self) -> &Deadline {
        self.body_deadline.get_or_init(|| self.session().deadline.another(None))
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&self) -> RefMut<'_, Input> {
        RefMut::map(self.recv.borrow_mut(), |recv| &mut recv.input)
    }

    /// Reports that the consumed part was forwarded: the client may send as much more.
    pub fn release(&self) {
        self.recv.borrow_mut().release(&self.stream);
    }

    /// The request's trailers, once its body has ended.
    pub fn trailers(&self) -> Ref<'_, Trailers> {
        Ref::map(self.recv.borrow(), |recv| &recv.trailers)
    }

    /// Starts to count the silence of a client that is to send more.
    pub fn expects_body(&self) {
        self.body_deadline().set(self.session().listener.http.body_timeout_ns);
    }

    /// Sends 100 (Continue).
    pub fn send_continue(&self) {
        self.expects_body();
        self.inform(100, &Rendered::new(b"HTTP/1.1 100 Continue\r\n\r\n"));
    }

    /// Forwards an interim response.
    pub fn send_interim(&self, response: &Response) {
        let mut head = Vec::new();
        let none = Edits::default();
        weir_http1::render_response(
            response,
            client_traits(false),
            &none,
            &[],
            Framing::None,
            None,
            &mut head,
        );
        self.inform(response.status(), &Rendered::new(&head).mark(response.sensitive_names()));
    }

    /// A client that is gone is noticed when more is read or written.
    fn inform(&self, status: u16, head: &Rendered<'_>) {
        if !self.has_sent_head.get() {
            self.stream.answer(status, head, false);
        }
    }

    /// Sends the head of the final response; its body follows by [`Stream::send_data`].
    pub fn send_head(&self, head: &ResponseHead<'_>) {
        let to = client_traits(self.is_head);
        let body = weir_http1::body_to_client(head.response, to);
        let is_end = matches!(body, Framing::None | Framing::Length(0));
        if !is_end && let Some(field) = head.response.field("priority") {
            self.stream.change_priority(field);
        }
        self.render(head, to, body, Some(&head.date), is_end);
    }

    /// Whether the final head was sent.
    pub fn has_sent_head(&self) -> bool {
        self.has_sent_head.get()
    }

    /// Sends the head after which the stream is a tunnel: 2xx to CONNECT, 200 for the 101 to an extended one.
    pub fn send_switch(&self, response: &Response, edits: &Edits, add: &[(&'static str, Vec<u8>)]) {
        let head = ResponseHead { response, edits, add, close: false, date: [0; 29] };
        self.render(&head, client_traits(false), Framing::None, None, false);
    }

    fn render(&self, head: &ResponseHead<'_>, to: Client, body: Framing, date: Option<&[u8]>, ends: bool) {
        let add: smallvec::SmallVec<[(&str, &[u8]); 1]> =
            head.add.iter().map(|(name, value)| (*name, &value[..])).collect();
        let mut rendered = self.conn.core.buffers.small();
        weir_http1::render_response(head.response, to, head.edits, &add, body, date, &mut rendered);
        // HTTP/2 has no 101 (RFC 9113 §8.6).
        let status = if head.response.status() == 101 { 200 } else { head.response.status() };
        self.respond(status, &Rendered::new(&rendered).mark(head.response.sensitive_names()), ends);
        self.conn.core.buffers.keep_small(rendered);
    }

    /// Sends a rendered head. A client that is gone is noticed when more is read or written.
    fn respond(&self, status: u16, head: &Rendered<'_>, ends: bool) {
        if !self.has_sent_head.replace(true) {
            self.stream.answer(status, head, ends);
        }
    }

    /// Begins a complete local answer; returns how much of the body was taken at once. The caller flushes it, in a
    /// task that can be woken.
    pub fn send_answer(&self, status: u16, fields: &[(&str, &[u8])], body: &[u8], date: [u8; 29]) -> usize {
        let mut rendered = self.conn.core.buffers.small();
        // The head alone, as to HEAD.
        weir_http1::render_answer(status, fields, body, client_traits(true), Some(&date), &mut rendered);
        let bodiless = self.is_head || matches!(status, 204 | 304) || body.is_empty();
        self.respond(status, &Rendered::new(&rendered), bodiless);
        self.conn.core.buffers.keep_small(rendered);
        if bodiless { body.len() } else { self.queue_piece(body) }
    }

    /// Sends more of the body of such an answer; returns how much was taken.
    pub fn send_more(&self, cx: &mut Context<'_>, rest: &[u8]) -> io::Result<usize> {
        let taken = self.queue_piece(rest);
        match self.stream.poll_flush(cx) {
            Poll::Ready(done) => done.map(|()| taken),
            Poll::Pending => Ok(taken),
        }
    }

    /// Queues as much of a body as may be queued at once, and after the last of it its end.
    fn queue_piece(&self, body: &[u8]) -> usize {
        let taken = body.len().min(PIECE);
        self.stream.queue(&body[..taken]);
        if taken == body.len() {
            self.stream.finish(None);
        }
        taken
    }

    /// Ready when more may be written: little or at most `ahead` bytes are queued, and this process may buffer more,
    /// or the data is `counted` already.
    pub fn poll_capacity(&self, cx: &mut Context<'_>, ahead: usize, counted: bool) -> Poll<io::Result<()>> {
        if self.stream.unsent() > AHEAD.max(ahead) {
            return self.stream.poll_flush(cx);
        }
        if !counted && buffered::is_over_limit() {
            let _ = self.stream.poll_flush(cx)?;
            let pause = self.pause.get_or_init(|| self.session().deadline.another(None));
            pause.set(Some(TICK_NS));
            let _ = pause.ended(cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the first `n` bytes of an origin's input.
    pub fn send_data(&self, _cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        self.stream.push(from, n)
    }

    /// Ends the response's body. `named`: whether the head's Connection names a field.
    pub fn send_end(&self, trailers: Option<&Trailers>, named: impl Fn(&[u8]) -> bool) {
        self.stream.finish(trailers.and_then(|trailers| h2::passed_on(trailers, named)));
    }

    /// Ready when everything that was written was handed over; otherwise wakes the task then.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    /// Bytes that the client had no room for.
    pub fn unsent(&self) -> usize {
        self.stream.unsent()
    }

    /// Bytes of the answer's body (or of a tunnel) that the client had room for.
    pub fn sent(&self) -> u64 {
        self.stream.sent()
    }

    /// The limit that the client has reached by having no room for the queued bytes; otherwise wakes the task then.
    pub fn poll_stalled(&self, cx: &mut Context<'_>) -> Option<RequestLimit> {
        let (unsent, sent) = (self.stream.unsent(), self.stream.sent());
        self.stall.poll_ended(cx, &self.conn.core, self.session(), unsent, sent)
    }

    /// The limit for which weir has ended the client's connection, if it has.
    pub fn ended_by(&self) -> Option<RequestLimit> {
        self.conn.ended_by.get()
    }

    /// Whether the client has reset the stream, or its connection is gone.
    pub fn is_gone(&self, cx: &mut Context<'_>) -> bool {
        if self.stream.fate().is_some() {
            return true;
        }
        self.stream.await_room(cx);
        false
    }

    /// Ends an exchange whose answer was handed over completely.
    pub fn finish(&self) -> Disposition {
        self.drop_upload();
        Disposition::Next
    }

    /// Takes and drops what the client still sends of its request.
    pub fn drop_upload(&self) {
        if let Some(unwanted) = self.recv.borrow_mut().leave(&self.stream) {
            linger(&self.conn, unwanted);
        }
    }

    /// Breaks the answer off visibly.
    pub fn abort(&self) -> Disposition {
        self.reset(ErrorCode::INTERNAL_ERROR)
    }

    /// Resets the stream.
    pub fn reset(&self, code: ErrorCode) -> Disposition {
        self.stream.reset(code);
        Disposition::Abort
    }

    /// As a tunnel: reads more bytes from the client; `false` is its end of stream.
    pub fn poll_tunnel(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut recv = self.recv.borrow_mut();
        recv.release(&self.stream);
        let gone = || io::ErrorKind::ConnectionReset.into();
        recv.poll(&self.stream, cx).map(|piece| piece.map(|piece| piece != Piece::End).map_err(|_| gone()))
    }

    /// As a tunnel: sends the first `n` bytes of another connection's input.
    pub fn send_tunnel(&self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        self.send_data(cx, from, n)
    }

    /// As a tunnel: whether the client's end of stream follows what was consumed.
    pub fn has_ended_tunnel(&self) -> bool {
        self.recv.borrow().is_drained(&self.stream)
    }

    /// As a tunnel: the origin's end of stream leaves with the bytes before it.
    pub fn end_tunnel(&self) {
        self.stream.finish(None);
    }

    /// As a tunnel: ends the stream to the client.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.finish(None);
        self.stream.poll_flush(cx)
    }

    /// As a tunnel: resets the stream (RFC 9113 §8.5, RFC 8441 §5).
    pub fn reset_tunnel(&self) -> Disposition {
        self.reset(if self.is_extended { ErrorCode::CANCEL } else { ErrorCode::CONNECT_ERROR })
    }

    /// As a tunnel: whether everything has room. A reset would overtake what has none, and nothing else.
    pub fn has_delivered(&self) -> bool {
        self.stream.unsent() == 0
    }
}
