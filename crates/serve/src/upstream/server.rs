//! `server(name, addr=...)`: forwards a request to an origin and waits for the head of its answer.
//!
//! A request whose reused connection ended before any byte of an answer is sent once more on a fresh one, if it is idempotent
//! and still kept: the origin had closed the connection just then (RFC 9110, 9.2.2; RFC 9112, 9.3.1).

use crate::control::built_in;
use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::context::Sending;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::failure_log;
use crate::exchange::origin_reply::OriginReply;
use crate::exchange::upload::{Broken, Upload};
use crate::io::runtime::AfterOthers;
use crate::io::timers::{Sleep, has_ended};
use crate::nodes::{Answer, From, Holds, NodeId, Reply, Way};
use crate::transport::wire::Wire;
use crate::upstream::OriginConn;
use crate::upstream::connect::Target;
use crate::upstream::limit::Limit;
use crate::upstream::pool::Pool;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_http1::{Asked, BodyOut, Client, Decoder, Edits, Framing, Refusal, Seek, Version};
use weir_policy::Kind;
use weir_topology::plan::Origin;
use weir_topology::plan::fixed::{
    CONTINUE_AFTER_NS, MAX_INTERIM as MOST_INTERIM, MAX_RESEND_BYTES as RESEND, ON_CANCEL_SILENCE_NS,
};

/// An origin as one loop sees it.
pub(crate) struct Server {
    /// Its number among the nodes.
    pub id: NodeId,
    /// Its name, for logs.
    pub name: Rc<str>,
    /// Where the file says that it is; `None`: in this process.
    pub addr: Option<Rc<str>>,
    /// Where it is.
    pub target: Target,
    /// Timeouts and limits of its connections.
    pub origin: Origin,
    /// What is read from it at most.
    pub limits: weir_http1::Limits,
    /// Idle connections.
    pub pool: RefCell<Pool>,
    /// Whether no target leads here any more: no connection is kept.
    pub retired: Cell<bool>,
    /// How many connections there may be, over all loops.
    pub most: Option<Arc<Limit>>,
}

/// Why an attempt on a connection has no head.
enum Failed {
    /// The connection ended before any byte of an answer.
    Silent,
    With(Failure),
}

impl Server {
    /// Forwards the request; the reply holds the connection.
    pub async fn forward(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Rc<Exchange>, way: &Way) -> Answer {
        if !ex.can_send_again() {
            return Err(Failure::new(Kind::Reset));
        }
        *ex.origin.borrow_mut() = Some(self.clone());
        let mut fresh = false;
        loop {
            way.sending(Sending::Begun);
            let pooled = if fresh { None } else { self.take(lp, ex) };
            let reused = pooled.is_some();
            ex.reused.set(reused);
            let conn = match pooled {
                Some(conn) => conn,
                // Boxed, as it is rare and large: what waits for a pooled connection need not carry it.
                None => match Box::pin(self.connect(lp)).await {
                    Ok(conn) => conn,
                    Err(failure) => {
                        way.sending(Sending::Nowhere);
                        return Err(failure.at(self.id));
                    }
                },
            };
            let mut attempt = Attempt::new(self, lp, ex, way, conn);
            let mut turn = AfterOthers::default();
            poll_fn(|cx| turn.poll(&lp.runtime, cx)).await;
            match poll_fn(|cx| attempt.poll_head(cx, lp, ex, way)).await {
                Ok(()) if self.is_built_in() && attempt.reply.response.field(built_in::KIND).is_some() => {
                    way.sending(Sending::Nowhere);
                    let reply = attempt.into_reply();
                    let failure = built_in::failure(&reply.response);
                    reply.discard(lp, ex);
                    return Err(failure.at(self.id));
                }
                Ok(()) => {
                    return Ok(Reply { from: From::Origin(attempt.into_reply()), holds: Holds::default() });
                }
                Err(Failed::Silent) => {
                    drop(attempt);
                    way.sending(Sending::Nowhere);
                    let again =
                        reused && !self.is_built_in() && ex.request.is_idempotent() && ex.can_send_again();
                    if !again {
                        return Err(Failure::new(Kind::Reset).by(Why::Silent).at(self.id));
                    }
                    ex.resent.set(true);
                    fresh = true;
                }
                Err(Failed::With(failure)) => {
                    way.sending(Sending::Nowhere);
                    return Err(failure.at(self.id));
                }
            }
        }
    }

