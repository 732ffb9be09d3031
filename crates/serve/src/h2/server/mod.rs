//! Clients' connections: many requests at once, each a task of its own.
//!
//! One task drives a connection ([`serve`]): it reads and writes frames, begins a task for each request, and handles
//! idleness, age, draining and floods. Its [`Handler`] gets each request's head and a [`Stream`], and decides what to
//! do with it.

mod begin;
mod stream;
mod unwanted;

pub(crate) use stream::Stream;

use super::link::{Link, LinkEnd};
use super::stall::Stall;
use crate::message::Disposition;
use crate::metrics::{Parting, RequestLimit};
use crate::transport::linger::linger;
use crate::transport::listener::Listener;
use crate::transport::session::Session;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::Request;
use weir_http2::{Config, ConnectionError, ErrorCode, Event, Role};
use weir_net::io::Core;
use weir_net::io::runtime::AfterOthers;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{
    DRAIN_IDLE_NS, H2_CONNECTION_WINDOW_BYTES, H2_ORIGIN_WINDOW_BYTES, H2_STREAM_WINDOW_BYTES,
};

/// A client's connection.
pub(crate) struct Conn {
    pub session: Rc<Session>,
    core: Rc<Core>,
    link: Rc<Link>,
    /// The number of requests in progress.
    streams: Cell<u32>,
    /// Whether GOAWAY was sent, or is about to be.
    ending: Cell<bool>,
    /// The limit for a client that takes nothing of the unsent bytes.
    stall: Stall,
    /// The limit for which weir has ended it.
    ended_by: Cell<Option<RequestLimit>>,
}

/// Answers the requests of a connection.
pub(crate) trait Handler {
    /// Answers a request; the future holds `open` until it has ended.
    fn exchange(
        &self,
        open: Open,
        stream: Stream,
        request: Box<Request>,
    ) -> impl Future<Output = Disposition> + use<Self> + 'static;
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
        link: Link::new(&core, wire, Role::Server, config(&session.listener)),
        core,
        streams: Cell::new(0),
        ending: Cell::new(false),
        stall: Stall::default(),
        ended_by: Cell::new(None),
        session,
    });
    async move {
        if drive(&conn, &handler).await != LinkEnd::Gone {
            // Boxed: state that is needed once is not kept while the connection lasts.
            Box::pin(linger(&conn.core, &conn.session, &conn.link.wire)).await;
        }
        // Unfinished streams still hold the connection.
        conn.link.wire.borrow_mut().close();
    }
}

/// The limits of weir (RFC 9113 §6.5.2).
fn config(listener: &Listener) -> Config {
    let http = &listener.http;
    Config {
        max_streams: http.max_streams,
        max_head: u32::try_from(http.max_head).unwrap_or(u32::MAX),
        max_fields: http.max_headers,
        stream_window: H2_STREAM_WINDOW_BYTES,
        // Requests wait in a built-in server's queue with their bodies, which must not hold up others.
        connection_window: match listener.is_built_in() {
            true => H2_ORIGIN_WINDOW_BYTES,
            false => H2_CONNECTION_WINDOW_BYTES,
        },
        has_extended_connect: !http.upgrade.is_empty(),
        ..Config::SERVER
    }
}

/// Runs a connection to its end.
async fn drive<H: Handler>(conn: &Rc<Conn>, handler: &H) -> LinkEnd {
    let session = &conn.session;
    session.deadline.set(session.listener.http.head_timeout_ns);
    let mut driver = Driver {
        old_ns: session.listener.old_ns(&conn.core),
        served: 0,
        has_greeted: false,
        has_ended: false,
    };
    let (mut memory, mut turn) = (None, AfterOthers::default());
    poll_fn(|cx| {
        loop {
            let polled = conn.link.poll(cx, &mut turn, |event, head| match event {
                Event::Request { stream, is_end } => {
                    driver.served += 1;
                    begin::request(conn, &mut memory, stream, head, is_end, |open, stream, request| {
                        handler.exchange(open, stream, request)
                    });
                }
                Event::Malformed { stream, why, may_answer: true } => begin::refuse(conn, stream, head, why),
                Event::Malformed { why, .. } => session.listener.counts.broke(why.name()),
                Event::SettingsChanged => driver.greet(conn),
                Event::Failed(error) => driver.fail(conn, error),
                _ => {}
            });
            if polled.is_ready() {
                return polled;
            }
            match driver.look(cx, conn) {
                IdleAction::Again => {}
                IdleAction::Wait => return Poll::Pending,
                IdleAction::Stalled => {
                    conn.link.finish(LinkEnd::Gone);
                    return Poll::Ready(LinkEnd::Gone);
                }
            }
        }
    })
    .await
}

