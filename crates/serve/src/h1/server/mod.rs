//! Clients' connections: requests one after another, each with its answer, in order.
//!
//! A connection is one task ([`serve`]). Between requests it is a few words: no buffer, no request, no future of an
//! exchange. Its [`Handler`] gets each request's head and a [`Stream`], and decides what to do with it.

mod stream;

pub(crate) use stream::Stream;

use crate::h1::render_alone;
use crate::message::{Disposition, error_page, keep_request};
use crate::metrics::{HeadAnswer, Parting, RequestLimit};
use crate::transport::linger::linger;
use crate::transport::session::{Ending, Session};
use crate::transport::write_limit::WriteLimit;
use std::cell::{OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use weir_http1::{Limits, Refusal, Request, Seek, Version};
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::wire::Wire;
use weir_plan::HttpVersion;
use weir_plan::fixed::DRAIN_IDLE_NS;

/// A client's connection.
pub(crate) struct Conn {
    pub session: Rc<Session>,
    wire: RefCell<Wire>,
    /// How long the client may take nothing of an answer.
    write_deadline: OnceCell<Deadline>,
    /// When to check again for an end of stream behind unread bytes.
    glance: OnceCell<Deadline>,
}

/// The rule of a head that did not arrive within `head_timeout`.
const HEAD_LATE: &str = "head-late";

/// Answers the requests of a connection.
pub(crate) trait Handler {
    /// Answers a request. `last`: the connection ends with it.
    fn exchange(
        &self,
        stream: Stream,
        request: Box<Request>,
        last: bool,
    ) -> impl Future<Output = Disposition> + use<Self> + 'static;
}

/// The result of reading a head.
enum Reading {
    /// It was parsed and consumed.
    Whole(Box<Request>),
    /// Nothing arrived, or only an end of stream: no answer is expected.
    Nothing,
    /// weir ends the connection, on which a request may be arriving.
    Ended,
    /// It is refused with this status, by this rule.
    Refused(u16, &'static str),
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
        wire: RefCell::new(wire),
        write_deadline: OnceCell::new(),
        glance: OnceCell::new(),
        session,
    });
    async move {
        let after = requests(&core, &conn, &handler).await;
        match after {
            Disposition::Linger => Box::pin(linger(&core, &conn.session, &conn.wire)).await,
            // Nothing is unread, so that closing ends the stream in order.
            Disposition::Close | Disposition::Next => conn.wire.borrow_mut().socket.say_end(),
            Disposition::Abort => {}
            Disposition::Reset => conn.wire.borrow().socket.end_in_reset(true),
        }
        // Work that continues without the client may still hold the connection.
        conn.wire.borrow_mut().close();
    }
}

async fn requests(core: &Rc<Core>, conn: &Rc<Conn>, handler: &impl Handler) -> Disposition {
    let http = &conn.session.listener.http;
    let old_ns = conn.session.listener.old_ns(core);
    let mut served = 0u64;
    let mut memory = None;
    // The first request has the time limit of a head; later ones that of an idle connection.
    let mut patience_ns = http.head_timeout_ns;
    loop {
        let idle_until_ns = core.recent().saturating_add(DRAIN_IDLE_NS);
        match read_head(core, conn, patience_ns, idle_until_ns).await {
            Reading::Nothing => return Disposition::Close,
            Reading::Ended => return Disposition::Linger,
            Reading::Refused(status, rule) => {
                conn.session.listener.counts.broke(rule);
                conn.session.parting.set(Parting::BadRequest);
                if served == 0 && is_no_http(conn) {
                    return Disposition::Linger;
                }
                let limit = (rule == HEAD_LATE).then_some(RequestLimit::HeadTimeout);
                return Box::pin(refuse(core, conn, status, limit)).await;
            }
            Reading::Whole(request) => {
                served += 1;
                let last = http.max_requests.is_some_and(|most| served >= most) || core.recent() >= old_ns;
                let stream = Stream::new(conn.clone(), &request);
                // Boxed, so that an idle connection needs no room for it.
                let after = core.reuse.boxed(&mut memory, handler.exchange(stream, request, last)).await;
                if after != Disposition::Next {
                    conn.session.parting.set(match after {
                        Disposition::Abort | Disposition::Reset => Parting::Broken,
                        _ if last => Parting::Limit,
                        _ => Parting::Answered,
                    });
                    return after;
                }
                conn.session.idle_since_ns.set(core.recent());
            }
        }
        patience_ns = http.idle_timeout_ns;
    }
}

