//! One request and all that its attempts share: its head, what has come of its body, and how long weir waited for the client.

pub(crate) mod abort;
pub(crate) mod answer;
pub(crate) mod context;
pub(crate) mod drain;
pub(crate) mod failure;
pub(crate) mod failure_log;
pub(crate) mod hold;
pub(crate) mod origin_reply;
pub(crate) mod reply;
pub(crate) mod serve;
pub(crate) mod tunnel;
pub(crate) mod upload;
pub(crate) mod view;

use crate::control::event_loop::Loop;
use crate::exchange::failure::Failure;
use crate::h1::server::Conn;
use crate::upstream::server::Server;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Checked, Decoder, Piece, Request, Version};
use weir_policy::key;
use weir_stats::Key;
use weir_topology::plan::KeySource;

/// A request in progress.
pub(crate) struct Exchange {
    /// The client's connection.
    pub conn: Rc<Conn>,
    /// The head.
    pub request: Request,
    /// What was found out about it.
    pub checked: Checked,
    /// What its choices are drawn by.
    pub draw: Key,
    /// When its head had come.
    pub begun_ns: u64,
    /// Its body, as far as it was read.
    pub body: RefCell<Body>,
    /// Attempts beyond the first.
    further: Cell<u32>,
    waited_ns: Cell<u64>,
    waiting_since_ns: Cell<u64>,
    /// The server that was tried last.
    pub origin: RefCell<Option<Rc<Server>>>,
    /// Whether an interim response of an origin went on to the client: no other origin may answer after that.
    pub passed_interim: Cell<bool>,
    /// Whether it was sent once more because its reused connection had ended.
    pub resent: Cell<bool>,
    /// Whether the last attempt used a connection that was used before.
    pub reused: Cell<bool>,
}

/// The body of a request.
pub(crate) struct Body {
    pub decoder: Decoder,
    /// Its bytes from the start, for further attempts.
    pub kept: Vec<u8>,
    /// Whether `kept` is all that was read.
    pub is_kept: bool,
    /// Whether it was read to its end.
    pub complete: bool,
    /// Bytes read.
    pub received: u64,
    /// Whether the client was told to go on (100), or needs no word.
    pub told: bool,
}

/// What a look for more of the body found.
pub(crate) enum More {
    /// `input[from..to]` of the client's wire is data; to be used up.
    Data(usize, usize),
    /// That was all.
    End,
}

const NOT_WAITING: u64 = u64::MAX;

impl Exchange {
    /// A request whose head was read and checked.
    pub fn new(lp: &Loop, conn: Rc<Conn>, request: Request, checked: Checked) -> Exchange {
        let decoder = Decoder::new(request.framing(), &conn.listener.limits);
        let complete = decoder.ended();
        let told = !checked.expect;
        Exchange {
            request,
            checked,
            draw: lp.draw(),
            begun_ns: lp.now(),
            body: RefCell::new(Body {
                decoder,
                kept: Vec::new(),
                is_kept: true,
                complete,
                received: 0,
                told,
            }),
            conn,
            further: Cell::new(0),
            waited_ns: Cell::new(0),
            waiting_since_ns: Cell::new(NOT_WAITING),
            origin: RefCell::default(),
            passed_interim: Cell::new(false),
            resent: Cell::new(false),
            reused: Cell::new(false),
        }
    }

    /// Whether the body was read whole.
    pub fn is_complete(&self) -> bool {
        self.body.borrow().complete
    }

    /// Whether another attempt is possible: all that was read of the body is kept, and nothing of an answer went on.
    pub fn can_send_again(&self) -> bool {
        self.body.borrow().is_kept && !self.passed_interim.get()
    }

    /// Whether the whole body is at hand.
    pub fn is_whole_and_kept(&self) -> bool {
        let body = self.body.borrow();
        body.complete && body.is_kept
    }

    /// Whether no more of the body was read than so many bytes. (More may be kept, for other nodes or other reasons.)
    pub fn is_within(&self, replay: usize) -> bool {
        self.body.borrow().received <= replay as u64
    }

    /// A further attempt began.
    pub fn count_attempt(&self) {
        self.further.set(self.further.get() + 1);
    }

