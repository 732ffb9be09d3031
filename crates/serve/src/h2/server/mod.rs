//! Clients' connections: many requests at once, each a task of its own.
//!
//! One task drives a connection ([`serve`]): it reads and writes frames, begins a task for each request, and handles
//! idleness, age, draining and floods. Its [`Handler`] gets each request's head and a [`Stream`], and decides what to
//! do with it.

mod head;
mod stream;
mod unwanted;

pub(crate) use stream::Stream;

use super::frames::Frames;
use super::recv::UnwantedBody;
use super::send::Data;
use super::stall::Stall;
use super::{Io, PREFACE, SMALL_DATA_BUDGET, Shared, fields, is_own_flood};
use crate::message::{Disposition, error_page, heads};
use crate::metrics::{HeadAnswer, Parting, RequestLimit};
use crate::transport::linger::linger;
use crate::transport::session::Session;
use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_http1::{Refusal, Request, Version};
use weir_net::io::Core;
use weir_net::io::reuse::Memory;
use weir_net::transport::wire::Wire;
use weir_plan::Http;
use weir_plan::fixed::{
    DRAIN_IDLE_NS, H2_CONNECTION_WINDOW_BYTES, H2_SEND_BUFFER_BYTES, H2_STREAM_WINDOW_BYTES,
};

/// A client's connection.
pub(crate) struct Conn {
    pub session: Rc<Session>,
    core: Rc<Core>,
    shared: Rc<Shared>,
    /// The number of requests in progress.
    streams: Cell<u32>,
    /// Whether GOAWAY was sent, or is about to be.
    ending: Cell<bool>,
    /// The limit for a client that takes nothing of the unsent bytes.
    stall: Stall,
    /// Sends PINGs to the client; set after the handshake.
    pings: RefCell<Option<PingPong>>,
    /// The limit for which weir has ended it.
    ended_by: Cell<Option<RequestLimit>>,
}

/// Answers the requests of a connection.
pub(crate) trait Handler {
    /// Answers a request.
    fn exchange(
        &self,
        stream: Stream,
        request: Box<Request>,
    ) -> impl Future<Output = Disposition> + use<Self> + 'static;
}

/// The limit of streams that a client has opened and reset before they were handled.
const MAX_RESETS: usize = 1000;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In order: it closes with care.
    InOrder,
    /// It did not begin with a preface.
    NoPreface,
    /// The client has gone, or takes nothing.
    Broken,
}

/// Serves a client to the end of its connection.
pub(crate) fn serve(
    core: Rc<Core>,
    session: Rc<Session>,
    wire: Wire,
    handler: impl Handler,
) -> impl Future<Output = ()> {
    // Outside of the future, which would otherwise reserve room for the wire.
    let conn = Rc::new(Conn {
        shared: Shared::new(&core, wire, Frames::of_client(PREFACE.len())),
        core,
        streams: Cell::new(0),
        ending: Cell::new(false),
        stall: Stall::default(),
        pings: RefCell::default(),
        ended_by: Cell::new(None),
        session,
    });
    async move {
        // Each boxed: state that is needed once is not kept while the connection lasts.
        let end = match Box::pin(handshake(&conn)).await {
            Ok(connection) => drive(&conn, connection, &handler).await,
            Err(end) => end,
        };
        if end == End::NoPreface {
            conn.session.parting.set(Parting::BadRequest);
            say_no_preface(&conn).await;
        }
        if end != End::Broken {
            Box::pin(linger(&conn.core, &conn.session, &conn.shared.wire)).await;
        }
        // Unfinished streams still hold the connection.
        conn.shared.wire.borrow_mut().close();
    }
}

/// The settings of weir (RFC 9113 §6.5.2).
fn settings(http: &Http) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(http.max_streams)
        .initial_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(header_list(http)).unwrap_or(u32::MAX))
        .max_send_buffer_size(H2_SEND_BUFFER_BYTES)
        .data_frame_budget(SMALL_DATA_BUDGET)
        // Enough for a client that gives up all its requests at once, as a browser that leaves a page; the account of
        // frames bounds the rest.
        .max_pending_accept_reset_streams(MAX_RESETS.max(http.max_streams as usize));
    builder
}

/// The largest list of fields that the library accepts (RFC 9113 §6.5.2: 32 bytes a field are added): twice the limit
/// of a head, so that heads that are somewhat too large are refused by weir itself, with a line in the log.
fn header_list(http: &Http) -> u64 {
    2 * (http.max_head + 32 * u64::from(http.max_headers))
}

