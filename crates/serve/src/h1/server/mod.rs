//! Clients' connections: requests one after another, each with its answer, in order.
//!
//! A connection is one task. Between requests it is a few words: no buffer, no request, no future of an exchange.

mod linger;
pub(crate) mod write_limit;

use crate::control::clients::Counted;
use crate::control::event_loop::Loop;
use crate::exchange::serve;
use crate::io::deadlines::Deadline;
use crate::transport::listener::Listener;
use crate::transport::socket::Socket;
use crate::transport::wire::Wire;
use crate::upstream::OriginConn;
use crate::upstream::server::Server;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use weir_http1::{Hop, Limits, Refusal, Request, Seek};
use weir_topology::plan::fixed::DRAIN_NEW_CLIENT_NS as NEW_NS;

/// A client's connection.
pub(crate) struct Conn {
    pub wire: RefCell<Wire>,
    /// The limit of silence that counts now: idle, head or body timeout.
    pub deadline: Deadline,
    /// How long the client may take nothing of an answer.
    pub write_deadline: OnceCell<Deadline>,
    /// When an end of stream behind unread bytes is looked for again.
    pub glance: OnceCell<Deadline>,
    pub listener: Rc<Listener>,
    pub peer: Option<SocketAddr>,
    /// The origin connection that belongs to this client alone (NTLM, Negotiate), and whose it is.
    bound: RefCell<Option<(Rc<Server>, Box<OriginConn>)>>,
    /// Told to end: an idle one closes, a busy one after its answer.
    pub ending: Cell<bool>,
}

/// What becomes of a connection after an exchange.
pub(crate) enum After {
    /// The next request.
    Next,
    /// Nothing is unread: it closes.
    Close,
    /// Bytes may be unread: what was answered must not be destroyed by a reset.
    Linger,
    /// It has ended already, or breaks off in a body whose length the client knows.
    Abort,
    /// It breaks off in a body that would end with the connection.
    Reset,
}

impl Conn {
    /// How a connection ends after an answer that the client's socket has taken. `asked`: the client wanted it to, so that
    /// nothing follows a whole request.
    pub fn end(&self, request_is_whole: bool, asked: bool) -> After {
        let wire = self.wire.borrow();
        let nothing_unread =
            request_is_whole && wire.input().is_empty() && (asked || !wire.socket.has_input());
        if nothing_unread { After::Close } else { After::Linger }
    }

    /// What the rules want to know of this hop.
    pub fn hop(&self) -> Hop<'_> {
        let http = &self.listener.http;
        Hop {
            peer: self.peer.map(|p| p.ip()),
            https: false,
            port: self.listener.port,
            trusted: &self.listener.trusted,
            upgrades: &http.upgrade,
            connect: &http.connect,
            raw_paths: self.listener.raw_paths,
            own: self.listener.is_built_in(),
        }
    }

    /// The connection to this origin that only this client may use.
    pub fn take_bound(&self, server: &Server) -> Option<Box<OriginConn>> {
        let mut bound = self.bound.borrow_mut();
        let ours = bound.as_ref().is_some_and(|(s, _)| std::ptr::eq(s.as_ref(), server));
        let (_, mut conn) = bound.take_if(|_| ours)?;
        conn.is_silent().then_some(conn)
    }

    /// From now on only this client may use it.
    pub fn bind(&self, server: Rc<Server>, conn: Box<OriginConn>) {
        *self.bound.borrow_mut() = Some((server, conn));
    }
}

/// What reading a head came to.
enum Head {
    /// It was parsed, and is used up.
    Whole(Request),
    /// Nothing came, or nothing but an end: nobody waits for an answer.
    Nothing,
    /// It is answered with this status.
    Refused(u16),
}

/// Serves a client to the end of its connection.
pub(crate) async fn serve(
    lp: Rc<Loop>,
    listener: Rc<Listener>,
    socket: Socket,
    peer: Option<SocketAddr>,
    counted: Counted,
) {
    let conn = Rc::new(Conn {
        wire: RefCell::new(Wire::new(socket, lp.buffers.clone())),
        deadline: lp.deadlines.add(),
        write_deadline: OnceCell::new(),
        glance: OnceCell::new(),
        listener,
        peer,
        bound: RefCell::default(),
        ending: Cell::new(lp.is_draining()),
    });
    let _known = lp.know(&conn);
    let _counted = counted;
    let after = requests(&lp, &conn).await;
    match after {
        After::Linger => Box::pin(linger::linger(&lp, &conn)).await,
        // Nothing is unread, so that closing ends the stream in order.
        After::Close | After::Next | After::Abort => {}
        After::Reset => conn.wire.borrow().socket.end_in_reset(true),
    }
    // What goes on without the client may still know the connection.
    conn.wire.borrow_mut().close();
}

