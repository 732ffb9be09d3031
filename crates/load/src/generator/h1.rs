//! HTTP/1.1: a connection carries one request at a time; free ones wait on a stack.

use super::Generator;
use super::job::{Ending, Job};
use crate::shape::body;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_http1::{Decoder, Framing, Limits, Piece, RequestInfo, Response, Seek};
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::wire::Wire;
use weir_plan::fixed;
use weir_policy::Kind;

static LIMITS: Limits = Limits {
    max_head: fixed::MAX_RESPONSE_HEAD_BYTES,
    max_headers: fixed::MAX_RESPONSE_HEADERS,
    max_target: Limits::TARGET,
    max_method: Limits::METHOD,
    empty_host: false,
};

/// Bytes of a body that may wait for the socket before production pauses.
const AHEAD: usize = 128 * 1024;

/// The largest body of a request that is written at once, bytes.
const AT_ONCE: u64 = 16 * 1024;

/// Free connections, the one used last on top.
pub(crate) type Idle = RefCell<Vec<Rc<Conn>>>;

/// A connection.
pub(crate) struct Conn {
    exchange: RefCell<Exchange>,
    /// The request that it carries.
    job: RefCell<Option<Job>>,
    /// The task that reads its answers.
    reader: RefCell<Option<Waker>>,
}

/// Gives a request to a connection.
pub(crate) fn send(g: &Rc<Generator>, mut job: Job) {
    let free = if job.again > 0 { None } else { g.lanes[job.lane].h1.borrow_mut().pop() };
    if let Some(conn) = free {
        conn.carry(g, job);
    } else if g.may_open() {
        g.core.runtime.spawn(connection(g.clone(), job));
    } else {
        if job.again == 0 {
            g.tally.borrow_mut().waited += 1;
        }
        // A connection that becomes free is as good as a new one.
        if job.sent_ns.is_none() {
            job.again = 0;
        }
        g.wait(job);
    }
}

/// Makes a connection for a request and keeps it for others.
async fn connection(g: Rc<Generator>, job: Job) {
    match g.connect(&job).await {
        Err(kind) => g.end(&job, &Err(kind)),
        Ok((socket, open)) => {
            let exchange = RefCell::new(Exchange::new(Wire::new(socket, g.core.buffers.clone())));
            let conn = Rc::new(Conn { exchange, job: RefCell::default(), reader: RefCell::default() });
            let unanswered = conn.carry_all(&g, job).await;
            drop(open);
            if let Some(mut job) = unanswered {
                g.tally.borrow_mut().again += 1;
                job.again += 1;
                g.standing.set(g.standing.get() - 1);
                return g.send(job);
            }
        }
    }
    g.on_closed();
}

