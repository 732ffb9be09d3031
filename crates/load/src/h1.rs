//! HTTP/1.1: a connection carries one request at a time; free ones wait on a stack.

use crate::generator::{Generator, Job, Went};
use crate::shape::piece;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_http1::{Asked, Decoder, Framing, Limits, Piece, Response, Seek};
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::wire::Wire;
use weir_policy::Kind;
use weir_topology::plan::fixed;

static LIMITS: Limits = Limits {
    max_head: fixed::MAX_RESPONSE_HEAD_BYTES,
    max_headers: fixed::MAX_RESPONSE_HEADERS,
    max_target: Limits::TARGET,
    max_method: Limits::METHOD,
    empty_host: false,
};

/// Bytes of a body that wait for the socket before no more are made.
const AHEAD: usize = 128 * 1024;

/// Connections that are free, the one that was used last on top.
pub(crate) type Idle = RefCell<Vec<Rc<Slot>>>;

/// Where a free connection is given its next request.
#[derive(Default)]
pub(crate) struct Slot {
    job: RefCell<Option<Job>>,
    waker: RefCell<Option<Waker>>,
}

/// Gives a request to a connection.
pub(crate) fn send(g: &Rc<Generator>, mut job: Job) {
    let free = if job.again > 0 { None } else { g.lanes[job.lane].h1.borrow_mut().pop() };
    if let Some(slot) = free {
        *slot.job.borrow_mut() = Some(job);
        if let Some(waker) = slot.waker.borrow_mut().take() {
            waker.wake();
        }
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
async fn connection(g: Rc<Generator>, mut job: Job) {
    let lane = job.lane;
    match g.connect(&job).await {
        Err(kind) => g.end(&job, &Err(kind)),
        Ok(socket) => {
            let mut exchange = Exchange::new(Wire::new(socket, g.core.buffers.clone()));
            let slot = Rc::new(Slot::default());
            let mut was_free = false;
            while exchange.run(&g, &mut job, was_free).await {
                exchange.is_used = true;
                let next = g.next(lane);
                was_free = next.is_none();
                let next = match next {
                    Some(job) => Some(job),
                    None => rest(&g.lanes[lane].h1, &slot, &mut exchange.wire).await,
                };
                let Some(next) = next else { return g.is_closed() };
                job = next;
            }
            if exchange.unanswered {
                g.tally.borrow_mut().again += 1;
                job.again += 1;
                g.open.set(g.open.get() - 1);
                return g.send(job);
            }
        }
    }
    g.is_closed();
}

/// The next request of a free connection; `None`: it has ended.
async fn rest(idle: &Idle, slot: &Rc<Slot>, wire: &mut Wire) -> Option<Job> {
    idle.borrow_mut().push(slot.clone());
    poll_fn(|cx| {
        if let Some(job) = slot.job.borrow_mut().take() {
            return Poll::Ready(Some(job));
        }
        if wire.poll_fill(cx).is_ready() {
            idle.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
            return Poll::Ready(None);
        }
        *slot.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    })
    .await
}

/// A connection with the request that is on it.
struct Exchange {
    wire: Wire,
    seek: Seek,
    response: Response,
    decoder: Option<Decoder>,
    asked: Asked,
    /// Bytes of the request's body that were not queued.
    left: u64,
    /// Whether it has carried a request before.
    is_used: bool,
    /// Whether anything of an answer has come.
    heard: bool,
    /// Whether the request that failed last may be sent again: the server had closed the connection before it came.
    unanswered: bool,
}

impl Exchange {
    fn new(wire: Wire) -> Exchange {
        Exchange {
            wire,
            seek: Seek::default(),
            response: Response::default(),
            decoder: None,
            asked: Asked::default(),
            left: 0,
            is_used: false,
            heard: false,
            unanswered: false,
        }
    }

    /// Sends a request and reads its answer; whether the connection can carry another.
    async fn run(&mut self, g: &Generator, job: &mut Job, was_free: bool) -> bool {
        let shape = &g.shapes[job.request.kind as usize];
        self.asked = Asked { head: shape.is_head, connect: false, upgrade: false };
        (self.left, self.heard, self.decoder) = (shape.body_bytes, false, None);
        shape.write(job.request.sender.as_deref(), g.drawn(job).as_deref(), self.wire.queue_to());
        g.is_sent(job, was_free);
        let mut limit = Some(g.limit(job));
        let went = poll_fn(|cx| self.poll(cx, &mut limit)).await;
        if self.is_used && !self.heard && job.again == 0 && shape.idempotent && went == Err(Kind::Reset) {
            self.unanswered = true;
            return false;
        }
        g.end(job, &went);
        went.is_ok() && self.is_clean()
    }

    fn poll(&mut self, cx: &mut Context<'_>, limit: &mut Option<Sleep>) -> Poll<Went> {
        let sent = self.poll_send(cx);
        match self.poll_answer(cx) {
            Poll::Ready(went) => Poll::Ready(went),
            Poll::Pending if sent.is_err() && !self.heard => Poll::Ready(Err(Kind::Reset)),
            Poll::Pending if has_ended(limit, cx) => Poll::Ready(Err(Kind::Timeout)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        loop {
            while self.left > 0 && self.wire.unsent() < AHEAD {
                let piece = piece(self.left);
                self.left -= piece.len() as u64;
                self.wire.queue(&piece);
            }
            match self.wire.poll_flush(cx) {
                Poll::Ready(Ok(())) if self.left == 0 => return Ok(()),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Went> {
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

    /// Uses up what has come; whether the answer has ended.
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
