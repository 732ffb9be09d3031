//! From an accepted socket to a connection on its loop: limits of clients, TLS, the protocol.
//!
//! Accepting is a task for each listener of a loop. Without descriptors it pauses, and never spins; at a limit an idle
//! client makes room. For clients that still wait as the listening sockets close see [`pending_clients`].

pub(crate) mod connection;
pub(crate) mod drain;
mod handshake;
pub(crate) mod loop_assignment;
mod pending_clients;
mod protocol;
mod proxy_header;
pub(crate) mod room;

use crate::metrics::Limit;
use crate::sync::buffered;
use crate::threads::admission::{Admission, Place};
use crate::threads::event_loop::Loop;
use crate::threads::mail::{IdleScope, ToLoop};
use crate::threads::transit::InTransit;
use crate::transport::listener::Listener;
use crate::transport::listening::{Accepted, ListeningSocket};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::runtime::Acceptor;
use weir_plan::fixed;

/// Accepts from now on, in a task that the loop's drain waits for.
pub(crate) fn begin(lp: &Rc<Loop>, number: usize, socket: ListeningSocket) {
    let level = lp.listener(number).map_or(0, |(listener, _)| listener.level);
    let socket = Rc::new(socket);
    lp.listens(number, &socket);
    let task = lp.needs("accepting", run(lp.clone(), number, socket));
    lp.accepting.borrow_mut().push((level, task));
}

/// Accepts until the loop closes its listening sockets; clients that wait then are still let in.
async fn run(lp: Rc<Loop>, number: usize, socket: Rc<ListeningSocket>) {
    let Some((mut listener, mut admission)) = lp.listener(number) else { return };
    let (mut first, level) = (None, listener.level);
    let mut closing = lp.closing.subscribe();
    let mut closes = std::pin::pin!(closing.wait_for(|closing| closing.has(number, level)));
    loop {
        let accepted = poll_fn(|cx| match socket.poll_accept(cx) {
            Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
            Poll::Pending => closes.as_mut().poll(cx).map(|_| None),
        });
        match accepted.await {
            None => break,
            Some(Ok(accepted)) => {
                // It may have other limits by now.
                if let Some(now) = lp.listener(number) {
                    (listener, admission) = now;
                }
                // A client that was accepted is let in before those that still wait before the socket.
                let mut place = admission.take_place();
                if place.is_none() {
                    lp.state.metrics.limits.one(admission.limit());
                }
                while place.is_none() {
                    if !admission.make_room(&lp, number)
                        && !pauses(&lp, socket.acceptor(), closes.as_mut()).await
                    {
                        break;
                    }
                    place = admission.take_place();
                }
                // Requests that are waiting already go first.
                if buffered::is_over_limit() {
                    lp.state.metrics.limits.one(Limit::Buffered);
                }
                while buffered::is_over_limit() && pauses(&lp, socket.acceptor(), closes.as_mut()).await {}
                let Some(place) = place else {
                    first = Some(accepted);
                    break;
                };
                let ends = lp.core.is_reserved(&accepted.socket)
                    && !leave_reserve(&lp)
                    && !pauses(&lp, socket.acceptor(), closes.as_mut()).await;
                let_in(&lp, &listener, &admission, accepted, place);
                if ends {
                    break;
                }
            }
            // A connection that broke before it was accepted is not a reason to wait.
            Some(Err(e)) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Some(Err(e)) => {
                lp.process.errors.cannot_accept(&e);
                lp.state.metrics.limits.one(Limit::Descriptors);
                // Descriptors held by idle connections may be freed.
                if !room::free_descriptor(&lp) {
                    room::make_room(&lp, IdleScope::Anybody);
                }
                if !pauses(&lp, socket.acceptor(), closes.as_mut()).await {
                    break;
                }
            }
        }
    }
    pending_clients::begin(&lp, number, listener, admission, socket, first);
}

/// An accepted connection has taken a descriptor of the reserve, which is for reloads, administration, logs and checks:
/// a connection that can be spared is closed for it. Returns whether this loop had one.
fn leave_reserve(lp: &Rc<Loop>) -> bool {
    lp.state.metrics.limits.one(Limit::Descriptors);
    lp.process.note_reserve();
    if room::free_descriptor(lp) {
        return true;
    }
    lp.process.tell_others(lp.number, || ToLoop::CloseOldest);
    room::make_room(lp, IdleScope::Anybody)
}

/// Serves an accepted connection, here or on the loop that carries least.
fn let_in(lp: &Rc<Loop>, listener: &Rc<Listener>, admission: &Admission, accepted: Accepted, place: Place) {
    let me = lp.number as usize;
    let lightest = admission.clients.lightest(me, |on| lp.process.carries(on));
    let transit = if lightest == me { None } else { InTransit::begin(&lp.process, lightest) };
    let on = transit.as_ref().map_or(me, |_| lightest);
    let Place { own, common } = place;
    // Behind a balancer that sends PROXY headers, clients are counted once their address is known.
    let address = accepted.peer.map(|p| p.ip()).filter(|ip| !listener.proxy_from.contains(*ip));
    match (own.on(address, on), address) {
        (Ok(own), _) => {
            let place = Place { own, common };
            match transit {
                None => connection::begin(lp, listener, accepted, Box::new(place), None),
                Some(transit) => {
                    let number = listener.number().unwrap_or_default();
                    loop_assignment::send(lp, transit, number, accepted, place);
                }
            }
        }
        // One client too many of an address waits until another of that address leaves.
        (Err(own), Some(_)) => {
            drop(transit);
            lp.state.metrics.limits.one(Limit::MaxClientsPerAddress);
            let waits = wait_for_address(lp.clone(), listener.clone(), accepted, Place { own, common });
            lp.core.runtime.spawn(waits);
        }
        (Err(_), None) => {}
    }
}

/// Queues a client behind the others of its address. It counts as connected meanwhile.
async fn wait_for_address(lp: Rc<Loop>, listener: Rc<Listener>, accepted: Accepted, place: Place) {
    let (Some(number), Some(peer)) = (listener.number(), accepted.peer) else { return };
    let Some((_, admission)) = lp.listener(number) else { return };
    let _waits = lp.clients_wait();
    let Place { mut own, common } = place;
    let end_ns = listener.http.head_timeout_ns.map_or(u64::MAX, |ns| lp.core.now().saturating_add(ns));
    while lp.core.now() < end_ns {
        admission.make_room_for(&lp, number, peer.ip());
        lp.core.timers.after(fixed::ACCEPT_PAUSE_NS / 10).await;
        match own.on(Some(peer.ip()), lp.number as usize) {
            Ok(own) => {
                return connection::begin(&lp, &listener, accepted, Box::new(Place { own, common }), None);
            }
            Err(again) => own = again,
        }
    }
}

/// Pauses for a moment; `false` if the listening sockets close meanwhile.
async fn pauses(lp: &Loop, acceptor: &Acceptor, mut closes: Pin<&mut impl Future>) -> bool {
    acceptor.quiet();
    let mut sleep = lp.core.timers.after(fixed::ACCEPT_PAUSE_NS / 10);
    poll_fn(|cx| match closes.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(false),
        Poll::Pending => sleep.poll_ended(cx).map(|()| true),
    })
    .await
}