async fn handshake(conn: &Rc<Conn>) -> Result<Box<Connection<Io, Data>>, End> {
    let http = &conn.session.listener.http;
    conn.session.deadline.set(http.head_timeout_ns);
    let mut shaking = pin!(settings(http).handshake(Io(conn.shared.clone())));
    poll_fn(|cx| match shaking.as_mut().poll(cx) {
        Poll::Ready(Ok(connection)) => Poll::Ready(Ok(Box::new(connection))),
        Poll::Ready(Err(e)) if e.reason() == Some(Reason::PROTOCOL_ERROR) => Poll::Ready(Err(End::NoPreface)),
        Poll::Ready(Err(_)) => Poll::Ready(Err(End::Broken)),
        Poll::Pending => {
            if conn.session.is_draining() {
                conn.session.deadline.set_sooner(DRAIN_IDLE_NS);
            }
            if conn.session.deadline.ended(cx) { Poll::Ready(Err(End::InOrder)) } else { Poll::Pending }
        }
    })
    .await
}

/// Sends GOAWAY with PROTOCOL_ERROR, which the `h2` crate does not send before there is a connection (RFC 9113 §3.4).
async fn say_no_preface(conn: &Conn) {
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    conn.shared.wire.borrow_mut().queue(&GOAWAY);
    poll_fn(|cx| {
        // A client that does not take even this gets nothing more.
        let _ = conn.shared.wire.borrow_mut().poll_flush(cx);
        Poll::Ready(())
    })
    .await;
}

/// Runs a connection to its end.
async fn drive<H: Handler>(conn: &Rc<Conn>, connection: Box<Connection<Io, Data>>, handler: &H) -> End {
    let (session, mut connection) = (&conn.session, connection);
    session.deadline.set(session.listener.http.idle_timeout_ns);
    *conn.pings.borrow_mut() = connection.ping_pong();
    let mut driver =
        Driver { connection, old_ns: session.listener.old_ns(&conn.core), served: 0, ended: false };
    let mut memory = None;
    poll_fn(|cx| {
        loop {
            match driver.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    driver.served += 1;
                    begin(conn, &mut memory, request, respond, |stream, request| {
                        handler.exchange(stream, request)
                    });
                }
                Poll::Ready(None) => return Poll::Ready(End::InOrder),
                Poll::Ready(Some(Err(e))) if e.is_io() => return Poll::Ready(End::Broken),
                Poll::Ready(Some(Err(e))) => {
                    if is_own_flood(&e) {
                        session.parting.set(Parting::Flood);
                        conn.ended_by.set(Some(RequestLimit::Flood));
                    }
                    return Poll::Ready(End::InOrder);
                }
                Poll::Pending => match driver.look(cx, conn) {
                    IdleAction::Again => {}
                    IdleAction::Wait => return Poll::Pending,
                    IdleAction::Stalled => return Poll::Ready(End::Broken),
                },
            }
        }
    })
    .await
}

/// A connection, with the state that its end depends on.
struct Driver {
    connection: Box<Connection<Io, Data>>,
    /// When it ends by its age.
    old_ns: u64,
    served: u64,
    /// Whether the last GOAWAY was queued.
    ended: bool,
}

/// What to do with a connection on which no frame can be read now.
enum IdleAction {
    /// Drive it again: something was queued.
    Again,
    Wait,
    /// The client takes nothing.
    Stalled,
}

impl Driver {
    fn look(&mut self, cx: &mut Context<'_>, conn: &Conn) -> IdleAction {
        let Conn { session, shared, core, .. } = conn;
        if shared.is_flooded() && self.ends_now(Reason::ENHANCE_YOUR_CALM) {
            session.parting.set(Parting::Flood);
            conn.ended_by.set(Some(RequestLimit::Flood));
            return IdleAction::Again;
        }
        let http = &session.listener.http;
        let used_up =
            http.max_requests.is_some_and(|most| self.served >= most) || core.recent() >= self.old_ns;
        if (session.is_draining() || used_up) && !conn.ending.replace(true) {
            // Twice: the second, after the client's answer to the first, names the last request (RFC 9113 §6.8).
            self.connection.graceful_shutdown();
            match used_up {
                true => session.parting.set(Parting::Limit),
                false => session.parts_as_told(),
            }
            conn.rests();
            return IdleAction::Again;
        }
        // Ending the session wakes the task for this, too.
        if session.deadline.ended(cx) && conn.streams.get() == 0 && self.ends_now(Reason::NO_ERROR) {
            if !conn.ending.get() {
                session.parting.set(Parting::Idle);
            }
            return IdleAction::Again;
        }
        let mut wire = shared.wire.borrow_mut();
        if let Some(limit) = conn.stall.poll_ended(cx, core, session, wire.unsent(), wire.taken()) {
            session.parting.set(Parting::Broken);
            conn.ended_by.set(Some(limit));
            return IdleAction::Stalled;
        }
        wire.rest();
        IdleAction::Wait
    }