/// The state that the end of a connection depends on.
struct Driver {
    /// When it ends by its age.
    old_ns: u64,
    served: u64,
    /// Whether the client's preface and settings have come.
    has_greeted: bool,
    /// Whether the last GOAWAY was queued.
    has_ended: bool,
}

/// What to do with a connection on which nothing can be read now.
enum IdleAction {
    /// Drive it again: something was queued.
    Again,
    Wait,
    /// The client takes nothing.
    Stalled,
}

impl Driver {
    fn greet(&mut self, conn: &Conn) {
        if !std::mem::replace(&mut self.has_greeted, true) {
            conn.rests();
        }
    }

    /// The client has broken a rule of the connection.
    #[cold]
    fn fail(&self, conn: &Conn, error: ConnectionError) {
        let parting = match error.code {
            ErrorCode::ENHANCE_YOUR_CALM => {
                conn.ended_by.set(Some(RequestLimit::Flood));
                Parting::Flood
            }
            _ => Parting::BadRequest,
        };
        conn.session.parting.set(parting);
        let listener = &conn.session.listener;
        listener.counts.broke(error.rule());
        if let Some(log) = listener.errors.as_deref().filter(|_| !listener.is_built_in()) {
            log.connection_failed(|| {
                let client = conn.session.peer().map_or("a client".to_owned(), |peer| peer.to_string());
                let rule = error.rule();
                format!(
                    "listener {:?}: the connection of {client} ends (HTTP/2): {error}, rule {rule}",
                    listener.name
                )
            });
        }
    }

    fn look(&mut self, cx: &mut Context<'_>, conn: &Conn) -> IdleAction {
        let Conn { session, link, core, .. } = conn;
        let http = &session.listener.http;
        if link.end().is_none() {
            if !self.has_greeted && session.is_draining() {
                session.deadline.set_sooner(DRAIN_IDLE_NS);
            }
            let used_up =
                http.max_requests.is_some_and(|most| self.served >= most) || core.recent() >= self.old_ns;
            if self.has_greeted && (session.is_draining() || used_up) && !conn.ending.replace(true) {
                // Twice: the second, after the client's answer to the first, names the last request (RFC 9113 §6.8).
                link.codec.borrow_mut().drain(core.now());
                match used_up {
                    true => session.parting.set(Parting::Limit),
                    false => session.parts_as_told(),
                }
                conn.rests();
                return IdleAction::Again;
            }
            // Ending the session wakes the task for this, too.
            if session.deadline.ended(cx) && conn.streams.get() == 0 && self.ends_now(link) {
                if !conn.ending.get() {
                    session.parting.set(Parting::Idle);
                }
                return IdleAction::Again;
            }
        }
        let (unsent, taken) = {
            let wire = link.wire.borrow();
            (wire.unsent(), wire.taken())
        };
        if let Some(limit) = conn.stall.poll_ended(cx, core, session, unsent, taken) {
            session.parting.set(Parting::Broken);
            conn.ended_by.set(Some(limit));
            return IdleAction::Stalled;
        }
        link.rest();
        IdleAction::Wait
    }

    /// Sends the last GOAWAY, once.
    fn ends_now(&mut self, link: &Link) -> bool {
        let first = !std::mem::replace(&mut self.has_ended, true);
        if first {
            link.codec.borrow_mut().close();
        }
        first
    }
}

impl Conn {
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
pub(crate) struct Open(Rc<Conn>);

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