    /// Attempts so far.
    pub fn attempts(&self) -> u32 {
        self.further.get() + 1
    }

    /// How long weir has waited for the client, ns: no `timeout` counts that.
    pub fn waited_for_client_ns(&self, lp: &Loop) -> u64 {
        let since = self.waiting_since_ns.get();
        let running = if since == NOT_WAITING { 0 } else { lp.now().saturating_sub(since) };
        self.waited_ns.get() + running
    }

    /// From now on weir waits for the client, or does not any more.
    pub fn waits_for_client(&self, lp: &Loop, waits: bool) {
        match (self.waiting_since_ns.get() != NOT_WAITING, waits) {
            (false, true) => self.waiting_since_ns.set(lp.now()),
            (true, false) => {
                self.waited_ns.set(self.waited_for_client_ns(lp));
                self.waiting_since_ns.set(NOT_WAITING);
            }
            _ => {}
        }
    }

    /// The hash of the request's key; `None` where it has none.
    pub fn key(&self, source: &KeySource) -> Option<u64> {
        let bytes = match source {
            KeySource::Header(name) => self.request.field(name)?,
            KeySource::Cookie(name) => self.request.cookie(name)?,
            KeySource::Path => self.request.path(),
            KeySource::Client => return Some(self.client_key()),
        };
        Some(key::hash(bytes))
    }

    /// The client by its address, IPv6 by its /64.
    fn client_key(&self) -> u64 {
        match self.checked.client.map(|ip| ip.to_canonical()) {
            Some(std::net::IpAddr::V4(ip)) => key::hash(&ip.octets()),
            Some(std::net::IpAddr::V6(ip)) => key::hash(&ip.octets()[..8]),
            None => key::hash(b""),
        }
    }

    /// Tells the client to go on, once.
    pub fn say_continue(&self, cx: &mut Context<'_>) {
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            self.conn.deadline.set(self.conn.listener.http.body_timeout_ns);
            // Who reads the body waits for the client from now on.
            cx.waker().wake_by_ref();
            // A client that is gone shows when it is read.
            let _ = self.conn.wire.borrow_mut().push(cx, b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// A final answer goes on: the client, told to go on or not, does what it does in its own time.
    pub fn is_answered(&self) {
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            self.conn.deadline.set(self.conn.listener.http.body_timeout_ns);
        }
    }

    /// More of the body, from what was read or from the client's socket. With `Data` the caller uses up `input[..to]`.
    pub fn poll_more(&self, cx: &mut Context<'_>, lp: &Loop, body: &mut Body) -> Poll<Result<More, Failure>> {
        let mut wire = self.conn.wire.borrow_mut();
        loop {
            let mut at = 0;
            match body.decoder.next(wire.input(), &mut at) {
                Err(refusal) => return Poll::Ready(Err(Failure::client(refusal.status()))),
                Ok(Piece::Data(from, to)) => {
                    body.received += (to - from) as u64;
                    if self.conn.listener.http.max_body.is_some_and(|most| body.received > most) {
                        return Poll::Ready(Err(Failure::client(413)));
                    }
                    self.waits_for_client(lp, false);
                    self.conn.deadline.set(self.conn.listener.http.body_timeout_ns);
                    return Poll::Ready(Ok(More::Data(from, to)));
                }
                Ok(Piece::End) => {
                    wire.consume(at);
                    body.complete = true;
                    self.waits_for_client(lp, false);
                    self.conn.deadline.set(None);
                    return Poll::Ready(Ok(More::End));
                }
                Ok(Piece::More) => wire.consume(at),
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let _ = body.decoder.eof();
                    return Poll::Ready(Err(Failure::client(400)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::gone())),
                // It is not the client's turn before it was told to go on.
                Poll::Pending if !body.told => return Poll::Pending,
                Poll::Pending => {
                    self.waits_for_client(lp, true);
                    if self.conn.deadline.ended(cx) {
                        return Poll::Ready(Err(Failure::client(408)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// The version that the client speaks.
    pub fn version(&self) -> Version {
        self.request.version()
    }
}
