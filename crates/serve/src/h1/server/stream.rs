//! One request on a client's connection: its body is read, its answer is written. The client's end of an exchange.

use super::Conn;
use crate::message::{Disposition, Piece, RequestBodyError, ResponseHead};
use crate::metrics::RequestLimit;
use crate::transport::session::Session;
use crate::transport::write_limit::WriteLimit;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Client, Decoder, Edits, Encoder, Framing, Request, Response, Trailers};
use weir_net::io::buffers::Input;
use weir_net::io::deadlines::TICK_NS;
use weir_net::io::pipes::Pipe;
use weir_plan::HalfClose;
use weir_plan::fixed::MAX_READ_AHEAD_BYTES as AHEAD;

/// Pieces up to this size are copied behind the head, and leave with it at the end of the turn.
const SMALL: usize = 4 * 1024;

/// The size up to which a head waits for its body.
const HEAD: usize = 8 * 1024;

/// A request in progress.
pub(crate) struct Stream {
    conn: Rc<Conn>,
    /// The traits of the client that the answer depends on.
    to: Cell<Client>,
    request: RefCell<Decoder>,
    response: Cell<Encoder>,
    /// The value of [`Stream::taken`] when the whole head of the answer was taken.
    body_from: Cell<u64>,
    limit: Cell<WriteLimit>,
}

impl Stream {
    /// The request with this head, which was just read.
    pub fn new(conn: Rc<Conn>, request: &Request) -> Stream {
        let to = Client {
            version: request.version(),
            head: request.is_head(),
            te_trailers: request.te_trailers(),
            close: false,
            keep_alive_10: false,
        };
        Stream {
            to: Cell::new(to),
            request: RefCell::new(Decoder::new(request.framing(), &conn.session.listener.limits)),
            response: Cell::new(Encoder::None),
            body_from: Cell::new(0),
            limit: Cell::default(),
            conn,
        }
    }

    /// The part of the connection that all protocols share.
    pub fn session(&self) -> &Rc<Session> {
        &self.conn.session
    }

    /// Whether there is no body.
    pub fn has_no_body(&self) -> bool {
        self.request.borrow().ended()
    }