    /// Sends the last GOAWAY, once.
    fn ends_now(&mut self, reason: Reason) -> bool {
        let first = !std::mem::replace(&mut self.ended, true);
        if first {
            self.connection.abrupt_shutdown(reason);
        }
        first
    }
}

impl Conn {
    /// Sends a PING, unless the last one was not answered yet.
    fn ping(&self) {
        if let Some(pings) = &mut *self.pings.borrow_mut() {
            let _ = pings.poll_pong(&mut Context::from_waker(Waker::noop()));
            let _ = pings.send_ping(Ping::opaque());
        }
    }

    /// Starts the idle time of a connection without requests: `idle_timeout`, or until the client has received its
    /// end.
    fn rests(&self) {
        if self.streams.get() == 0 {
            let limit_ns = match self.ending.get() {
                true => Some(DRAIN_IDLE_NS),
                false => self.session.listener.http.idle_timeout_ns,
            };
            self.session.deadline.set(limit_ns);
        }
    }
}

/// A request in progress; dropping it ends it.
struct Open(Rc<Conn>);

impl Open {
    fn new(conn: &Rc<Conn>) -> Open {
        conn.streams.set(conn.streams.get() + 1);
        conn.session.deadline.set(None);
        conn.session.idle_since_ns.set(u64::MAX);
        Open(conn.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Conn { session, streams, core, .. } = &*self.0;
        streams.set(streams.get() - 1);
        if streams.get() == 0 {
            session.idle_since_ns.set(core.recent());
            self.0.rests();
            session.deadline.wake();
        }
    }
}

/// Begins a request in a task of its own; one whose head is malformed is answered at once.
fn begin<F: Future<Output = Disposition> + 'static>(
    conn: &Rc<Conn>,
    memory: &mut Option<Memory<F>>,
    request: http::Request<RecvStream>,
    respond: SendResponse<Data>,
    exchange: impl FnOnce(Stream, Box<Request>) -> F,
) {
    let core = &conn.core;
    let (parts, body) = request.into_parts();
    let (mut request, mut scratch) = (heads::take_request(), core.buffers.small());
    let limits = &conn.session.listener.limits;
    let read = head::read(&parts, !body.is_end_stream(), limits, &mut request, &mut scratch);
    match read {
        Ok(()) => {
            conn.shared.frames.borrow_mut().accept_head(scratch.len());
            let open = Open::new(conn);
            let stream = Stream::new(conn.clone(), &request, body, respond);
            let work = core.reuse.boxed(memory, exchange(stream, request));
            core.runtime.spawn(async move {
                let _open = open;
                work.await;
            });
        }
        Err(refusal) => {
            refuse(conn, &scratch, refusal, respond);
            if let Some(unwanted) = UnwantedBody::new(body, 0) {
                unwanted::linger(conn, unwanted);
            }
            heads::keep_request(request);
        }
    }
    core.buffers.keep_small(scratch);
}

/// Refuses a request whose head breaks a rule. The stream ends with it, and counts as one that brings nothing.
fn refuse(conn: &Conn, head: &[u8], refusal: Refusal, mut respond: SendResponse<Data>) {
    let text = error_page(refusal.status(), None);
    let answer = HeadAnswer { status: refusal.status(), limit: None, sent: text.len() };
    let counts = &conn.session.listener.counts;
    counts.broke(refusal.0.name);
    counts.refused(None, Version::H2, &answer, conn.core.recent());
    if let Some(log) = &conn.session.listener.log {
        log.unreadable(conn.session.client(), head, &answer);
    }
    let mut rendered = Vec::new();
    let to = stream::client_traits(false);
    let date = conn.core.date();
    weir_http1::render_answer(refusal.status(), &[], text.as_bytes(), to, Some(&date), &mut rendered);
    let (response, at) = fields::response(refusal.status(), &rendered);
    // A stream that the client has reset meanwhile takes nothing.
    if let Ok(mut body) = respond.send_response(response, false) {
        let _ = body.send_data(Bytes::copy_from_slice(&rendered[at..]).into(), true);
    }
}
