//! Clients behind a balancer that sends PROXY headers (`proxy_from`): from such a peer, possibly on a Unix socket, a
//! header is mandatory, and limits by address count the client that it names.

use crate::metrics::Limit;
use crate::threads::admission::Place;
use crate::threads::event_loop::Loop;
use crate::transport::proxy_protocol::{self, ProxyError};
use crate::transport::session::Session;
use std::any::Any;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_net::transport::wire::Wire;
use weir_plan::fixed;

/// Reads the client's address, if its peer sends it; `false`: the connection ends here.
pub(crate) async fn learn(lp: &Rc<Loop>, session: &Rc<Session>, wire: &mut Wire) -> bool {
    let peer = session.peer();
    if !session.listener.proxy_from.trusts(peer.map(|p| p.ip())) {
        return true;
    }
    match proxy_protocol::read(session, wire).await {
        Ok(said) => {
            let Some(client) = said.client.or(peer) else { return true };
            session.set_client(client, said.local);
            wait_for_place(lp, session, client).await
        }
        Err(ProxyError::Nothing) => false,
        Err(wrong) => {
            let name = &session.listener.name;
            let who = peer.map_or_else(|| "a local client".to_owned(), |peer| peer.to_string());
            lp.process.errors.request_failed(|| format!("listener {name:?}: {who} is cut off: {wrong}"));
            false
        }
    }
}

/// Counts a client among those of its address; one too many waits until another of them leaves.
async fn wait_for_place(lp: &Rc<Loop>, session: &Session, client: SocketAddr) -> bool {
    let place = session.take_place().and_then(|place| (place as Box<dyn Any>).downcast::<Place>().ok());
    let Some((Place { mut own, common }, number)) = place.map(|p| *p).zip(session.listener.number()) else {
        return true;
    };
    let Some((_, admission)) = lp.listener(number) else { return true };
    let patience_ns = session.listener.http.head_timeout_ns;
    let end_ns = patience_ns.map_or(u64::MAX, |ns| lp.core.now().saturating_add(ns));
    let mut is_first = true;
    loop {
        own = match own.with_address(client.ip()) {
            Ok(own) => {
                session.set_place(Box::new(Place { own, common }));
                return true;
            }
            Err(own) => own,
        };
        if std::mem::take(&mut is_first) {
            lp.state.metrics.limits.one(Limit::MaxClientsPerAddress);
        }
        if lp.core.now() >= end_ns || session.is_draining() {
            return false;
        }
        admission.make_room_for(lp, number, client.ip());
        lp.core.timers.after(fixed::ACCEPT_PAUSE_NS / 10).await;
    }
}