    /// How it is called to a person.
    pub fn described(&self) -> String {
        failure_log::server(&self.name, self.addr.as_deref())
    }

    /// Whether it is one of this process.
    pub fn is_built_in(&self) -> bool {
        matches!(self.target, Target::BuiltIn(_))
    }

    fn take(&self, lp: &Loop, ex: &Exchange) -> Option<Box<OriginConn>> {
        if let Some(conn) = ex.conn.take_bound(self) {
            return Some(conn);
        }
        self.pool.borrow_mut().take(lp.lately(), self.origin.idle_timeout_ns)
    }

    async fn connect(self: &Rc<Self>, lp: &Rc<Loop>) -> Result<Box<OriginConn>, Failure> {
        let mut limit = self.origin.connect_timeout_ns.map(|ns| lp.timers.after(ns));
        let counted = match &self.most {
            Some(most) => {
                let room = most.room(lp, &mut limit).await;
                Some(room.ok_or(Failure::new(Kind::Overloaded).by(Why::NoRoom))?)
            }
            None => None,
        };
        let mut connecting = std::pin::pin!(self.target.connect(lp));
        let socket = poll_fn(|cx| {
            if let Poll::Ready(made) = connecting.as_mut().poll(cx) {
                return Poll::Ready(Some(made));
            }
            if has_ended(&mut limit, cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        let socket = match socket {
            Some(Ok(socket)) => socket,
            // This process has nothing left: no target is to blame.
            Some(Err(e)) if is_exhausted(&e) => {
                let errno = e.raw_os_error().unwrap_or_default();
                return Err(Failure::new(Kind::Overloaded).by(Why::Exhausted(errno)));
            }
            Some(Err(e)) => return Err(Failure::new(Kind::ConnectFailed).by(Why::of(&e))),
            None => {
                let why = Why::ConnectLimit(self.origin.connect_timeout_ns);
                return Err(Failure::new(Kind::ConnectFailed).by(why));
            }
        };
        let now = lp.now();
        // Jitter of a tenth, so that connections made together do not end together.
        let old_ns = match self.origin.max_age_ns {
            Some(age) => now.saturating_add(age - (age / 10).min(lp.draw().below((age / 10).max(1)))),
            None => u64::MAX,
        };
        Ok(Box::new(OriginConn {
            wire: Wire::new(socket, lp.buffers.clone()),
            opened_ns: now,
            old_ns,
            requests: 0,
            is_doubtful: false,
            bound: false,
            _counted: counted,
            deadline: lp.deadlines.add(),
        }))
    }

    /// No target leads here any more.
    pub fn retire(&self) {
        self.retired.set(true);
        self.pool.borrow_mut().clear();
    }

    /// Its name has these addresses now: idle connections to others close, busy ones after their exchange.
    pub fn moved(&self, now_ns: u64, addresses: &[std::net::SocketAddr]) {
        if let Target::Tcp(own) = &self.target {
            own.set(now_ns, addresses);
            self.pool.borrow_mut().keep_only(|conn| own.lead(&conn.wire.socket, conn.opened_ns));
        }
    }

    /// Keeps a connection for the next request.
    pub fn put(&self, lp: &Loop, conn: Box<OriginConn>) {
        let used_up = self.origin.max_requests.is_some_and(|most| conn.requests >= most);
        let leads = self.target.leads(&conn.wire.socket, conn.opened_ns);
        if !used_up && leads && !self.retired.get() && !lp.is_draining() {
            self.pool.borrow_mut().put(conn, lp.lately());
        }
    }
}

/// One request on one connection, until the head of its answer.
struct Attempt {
    /// What becomes of it.
    reply: Box<OriginReply>,
    seek: Seek,
    asked: Asked,
    interim: u32,
    /// Whether any byte of an answer came.
    any: bool,
    continue_after: Option<Sleep>,
    /// How long the origin may still be silent, once no client waits any more.
    silence: Option<Sleep>,
    /// Bytes read from the client and not taken by the origin, when last looked at.
    progress: (u64, usize),
}

impl Attempt {
    fn new(server: &Rc<Server>, lp: &Loop, ex: &Exchange, way: &Way, mut conn: Box<OriginConn>) -> Attempt {
        let body = body_out(ex.request.framing());
        let none = Edits::default();
        let edits = way.edits.as_deref().unwrap_or(&none);
        let out = conn.wire.queue_to();
        if server.is_built_in() {
            let edits = built_in::with_draw(edits, way);
            weir_http1::render_request(&ex.request, &ex.checked, &ex.conn.hop(), &edits, body, out);
        } else {
            weir_http1::render_request(&ex.request, &ex.checked, &ex.conn.hop(), edits, body, out);
        }
        conn.requests += 1;
        let keep = way.keep.max(if ex.request.is_idempotent() { RESEND } else { 0 });
        let asked = Asked {
            head: ex.request.is_head(),
            connect: ex.request.is_connect(),
            upgrade: ex.checked.upgrade,
        };
        conn.deadline.set(server.origin.body_timeout_ns);
        if !ex.is_complete() {
            ex.conn.deadline.set(ex.conn.listener.http.body_timeout_ns);
        }
        let reply = Box::new(OriginReply {
            server: server.clone(),
            conn,
            response: lp.buffers.response(),
            decoder: Decoder::new(Framing::None, &server.limits),
            upload: Upload::new(body_out(ex.request.framing()), keep),
            cut: way.cut.clone(),
            ended: false,
            passed: 0,
            edits: Edits::default(),
            add: Vec::new(),
            ahead: 0,
        });
        let continue_after = ex.checked.expect.then(|| lp.timers.after(CONTINUE_AFTER_NS));
        Attempt {
            reply,
            seek: Seek::default(),
            asked,
            interim: 0,
            any: false,
            continue_after,
            silence: None,
            progress: (u64::MAX, 0),
        }
    }

    /// Sends, and reads up to the final head.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        lp: &Loop,
        ex: &Exchange,
        way: &Way,
    ) -> Poll<Result<(), Failed>> {
        let reply = &mut *self.reply;
        if !reply.upload.broken && (!reply.upload.finished || reply.conn.wire.unsent() > 0) {
            match reply.upload.poll(cx, lp, ex, &mut reply.conn.wire) {
                Poll::Ready(Ok(())) => {
                    way.sending(Sending::Whole);
                    reply.conn.deadline.set(reply.server.origin.response_timeout_ns);
                }
                Poll::Ready(Err(Broken::Client(failure))) => return Poll::Ready(Err(Failed::With(failure))),
                Poll::Ready(Err(Broken::Origin)) => {
                    let reply = &mut *self.reply;
                    reply.upload.broken = true;
                    reply.conn.deadline.set(reply.server.origin.response_timeout_ns);
                }
                Poll::Pending => self.watch_upload(ex),
            }
        }
        loop {
            match self.take_head() {
                Ok(true) => {
                    if !self.reply.response.is_interim() {
                        return Poll::Ready(self.may_switch(ex));
                    }
                    self.interim += 1;
                    if self.interim > MOST_INTERIM {
                        return bad_response(Why::Interims);
                    }
                    // A client that waits no more may be at its next request.
                    if way.is_wanted() {
                        self.pass_interim(cx, ex);
                    }
                    continue;
                }
                Ok(false) => {}
                Err(refusal) => return bad_response(Why::Rule(refusal)),
            }
            match self.reply.conn.wire.poll_fill(cx) {
                Poll::Ready(Ok(usize::MAX)) => return bad_response(Why::HeadTooLong),
                Poll::Ready(Ok(n)) if n > 0 => {
                    self.any = true;
                    self.silence = None;
                    lp.now();
                }
                Poll::Ready(_) if self.any => {
                    let failure = Failure::new(Kind::Reset).by(Why::HeadCut);
                    return Poll::Ready(Err(Failed::With(failure)));
                }
                Poll::Ready(_) => return Poll::Ready(Err(Failed::Silent)),
                Poll::Pending => break,
            }
        }
        if let Some(sleep) = &mut self.continue_after
            && sleep.poll_ended(cx).is_ready()
        {
            self.continue_after = None;
            if way.is_wanted() {
                ex.say_continue(cx);
            }
        }
        if self.reply.cut.is_off() {
            return Poll::Ready(Err(Failed::With(Failure::cut())));
        }
        if self.reply.conn.deadline.ended(cx) {
            return Poll::Ready(Err(Failed::With(self.is_late())));
        }
        if !way.is_wanted() && self.is_silent(cx, lp) {
            return Poll::Ready(Err(Failed::With(Failure::new(Kind::Timeout).by(Why::Unwanted))));
        }
        Poll::Pending
    }

    /// Whether the origin has said nothing for as long as what nobody waits for is waited for.
    #[cold]
    fn is_silent(&mut self, cx: &mut Context<'_>, lp: &Loop) -> bool {
        let silence = self.silence.get_or_insert_with(|| lp.timers.after(ON_CANCEL_SILENCE_NS));
        silence.poll_ended(cx).is_ready()
    }

    /// A 101 leads only to what was asked for.
    fn may_switch(&self, ex: &Exchange) -> Result<(), Failed> {
        if self.reply.response.status() != 101 {
            return Ok(());
        }
        weir_http1::check_switch(&ex.request, &ex.conn.hop(), &self.reply.response)
            .map_err(|refusal| Failed::With(Failure::new(Kind::BadResponse).by(Why::Rule(refusal))))
    }

    /// The origin was silent for too long.
    #[cold]
    fn is_late(&self) -> Failure {
        let OriginReply { server, upload, conn, .. } = &*self.reply;
        let why = match upload.finished && conn.wire.unsent() == 0 || upload.broken {
            true => Why::ResponseLimit(server.origin.response_timeout_ns),
            false => Why::UploadLimit(server.origin.body_timeout_ns),
        };
        Failure::new(Kind::Timeout).by(why)
    }

    /// Whether a head has come whole; it is parsed and used up.
    fn take_head(&mut self) -> Result<bool, Refusal> {
        let OriginReply { conn, response, server, .. } = &mut *self.reply;
        let (input, limits) = (conn.wire.input(), &server.limits);
        if input.is_empty() {
            return Ok(false);
        }
        let at_once = if self.seek.is_fresh() { response.take(input, self.asked, limits) } else { None };
        let length = match at_once {
            Some(length) => length,
            None => {
                let Some(length) = self.seek.response(input, limits)? else { return Ok(false) };
                response.parse(&input[..length], self.asked, limits)?;
                length
            }
        };
        conn.wire.consume(length);
        self.seek.reset();
        Ok(true)
    }

    /// The limit of silence counts while the origin takes nothing; while it is the client's turn, the client's own does.
    fn watch_upload(&mut self, ex: &Exchange) {
        let unsent = self.reply.conn.wire.unsent();
        let progress = (ex.body.try_borrow().map_or(0, |b| b.received), unsent);
        if progress != self.progress {
            self.progress = progress;
            self.reply.conn.deadline.set(if unsent > 0 {
                self.reply.server.origin.body_timeout_ns
            } else {
                None
            });
        }
    }

    /// 100 is told once, to a client that waits for it; others go on to clients that know them.
    fn pass_interim(&mut self, cx: &mut Context<'_>, ex: &Exchange) {
        if self.reply.response.status() == 100 {
            ex.say_continue(cx);
        } else if ex.version() != Version::H10 {
            ex.passed_interim.set(true);
            let mut head = Vec::new();
            let to = Client {
                version: ex.version(),
                head: false,
                te_trailers: false,
                close: false,
                keep_alive_10: false,
            };
            weir_http1::render_response(
                &self.reply.response,
                to,
                &Edits::default(),
                &[],
                Framing::None,
                None,
                &mut head,
            );
            // A client that is gone shows when it is read.
            let _ = ex.conn.wire.borrow_mut().push(cx, &head);
        }
    }

    fn into_reply(mut self) -> Box<OriginReply> {
        let reply = &mut self.reply;
        reply.decoder = Decoder::new(reply.response.framing(), &reply.server.limits);
        reply.ended = reply.decoder.ended();
        reply.conn.deadline.set(reply.server.origin.body_timeout_ns);
        self.reply
    }
}

/// Whether descriptors or ports of this machine have run out.
pub(crate) fn is_exhausted(e: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS))
}

/// How a request's body goes on: as it came.
fn body_out(framing: Framing) -> BodyOut {
    match framing {
        Framing::Length(n) => BodyOut::Length(n),
        Framing::Chunked => BodyOut::Chunked,
        Framing::None | Framing::Close => BodyOut::None,
    }
}

#[cold]
fn bad_response(why: Why) -> Poll<Result<(), Failed>> {
    Poll::Ready(Err(Failed::With(Failure::new(Kind::BadResponse).by(why))))
}
