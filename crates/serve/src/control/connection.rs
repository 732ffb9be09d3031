//! A client's connection on its loop: from when it was accepted, or handed over, to its end.

use super::event_loop::Loop;
use super::handoff::InTransit;
use super::handshake;
use crate::exchange::serve::serve;
use crate::exchange::{Bound, ClientEnd};
use crate::h1::server::{self, After, Handler, Stream};
use crate::transport::listener::Listener;
use crate::transport::listening::Accepted;
use crate::transport::session::Session;
use std::any::Any;
use std::future::Future;
use std::rc::Rc;
use weir_http1::Request;

/// Answers the requests of one connection: each in the graph that is its loop's as it comes.
struct Requests {
    lp: Rc<Loop>,
    session: Rc<Session>,
    bound: Rc<Bound>,
}

impl Handler for Requests {
    fn exchange(
        &self,
        stream: Stream,
        request: Box<Request>,
        last: bool,
    ) -> impl Future<Output = After> + use<> + 'static {
        let (core, bound) = (self.lp.core.clone(), self.bound.clone());
        let graph = self.lp.graph().cloned();
        let entry = self.session.listener.entry;
        async move {
            // Nobody comes in before there is a graph.
            let Some(graph) = graph else { return After::Abort };
            let node = graph.entry(entry);
            serve(core, (graph, node), (ClientEnd::H1(stream), bound), request, last).await
        }
    }
}

/// Serves an accepted connection in a task of its own. `place`: what counts it; `transit`: what its loop waits for it by.
pub(crate) fn begin(
    lp: &Rc<Loop>,
    listener: &Rc<Listener>,
    accepted: Accepted,
    place: Box<dyn Any>,
    transit: Option<InTransit>,
) {
    let core = &lp.core;
    // What cannot be watched is closed, as what cannot be accepted is.
    let Ok(socket) = accepted.socket.watch(&core.runtime) else { return };
    let deadline = core.deadlines.add();
    let session = Rc::new(Session::new(listener.clone(), accepted.peer, deadline, core.is_draining(), place));
    let bound = Rc::<Bound>::default();
    let known = lp.know(session.clone(), bound.clone());
    // The loop knows it now, and counts it itself.
    drop(transit);
    let handler = Requests { lp: lp.clone(), session: session.clone(), bound };
    let core = core.clone();
    core.clone().runtime.spawn(async move {
        let _known = known;
        let socket = match &session.listener.tls {
            None => Some(socket),
            // Boxed, so that the connection does not carry the place for it to its end.
            Some(tls) => Box::pin(handshake::secured(&core, &session, tls, socket)).await,
        };
        if let Some(socket) = socket {
            server::serve(&core, session.clone(), socket, handler).await;
        }
        session.give_up_place();
    });
}
