//! A client's connection on its loop: from when it was accepted, or received from another loop, to its end.

use crate::accept::handshake;
use crate::accept::protocol::{self, Protocol};
use crate::accept::proxy_header;
use crate::exchange::serve::{begin_exchange, serve};
use crate::exchange::{ClientEnd, PinnedConnection};
use crate::h1;
use crate::h2;
use crate::message::Disposition;
use crate::metrics::Parting;
use crate::sync::panics::{Panicked, caught};
use crate::threads::event_loop::Loop;
use crate::threads::transit::InTransit;
use crate::transport::inner::is_own;
use crate::transport::listener::Listener;
use crate::transport::listening::Accepted;
use crate::transport::session::{ClientPlace, Ending, Session};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use weir_http1::Request;
use weir_net::transport::socket::Raw;
use weir_net::transport::wire::Wire;

/// Answers the requests of one connection: each in the graph that its loop has at that time.
struct Requests {
    lp: Rc<Loop>,
    session: Rc<Session>,
    pinned: Rc<PinnedConnection>,
    /// Counts an expected request, until the first has come.
    fresh: Cell<Option<CarriedConnection>>,
}

/// A request in progress, or a client that will send one soon: its loop carries it until it is dropped.
struct CarriedConnection(Rc<Loop>);

impl CarriedConnection {
    fn new(lp: &Rc<Loop>) -> CarriedConnection {
        lp.process.loads.begins(lp.number);
        CarriedConnection(lp.clone())
    }
}

impl Drop for CarriedConnection {
    fn drop(&mut self) {
        self.0.process.loads.ends(self.0.number);
    }
}

impl Requests {
    /// Answers a request; the future holds `held` until it has ended.
    fn exchange<T: 'static>(
        &self,
        held: T,
        client: ClientEnd,
        request: Box<Request>,
        last: bool,
    ) -> impl Future<Output = Disposition> + use<T> + 'static {
        let begun = self.lp.graph_of(self.session.listener.entry).and_then(|(graph, node)| {
            let (core, pinned) = (self.lp.core.clone(), self.pinned.clone());
            // A connection of HTTP/2 outlives a panic of one request.
            let begun = caught(|| begin_exchange(core, &graph, client, pinned, request, last));
            let counts = &self.session.listener.counts;
            Some((begun.inspect_err(|Panicked| counts.panics.one()).ok()?, graph, node))
        });
        let carried = self.fresh.take().unwrap_or_else(|| CarriedConnection::new(&self.lp));
        async move {
            let _held = (carried, held);
            // No client comes in before there is a graph, so that its beginning has panicked.
            let Some((begun, graph, node)) = begun else { return Disposition::Abort };
            serve(begun, graph, node).await
        }
    }
}

impl h1::server::Handler for Requests {
    fn exchange(
        &self,
        stream: h1::server::Stream,
        request: Box<Request>,
        last: bool,
    ) -> impl Future<Output = Disposition> + use<> + 'static {
        self.exchange((), ClientEnd::H1(stream), request, last)
    }
}

impl h2::server::Handler for Requests {
    fn exchange(
        &self,
        open: h2::server::Open,
        stream: h2::server::Stream,
        request: Box<Request>,
    ) -> impl Future<Output = Disposition> + use<> + 'static {
        let stream = self.lp.core.reuse.put(stream);
        self.exchange(open, ClientEnd::H2(stream), request, false)
    }
}

/// Serves an accepted connection in a task of its own. `place`: its count; `transit`: by which its loop waits for it.
pub(crate) fn begin(
    lp: &Rc<Loop>,
    listener: &Rc<Listener>,
    accepted: Accepted,
    place: Box<dyn ClientPlace>,
    transit: Option<InTransit>,
) {
    let core = &lp.core;
    let is_own = listener.inner.is_some() && matches!(&accepted.socket, Raw::Unix(socket) if is_own(socket));
    // A connection that cannot be watched is closed, like one that cannot be accepted.
    let Ok(socket) = accepted.socket.watch(&core.runtime) else { return };
    socket.extend_user_timeout(listener.http.write_timeout_ns, lp.core.tcp.user_timeout_ns);
    let deadline = core.deadlines.add();
    // The address that the client connected to is needed only if origins receive it.
    let local = accepted.peer.and_then(|_| socket.local());
    let ending = lp.ending_at(listener);
    let session = Rc::new(Session::new(listener.clone(), accepted.peer, local, deadline, ending, place));
    if is_own {
        session.mark_own();
    }
    listener.counts.accepted.one();
    let pinned = Rc::<PinnedConnection>::default();
    let known = lp.know(session.clone(), pinned.clone());
    let fresh = Cell::new(Some(CarriedConnection::new(lp)));
    // The loop knows it now, and counts it itself.
    drop(transit);
    let handler = Requests { lp: lp.clone(), session: session.clone(), pinned, fresh };
    let wire = Wire::new(socket, core.buffers.clone());
    let greeting = Box::pin(greet(lp.clone(), session.clone(), wire));
    lp.core.runtime.spawn(async move {
        let _known = known;
        // Each in an allocation of its own: a connection keeps no memory for phases that it has passed, or never
        // reaches.
        if let Some(serving) =
            greeting.await.and_then(|(protocol, wire)| serving(protocol, wire, &session, handler))
        {
            until_cut(&session, serving).await;
        }
        session.listener.counts.closed.one(session.parting.get());
        session.give_up_place();
    });
}

/// Serves until the end, or until the time of a drain is over.
async fn until_cut(session: &Session, mut serving: Pin<Box<dyn Future<Output = ()>>>) {
    poll_fn(|cx| {
        session.set_task(cx.waker());
        if session.ending() == Ending::Ended { Poll::Ready(()) } else { serving.as_mut().poll(cx) }
    })
    .await;
}

/// The rest of a connection on which this protocol is spoken.
fn serving(
    protocol: Protocol,
    wire: Wire,
    session: &Rc<Session>,
    handler: Requests,
) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
    let (core, session) = (handler.lp.core.clone(), session.clone());
    match protocol {
        Protocol::H1 => Some(Box::pin(h1::server::serve(core, session, wire, handler))),
        Protocol::H2 => Some(Box::pin(h2::server::serve(core, session, wire, handler))),
        Protocol::None => None,
    }
}

/// Everything before requests: the client's address, TLS, the protocol.
async fn greet(lp: Rc<Loop>, session: Rc<Session>, mut wire: Wire) -> Option<(Protocol, Wire)> {
    session.parting.set(Parting::Greeting);
    if !proxy_header::learn(&lp, &session, &mut wire).await {
        return None;
    }
    let mut wire = handshake::perhaps(&lp.core, &session, wire).await?;
    session.parting.set(Parting::Client);
    Some((protocol::choose(&lp.core, &session, &mut wire).await, wire))
}
