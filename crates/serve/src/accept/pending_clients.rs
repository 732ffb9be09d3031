//! Clients that connected before the listening sockets closed and found no room: they are let in as others leave,
//! until the drain's timeout.
//!
//! A listening socket should close soon, so that no new client comes and a successor can bind. So waiting clients are
//! taken out of the system's queue and wait here, up to an eighth of the descriptors: the others are needed for the
//! upstream connections of clients being served. If that is not enough, the socket stays open longer.

use super::let_in;
use crate::threads::admission::Admission;
use crate::threads::event_loop::Loop;
use crate::transport::listener::Listener;
use crate::transport::listening::{Accepted, ListeningSocket};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use weir_net::io::system::descriptors;

/// How often room is looked for, ns.
const LOOK_NS: u64 = 5_000_000;

/// The part of the descriptors that they may have.
const SHARE: usize = 8;

struct PendingClients {
    number: usize,
    listener: Rc<Listener>,
    admission: Admission,
    waiting: VecDeque<Accepted>,
    /// The most clients that may wait here.
    most: usize,
    /// Open until no client is left before it.
    socket: Option<Rc<ListeningSocket>>,
}

/// Lets in all clients that wait before a listening socket, and closes it: at once, or in a task for which the loop
/// waits. `first`: a client that was accepted and found no room.
pub(super) fn begin(
    lp: &Rc<Loop>,
    number: usize,
    listener: Rc<Listener>,
    admission: Admission,
    socket: Rc<ListeningSocket>,
    first: Option<Accepted>,
) {
    // From now on the clock looks at it.
    socket.acceptor().quiet();
    let most = descriptors() / SHARE / lp.process.loops().max(1) as usize;
    let waiting = first.into_iter().collect();
    // Clients waiting there belong to another process, if one accepts in this one's place.
    let socket = Some(socket).filter(|_| !lp.process.replaced.load(Relaxed));
    let mut late = PendingClients { number, listener, admission, waiting, most, socket };
    if late.look(lp) {
        return;
    }
    let (own, waits) = (lp.clone(), lp.clients_wait());
    lp.core.runtime.spawn(async move {
        let _waits = waits;
        let mut has_last = false;
        // The loop does not know the clients that were let in last yet.
        while !std::mem::replace(&mut has_last, late.look(&own)) {
            own.core.timers.after(LOOK_NS).await;
        }
    });
}

impl PendingClients {
    /// Lets in the clients that there is room for; whether none is left.
    fn look(&mut self, lp: &Rc<Loop>) -> bool {
        self.take_in(lp);
        while !self.waiting.is_empty() {
            let Some(place) = self.admission.take_place() else {
                if self.admission.make_room(lp, self.number) {
                    continue;
                }
                return false;
            };
            if let Some(accepted) = self.waiting.pop_front() {
                let_in(lp, &self.listener, &self.admission, accepted, place);
            }
            self.take_in(lp);
        }
        self.socket.is_none()
    }

    /// Accepts the clients that wait before the socket; closes it after the last.
    fn take_in(&mut self, lp: &Loop) {
        while let Some(socket) = &self.socket {
            if self.waiting.len() > self.most {
                return;
            }
            match socket.next() {
                Ok(Some(one)) => self.waiting.push_back(one),
                Ok(None) => self.socket = None,
                Err(e) => return lp.process.errors.cannot_accept(&e),
            }
        }
    }
}