async fn requests(lp: &Rc<Loop>, conn: &Rc<Conn>) -> After {
    let http = &conn.listener.http;
    let old_ns = conn.listener.old_ns(lp);
    let mut served = 0u64;
    let mut memory = None;
    // The first request has the time of a head; later ones may be long in coming.
    let mut patience_ns = http.head_timeout_ns;
    let mut new_until_ns = lp.now().saturating_add(NEW_NS);
    loop {
        match read_head(lp, conn, patience_ns, new_until_ns).await {
            Head::Nothing => return After::Close,
            Head::Refused(status) => return crate::exchange::answer::refuse(lp, conn, None, status).await,
            Head::Whole(request) => {
                served += 1;
                let last = http.max_requests.is_some_and(|most| served >= most) || lp.lately() >= old_ns;
                // In one piece, so that an idle connection has no place for it.
                let after = lp
                    .reuse
                    .boxed(&mut memory, serve::exchange(lp.clone(), conn.clone(), request, last))
                    .await;
                match after {
                    After::Next => {}
                    after => return after,
                }
            }
        }
        patience_ns = http.idle_timeout_ns;
        new_until_ns = 0;
    }
}

/// Reads until a head is there whole. `patience_ns`: until its first byte. `new_until_ns`: until then a drain waits for it.
async fn read_head(lp: &Rc<Loop>, conn: &Rc<Conn>, patience_ns: Option<u64>, new_until_ns: u64) -> Head {
    let mut seek = Seek::default();
    let http = &conn.listener.http;
    // Empty lines before a request line are no request (RFC 9112, 2.2).
    let has_begun = |input: &[u8]| input.iter().any(|b| !matches!(b, b'\r' | b'\n'));
    let mut begun = has_begun(conn.wire.borrow().input());
    conn.deadline.set(if begun { http.head_timeout_ns } else { patience_ns });
    poll_fn(|cx| {
        let mut wire = conn.wire.borrow_mut();
        loop {
            if !wire.input().is_empty() {
                match take(lp, &conn.listener.limits, &mut wire, &mut seek) {
                    Ok(Some(request)) => return Poll::Ready(Head::Whole(request)),
                    Ok(None) => {}
                    Err(refusal) => return Poll::Ready(Head::Refused(refusal.status())),
                }
                if !begun && has_begun(wire.input()) {
                    begun = true;
                    conn.deadline.set(http.head_timeout_ns);
                }
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(usize::MAX)) => return Poll::Ready(Head::Refused(431)),
                Poll::Ready(Ok(0)) if begun => return Poll::Ready(Head::Refused(400)),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Head::Nothing),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => break,
            }
        }
        wire.rest();
        // A request that has just arrived is still answered.
        if conn.ending.get() && !begun && !wire.socket.has_input() {
            match new_until_ns.saturating_sub(lp.now()) {
                0 => return Poll::Ready(Head::Nothing),
                left_ns => conn.deadline.set(Some(left_ns)),
            }
        }
        if conn.deadline.ended(cx) {
            return Poll::Ready(if begun { Head::Refused(408) } else { Head::Nothing });
        }
        Poll::Pending
    })
    .await
}

/// A head, if it has come whole; it is used up.
fn take(lp: &Loop, limits: &Limits, wire: &mut Wire, seek: &mut Seek) -> Result<Option<Request>, Refusal> {
    let mut request = lp.buffers.request();
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
            lp.buffers.keep_request(request);
            other.map(|_| None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<F>(_: impl FnOnce(Rc<Loop>, Rc<Conn>, Request, bool) -> F) -> usize {
        size_of::<F>()
    }

    /// It is moved to its place for each request, and as much memory is kept for each that was in progress at once.
    #[test]
    fn an_exchange_is_a_small_future() {
        let bytes = size(crate::exchange::serve::exchange);
        assert!(bytes <= 1536, "{bytes}");
    }
}