impl Conn {
    /// Gives a request to a free connection. It is in flight when this returns, unless the socket is full or its body
    /// is long.
    fn carry(&self, g: &Generator, mut job: Job) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.begin(g, &mut job, true);
        *self.job.borrow_mut() = Some(job);
        let reader = self.reader.borrow();
        // Without a waker its task is just returning it, and looks for a request at once.
        let Some(reader) = &*reader else { return };
        let mut cx = Context::from_waker(reader);
        let sent = exchange.left > AT_ONCE || exchange.poll_send(&mut cx).is_err();
        if sent || has_ended(&mut exchange.limit, &mut cx) {
            reader.wake_by_ref();
        }
    }

    /// Carries requests until the connection ends; returns one that is to be sent on another.
    async fn carry_all(self: &Rc<Self>, g: &Rc<Generator>, mut job: Job) -> Option<Job> {
        let lane = job.lane;
        self.exchange.borrow_mut().begin(g, &mut job, false);
        loop {
            let went = poll_fn(|cx| self.exchange.borrow_mut().poll(cx)).await;
            if self.exchange.borrow_mut().ends(g, &job, &went) {
                return Some(job);
            }
            for cookie in self.exchange.borrow_mut().given.take().into_iter().flatten() {
                g.cookies.give(job.request.sender.as_deref(), &cookie);
            }
            g.end(&job, &went);
            if went.is_err() || !self.exchange.borrow().is_clean() {
                return None;
            }
            job = match g.next(lane) {
                Some(mut next) => {
                    self.exchange.borrow_mut().begin(g, &mut next, false);
                    next
                }
                None => self.rest(g, lane).await?,
            };
        }
    }

    /// The next request of a free connection; `None`: it has ended.
    async fn rest(self: &Rc<Self>, g: &Rc<Generator>, lane: usize) -> Option<Job> {
        let idle = &g.lanes[lane].h1;
        idle.borrow_mut().push(self.clone());
        g.send_due();
        poll_fn(|cx| {
            if let Some(job) = self.job.borrow_mut().take() {
                return Poll::Ready(Some(job));
            }
            if self.exchange.borrow_mut().wire.poll_fill(cx).is_ready() {
                idle.borrow_mut().retain(|other| !Rc::ptr_eq(other, self));
                return Poll::Ready(None);
            }
            let mut reader = self.reader.borrow_mut();
            if reader.as_ref().is_none_or(|reader| !reader.will_wake(cx.waker())) {
                *reader = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

/// A connection with the request that is on it.
struct Exchange {
    wire: Wire,
    seek: Seek,
    response: Response,
    decoder: Option<Decoder>,
    asked: RequestInfo,
    /// The cookies of the answer, if they matter.
    given: Option<Vec<Vec<u8>>>,
    /// When the request is given up.
    limit: Option<Sleep>,
    /// Bytes of the request's body that were not queued.
    left: u64,
    /// Whether it has carried a request before.
    is_used: bool,
    /// Whether any byte of an answer has arrived.
    heard: bool,
}

impl Exchange {
    fn new(wire: Wire) -> Exchange {
        Exchange {
            wire,
            seek: Seek::default(),
            response: Response::default(),
            decoder: None,
            asked: RequestInfo::default(),
            given: None,
            limit: None,
            left: 0,
            is_used: false,
            heard: false,
        }
    }

    /// A request is to be sent.
    fn begin(&mut self, g: &Generator, job: &mut Job, was_free: bool) {
        let shape = &g.shapes[job.request.kind as usize];
        self.asked = RequestInfo { head: shape.is_head, connect: false, upgrade: false };
        (self.left, self.heard, self.decoder) = (shape.body_bytes, false, None);
        shape.write(&g.said(job), self.wire.queue_to());
        self.given = g.cookies.are_kept(job.request.sender.as_deref()).then(Vec::new);
        g.on_sent(job, was_free);
        self.limit = Some(g.limit(job));
    }

    /// Sends it and reads its answer.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        let sent = self.poll_send(cx);
        match self.poll_answer(cx) {
            Poll::Ready(went) => Poll::Ready(went),
            Poll::Pending if sent.is_err() && !self.heard => Poll::Ready(Err(Kind::Reset)),
            Poll::Pending if has_ended(&mut self.limit, cx) => Poll::Ready(Err(Kind::Timeout)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Whether a request that failed this way may be sent again: the server had closed the connection before it
    /// arrived.
    fn ends(&mut self, g: &Generator, job: &Job, went: &Ending) -> bool {
        self.limit = None;
        let idempotent = g.shapes[job.request.kind as usize].idempotent;
        let was_used = std::mem::replace(&mut self.is_used, true);
        was_used && !self.heard && job.again == 0 && idempotent && *went == Err(Kind::Reset)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        loop {
            while self.left > 0 && self.wire.unsent() < AHEAD {
                let piece = body(self.left);
                self.left -= piece.len() as u64;
                self.wire.queue(piece);
            }
            match self.wire.poll_flush(cx) {
                Poll::Ready(Ok(())) if self.left == 0 => return Ok(()),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        loop {
            match self.take() {
                Ok(true) => return Poll::Ready(Ok(self.response.status())),
                Ok(false) => {}
                Err(kind) => return Poll::Ready(Err(kind)),
            }
            match self.wire.poll_fill(cx) {
                Poll::Ready(Ok(usize::MAX)) => return Poll::Ready(Err(Kind::BadResponse)),
                Poll::Ready(Ok(n)) if n > 0 => self.heard = true,
                Poll::Ready(Ok(_)) if self.decoder.as_mut().is_some_and(|d| d.eof().is_ok()) => {
                    return Poll::Ready(Ok(self.response.status()));
                }
                Poll::Ready(_) => return Poll::Ready(Err(Kind::Reset)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Consumes what has arrived; whether the answer has ended.
    fn take(&mut self) -> Result<bool, Kind> {
        let bad = |_| Kind::BadResponse;
        while self.decoder.is_none() {
            let input = self.wire.input();
            let Some(length) = self.seek.response(input, &LIMITS).map_err(bad)? else { return Ok(false) };
            self.response.parse(&input[..length], self.asked, &LIMITS).map_err(bad)?;
            self.wire.consume(length);
            self.seek.reset();
            if self.response.status() == 101 {
                return Err(Kind::BadResponse);
            }
            if !self.response.is_interim() {
                if let Some(given) = &mut self.given {
                    let is_cookie = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"set-cookie");
                    given.extend(self.response.fields().filter(is_cookie).map(|(_, value)| value.to_vec()));
                }
                self.decoder = Some(Decoder::new(self.response.framing(), &LIMITS));
            }
        }
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        loop {
            if decoder.ended() {
                return Ok(true);
            }
            let mut at = 0;
            match decoder.next(self.wire.input(), &mut at).map_err(bad)? {
                Piece::Data(_, to) => self.wire.consume(to),
                Piece::End => {
                    self.wire.consume(at);
                    return Ok(true);
                }
                Piece::More => {
                    self.wire.consume(at);
                    return Ok(false);
                }
            }
        }
    }

    /// Whether the connection can carry another request.
    fn is_clean(&self) -> bool {
        self.left == 0
            && self.wire.unsent() == 0
            && self.wire.input().is_empty()
            && !self.wire.has_ended()
            && self.response.keep_alive()
            && self.response.framing() != Framing::Close
    }
}
