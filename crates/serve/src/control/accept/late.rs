//! Those who came before the doors closed and found no place: they get one as others go, until the drain's timeout.
//!
//! A door should close soon, so that nobody new comes and a successor can bind. So they are taken out of the system's queue
//! and wait here, as far as an eighth of the descriptors goes: the others are needed for the connections behind those who are
//! served. Where that is not enough, the door stays open for as long.

use crate::control::accept::{Accepted, Door, let_in};
use crate::control::clients;
use crate::control::event_loop::Loop;
use crate::transport::listener::Listener;
use std::collections::VecDeque;
use std::rc::Rc;

/// How often it is looked whether there is a place, ns.
const LOOK_NS: u64 = 5_000_000;

/// The part of the descriptors that they may have.
const SHARE: usize = 8;

struct Late {
    listener: Rc<Listener>,
    waiting: VecDeque<Accepted>,
    /// How many may wait here.
    most: usize,
    /// Open until nobody is left before it.
    door: Option<Door>,
}

/// Lets in all that wait before a door, and closes it: at once, or in a task for which the loop waits. `first`: who was
/// accepted and found no place.
pub(super) fn begin(lp: &Rc<Loop>, listener: Rc<Listener>, door: Door, first: Option<Accepted>) {
    // It is looked at by the clock from now on.
    door.acceptor.quiet();
    let most = clients::descriptors() / SHARE / lp.process.loops().max(1) as usize;
    let mut late = Late { listener, waiting: first.into_iter().collect(), most, door: Some(door) };
    if late.look(lp) {
        return;
    }
    let (own, waits) = (lp.clone(), lp.clients_wait());
    lp.runtime.spawn(async move {
        let _waits = waits;
        let mut has_last = false;
        // Those who were let in last are not known to the loop yet.
        while !std::mem::replace(&mut has_last, late.look(&own)) {
            own.timers.after(LOOK_NS).await;
        }
    });
}

impl Late {
    /// Lets in whom there is a place for; whether nobody is left.
    fn look(&mut self, lp: &Rc<Loop>) -> bool {
        self.take_in(lp);
        while !self.waiting.is_empty() {
            let Some(place) = self.listener.take_place() else { return false };
            if let Some((socket, peer)) = self.waiting.pop_front() {
                let_in(lp, &self.listener, socket, peer, place);
            }
            self.take_in(lp);
        }
        self.door.is_none()
    }

    /// Takes those in who wait before the door; closes it after the last.
    fn take_in(&mut self, lp: &Loop) {
        while let Some(door) = &self.door {
            if self.waiting.len() > self.most {
                return;
            }
            match door.next() {
                Ok(Some(one)) => self.waiting.push_back(one),
                Ok(None) => self.door = None,
                Err(e) => return lp.process.words.cannot_accept(&e),
            }
        }
    }
}