/// Reads a complete head. `patience_ns`: the limit until its first byte. `idle_until_ns`: until then a drain waits
/// for it.
async fn read_head(core: &Core, conn: &Conn, patience_ns: Option<u64>, idle_until_ns: u64) -> Reading {
    let mut seek = Seek::default();
    let session = &conn.session;
    let http = &session.listener.http;
    // Empty lines before a request line do not begin a request (RFC 9112, 2.2).
    let has_begun = |input: &[u8]| input.iter().any(|b| !matches!(b, b'\r' | b'\n'));
    let mut begun = has_begun(conn.wire.borrow().input());
    session.deadline.set(if begun { http.head_timeout_ns } else { patience_ns });
    poll_fn(|cx| {
        let mut wire = conn.wire.borrow_mut();
        loop {
            if !wire.input().is_empty() {
                match take(core, &session.listener.limits, &mut wire, &mut seek) {
                    Ok(Some(request)) => {
                        session.idle_since_ns.set(u64::MAX);
                        return Poll::Ready(Reading::Whole(request));
                    }
                    Ok(None) => {}
                    Err(refusal) => return Poll::Ready(Reading::Refused(refusal.status(), refusal.0.name)),
                }
                if !begun && has_begun(wire.input()) {
                    begun = true;
                    session.deadline.set(http.head_timeout_ns);
                    session.idle_since_ns.set(u64::MAX);
                }
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(usize::MAX)) => return Poll::Ready(Reading::Refused(431, "head-too-large")),
                Poll::Ready(Ok(0)) if begun => return Poll::Ready(Reading::Refused(400, "head-unfinished")),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Reading::Nothing),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => break,
            }
        }
        wire.rest();
        // A request that has just arrived is still answered.
        if session.is_draining() && !begun && !wire.socket.has_input() {
            let is_now = session.ending() >= Ending::Now;
            match if is_now { 0 } else { idle_until_ns.saturating_sub(core.now()) } {
                0 if session.lingers() => {
                    session.parts_as_told();
                    return Poll::Ready(Reading::Ended);
                }
                0 => {
                    session.parts_as_told();
                    return Poll::Ready(Reading::Nothing);
                }
                left_ns => session.deadline.set_sooner(left_ns),
            }
        }
        if session.deadline.ended(cx) {
            session.parting.set(Parting::Idle);
            return Poll::Ready(if begun { Reading::Refused(408, HEAD_LATE) } else { Reading::Nothing });
        }
        Poll::Pending
    })
    .await
}

/// Takes a head from the input if it is complete.
fn take(
    core: &Core,
    limits: &Limits,
    wire: &mut Wire,
    seek: &mut Seek,
) -> Result<Option<Box<Request>>, Refusal> {
    let mut request = core.spares.take::<Request>();
    let at_once = if seek.is_fresh() { request.take(wire.input(), limits) } else { None };
    let taken = match at_once {
        Some(length) => Ok(Some(length)),
        None => match seek.request(wire.input(), limits) {
            Ok(Some(length)) => request.parse(&wire.input()[..length], limits).map(|()| Some(length)),
            other => other,
        },
    };
    match taken {
        Ok(Some(length)) => {
            wire.consume(length);
            Ok(Some(request))
        }
        other => {
            keep_request(core, request);
            other.map(|_| None)
        }
    }
}

/// Whether a connection that may use HTTP/2 begins with neither its preface nor a request: three words, the last of
/// which is not an HTTP version, nor the beginning of one. A client that could make sense of a status would not have
/// sent it (RFC 9113 §3.4).
fn is_no_http(conn: &Conn) -> bool {
    let wire = conn.wire.borrow();
    let mut lines = wire.input().split(|b| matches!(b, b'\r' | b'\n'));
    let line = lines.next().unwrap_or_default();
    let is_whole = lines.next().is_some();
    let mut words = line.split(|b| *b == b' ');
    let version = words.nth(2);
    conn.session.listener.http.versions.contains(&HttpVersion::H2)
        && words.next().is_none()
        && version.is_some_and(|word| {
            !word.starts_with(b"HTTP") && (is_whole && !word.is_empty() || !b"HTTP".starts_with(word))
        })
}
/// The beginning of a TLS client's bytes, and what it understands on a cleartext port: a fatal alert,
/// handshake_failure.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];
const TLS_ALERT: [u8; 7] = [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28];

/// Refuses a request whose head could not be read.
async fn refuse(core: &Core, conn: &Conn, status: u16, limit: Option<RequestLimit>) -> Disposition {
    let text = error_page(status, limit);
    let answer = HeadAnswer { status, limit, sent: text.len() };
    conn.session.listener.counts.refused(None, Version::H11, &answer, core.recent());
    if let Some(log) = &conn.session.listener.log {
        log.unreadable(conn.session.client(), conn.wire.borrow().input(), &answer);
    }
    if conn.wire.borrow().input().starts_with(&TLS_HANDSHAKE) {
        conn.wire.borrow_mut().queue(&TLS_ALERT);
    } else {
        render_alone(status, &text, &core.date(), conn.wire.borrow_mut().queue_to());
    }
    let mut limit = WriteLimit::default();
    poll_fn(|cx| {
        let mut wire = conn.wire.borrow_mut();
        match wire.poll_flush(cx) {
            Poll::Pending if limit.has_ended(cx, &conn.session, &conn.write_deadline, &wire) => {
                Poll::Ready(())
            }
            polled => polled.map(drop),
        }
    })
    .await;
    Disposition::Linger
}