    /// Reads more of the body, from the buffer or from the socket. `told`: the client knows that it is its turn, so
    /// its silence counts.
    pub fn poll_body(&self, cx: &mut Context<'_>, told: bool) -> Poll<Result<Piece, RequestBodyError>> {
        let Session { listener, deadline, .. } = &*self.conn.session;
        let (mut wire, mut decoder) = (self.conn.wire.borrow_mut(), self.request.borrow_mut());
        loop {
            let mut at = 0;
            match decoder.next(wire.input(), &mut at) {
                Err(refusal) => {
                    listener.counts.broke(refusal.0.name);
                    return Poll::Ready(Err(RequestBodyError::Refused(refusal.status())));
                }
                Ok(weir_http1::Piece::Data(from, to)) => {
                    wire.consume(from);
                    deadline.set(listener.http.body_timeout_ns);
                    return Poll::Ready(Ok(Piece::Data(to - from)));
                }
                Ok(weir_http1::Piece::End) => {
                    wire.consume(at);
                    deadline.set(None);
                    return Poll::Ready(Ok(Piece::End));
                }
                Ok(weir_http1::Piece::More) => wire.consume(at),
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let _ = decoder.eof();
                    listener.counts.broke("body-cut");
                    return Poll::Ready(Err(RequestBodyError::Cut));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(RequestBodyError::Gone)),
                Poll::Pending if told && deadline.ended(cx) => {
                    listener.counts.broke("body-late");
                    return Poll::Ready(Err(RequestBodyError::Late));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The bytes of the body that may go through a pipe: all that are left, if their number is known, none of them was
    /// read and they arrive as they are.
    pub fn pipeable(&self) -> Option<u64> {
        let wire = self.conn.wire.borrow();
        let is_plain = wire.input().is_empty() && wire.socket.is_plain();
        self.request.borrow().remaining().filter(|_| is_plain)
    }

    /// As [`Stream::poll_body`], into an empty pipe: at most `most` bytes and [`Stream::pipeable`]. If the pipe is empty
    /// after that, a piece is in the input: the end of the stream and errors are judged where bytes are read.
    pub fn poll_body_pipe(
        &self,
        cx: &mut Context<'_>,
        told: bool,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<Result<Piece, RequestBodyError>> {
        let moved = self.conn.wire.borrow_mut().poll_fill_pipe(cx, pipe, most);
        match moved {
            Poll::Ready(Ok(n)) if n > 0 => {
                self.request.borrow_mut().skip(n as u64);
                self.conn.session.deadline.set(self.conn.session.listener.http.body_timeout_ns);
                Poll::Ready(Ok(Piece::Data(n)))
            }
            _ => self.poll_body(cx, told),
        }
    }

    /// What was read and not consumed; it begins with the data of a piece.
    pub fn input(&self) -> RefMut<'_, Input> {
        RefMut::map(self.conn.wire.borrow_mut(), |wire| wire.input_mut())
    }

    /// The request's trailers, once its body has ended.
    pub fn trailers(&self) -> Ref<'_, Trailers> {
        Ref::map(self.request.borrow(), Decoder::trailers)
    }

    /// Starts to count the silence of a client that is to send more.
    pub fn expects_body(&self) {
        self.conn.session.deadline.set(self.conn.session.listener.http.body_timeout_ns);
    }

    /// Sends 100 (Continue). A client that is gone is noticed when it is read.
    pub fn send_continue(&self, cx: &mut Context<'_>) {
        self.expects_body();
        let _ = self.conn.wire.borrow_mut().push(cx, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    /// Forwards an interim response.
    pub fn send_interim(&self, cx: &mut Context<'_>, response: &Response) {
        let mut head = Vec::new();
        let to = Client { head: false, te_trailers: false, ..self.to.get() };
        let none = Edits::default();
        weir_http1::render_response(response, to, &none, &[], Framing::None, None, &mut head);
        let _ = self.conn.wire.borrow_mut().push(cx, &head);
    }

    /// Queues the head of the final response; its body follows by [`Stream::send_data`]. Without a length that an
    /// HTTP/1.0 client could know, the connection's end is that of the body, so until then the connection would end
    /// in a reset.
    pub fn send_head(&self, head: &ResponseHead<'_>) {
        let mut to = Client { close: head.close, ..self.to.get() };
        let body = weir_http1::body_to_client(head.response, to);
        to.close |= body == Framing::Close;
        to.keep_alive_10 = !to.close && to.version == weir_http1::Version::H10;
        self.render(head, to, body, Some(&head.date));
        if body == Framing::Close {
            self.conn.wire.borrow().socket.end_in_reset(true);
        }
    }

    /// Whether the head of the answer was queued.
    pub fn has_sent_head(&self) -> bool {
        self.body_from.get() > 0
    }

    /// Queues the head after which the connection is a tunnel.
    pub fn send_switch(&self, response: &Response, edits: &Edits, add: &[(&'static str, Vec<u8>)]) {
        let head = ResponseHead { response, edits, add, close: false, date: [0; 29] };
        let to = Client { head: false, te_trailers: false, ..self.to.get() };
        self.render(&head, to, Framing::None, None);
    }

    fn render(&self, head: &ResponseHead<'_>, to: Client, body: Framing, date: Option<&[u8]>) {
        let mut wire = self.conn.wire.borrow_mut();
        let add: smallvec::SmallVec<[(&str, &[u8]); 1]> =
            head.add.iter().map(|(name, value)| (*name, &value[..])).collect();
        weir_http1::render_response(head.response, to, head.edits, &add, body, date, wire.queue_to());
        self.to.set(to);
        self.response.set(Encoder::new(body));
        self.body_from.set(wire.queued());
    }

    /// Queues a complete local answer.
    pub fn send_answer(
        &self,
        status: u16,
        fields: &[(&str, &[u8])],
        body: &[u8],
        close: bool,
        date: [u8; 29],
    ) {
        let to = self.to.get();
        let keep_alive_10 = !close && to.version == weir_http1::Version::H10;
        let to = Client { close, keep_alive_10, ..to };
        self.to.set(to);
        let mut wire = self.conn.wire.borrow_mut();
        weir_http1::render_answer(status, fields, body, to, Some(&date), wire.queue_to());
        let length = if to.head || matches!(status, 204 | 304) { 0 } else { body.len() as u64 };
        self.body_from.set(wire.queued() - length);
    }

    /// Ready when more may be written: at most a head or `ahead` bytes are unsent, and no pipe.
    pub fn poll_capacity(&self, cx: &mut Context<'_>, ahead: usize) -> Poll<io::Result<()>> {
        let mut wire = self.conn.wire.borrow_mut();
        let has_room = wire.unsent() <= HEAD.max(ahead) && !wire.has_pipe();
        if has_room { Poll::Ready(Ok(())) } else { wire.poll_flush(cx) }
    }

    /// Whether data may come through a pipe: it is sent as it is.
    pub fn takes_pipes(&self) -> bool {
        self.response.get().is_plain() && self.conn.wire.borrow().socket.is_plain()
    }

    /// Sends what is in a pipe.
    pub fn send_pipe(&self, cx: &mut Context<'_>, pipe: Pipe) -> io::Result<()> {
        self.conn.wire.borrow_mut().push_pipe(cx, pipe)
    }

    /// Sends the first `n` bytes of what another connection has read.
    pub fn send_data(&self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        let (mut wire, encoder) = (self.conn.wire.borrow_mut(), self.response.get());
        encoder.before(n, wire.queue_to());
        let sent = if wire.unsent() > HEAD || n <= SMALL {
            wire.queue(&from.bytes()[..n]);
            from.consume(n);
            Ok(())
        } else {
            wire.push_behind(cx, from, n)
        };
        encoder.after(wire.queue_to());
        sent
    }

    /// Queues the end of the body, with trailers if the client accepts them. `named`: whether the head's Connection
    /// names a field.
    pub fn send_end(&self, trailers: Option<&Trailers>, named: impl Fn(&[u8]) -> bool) {
        let trailers = trailers.filter(|_| self.to.get().te_trailers);
        self.response.get().end_without(trailers, named, self.conn.wire.borrow_mut().queue_to());
    }

    /// Ready when the client has taken everything that was written; otherwise wakes the task then.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.wire.borrow_mut().poll_flush(cx)
    }

    /// Bytes that the client's socket has not taken.
    pub fn unsent(&self) -> usize {
        self.conn.wire.borrow().unsent()
    }

    /// Bytes of the answer's body (or of a tunnel) that the client's socket has taken.
    pub fn sent(&self) -> u64 {
        self.conn.wire.borrow().taken().saturating_sub(self.body_from.get())
    }

    /// The limit that the client has reached by taking nothing of the unsent bytes; otherwise wakes the task then.
    pub fn poll_stalled(&self, cx: &mut Context<'_>) -> Option<RequestLimit> {
        let mut limit = self.limit.get();
        let stalled =
            limit.has_ended(cx, &self.conn.session, &self.conn.write_deadline, &self.conn.wire.borrow());
        self.limit.set(limit);
        stalled.then_some(RequestLimit::WriteTimeout)
    }

    /// Whether the client has left: an end of stream after a complete request counts as leaving, as in nginx.
    /// `complete`: its body was read completely.
    pub fn is_gone(&self, cx: &mut Context<'_>, complete: bool) -> bool {
        let conn = &self.conn;
        if complete && conn.wire.borrow().input().len() < AHEAD {
            let mut wire = conn.wire.borrow_mut();
            loop {
                match wire.poll_fill(cx) {
                    Poll::Ready(Ok(0)) => return ends_at_half_close(conn, &wire),
                    Poll::Ready(Ok(_)) if wire.input().len() < AHEAD => {}
                    Poll::Ready(Ok(_)) => break,
                    Poll::Ready(Err(_)) => return true,
                    Poll::Pending => {
                        // A few bytes ahead hold no large buffer for as long as the answer takes.
                        wire.shrink();
                        return false;
                    }
                }
            }
        }
        // Bytes are unread, so only poll(2) shows an end; it is called now and then.
        let glance = conn.glance.get_or_init(|| conn.session.deadline.another(Some(0)));
        glance.ended(cx) && {
            glance.set(Some(TICK_NS));
            let _ = glance.ended(cx);
            let wire = conn.wire.borrow();
            wire.socket.is_hung_up() && ends_at_half_close(conn, &wire)
        }
    }

    /// Ends an exchange whose answer was taken completely. `complete`: the request was read completely. `asked`: the
    /// client wanted the connection to end, so that nothing follows a complete request.
    pub fn finish(&self, complete: bool, asked: bool) -> Disposition {
        if !self.to.get().close && complete {
            return Disposition::Next;
        }
        if self.response.get() == Encoder::Close {
            self.conn.wire.borrow().socket.end_in_reset(false);
        }
        let mut wire = self.conn.wire.borrow_mut();
        let nothing_unread = complete && wire.input().is_empty() && (asked || !wire.socket.has_input());
        if nothing_unread { Disposition::Close } else { Disposition::Linger }
    }

    /// Breaks the answer off, so that the client sees that its body was cut short.
    pub fn abort(&self) -> Disposition {
        if self.response.get() == Encoder::Close { Disposition::Reset } else { Disposition::Abort }
    }

    /// As a tunnel: reads more bytes from the client; `false` is its end of stream.
    pub fn poll_tunnel(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.conn.wire.borrow_mut().poll_tunnel(cx)
    }

    /// As a tunnel: sends the first `n` bytes of another connection's input.
    pub fn send_tunnel(&self, cx: &mut Context<'_>, from: &mut Input, n: usize) -> io::Result<()> {
        self.conn.wire.borrow_mut().push_from(cx, from, n, &[])
    }

    /// As a tunnel: ends the stream to the client.
    pub fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.wire.borrow_mut().socket.poll_shutdown(cx)
    }

    /// As a tunnel: whether the client's connection is broken.
    pub fn is_broken(&self) -> bool {
        self.conn.wire.borrow().socket.is_broken()
    }

    /// As a tunnel: whether more can be read now.
    pub fn has_more(&self) -> bool {
        let mut wire = self.conn.wire.borrow_mut();
        !wire.input().is_empty() || !wire.has_ended() && wire.socket.has_input()
    }

    /// As a tunnel: whether the client has everything that was sent, as far as the system tells. Nothing more can be
    /// sent then.
    pub fn has_delivered(&self) -> bool {
        self.conn.wire.borrow().has_delivered()
    }
}

fn ends_at_half_close(conn: &Conn, wire: &weir_net::transport::wire::Wire) -> bool {
    conn.session.listener.http.half_close == HalfClose::Cancel || wire.socket.is_broken()
}
