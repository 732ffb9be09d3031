//! How room is made for a client at a limit.
//!
//! Where descriptors are the limit the oldest lingering connection goes first: it was answered. Then the client
//! connection that has been idle for longest is closed, as nginx does: only after a whole answer and
//! [`IDLE_BEFORE_ROOM_NS`] of idleness, read once more before it is closed. First one of the accepting loop, then one
//! of another. Without one the new client waits. That a limit is reached is reported once, with its name.

use crate::threads::admission::Admission;
use crate::threads::event_loop::Loop;
use crate::threads::mail::{IdleScope, ToLoop};
use crate::transport::session::Session;
use std::net::IpAddr;
use std::rc::Rc;
use weir_plan::fixed::IDLE_BEFORE_ROOM_NS;

impl Admission {
    /// A client waits for room at this listener: one that lingers or is idle makes room, if there is one. Returns
    /// whether there is room already.
    pub fn make_room(&self, lp: &Rc<Loop>, listener: usize) -> bool {
        let own = self.clients.is_full();
        let (whose, limits) = match &self.common {
            Some(common) if !own => (IdleScope::Anybody, common),
            _ => (IdleScope::Listener(listener), &self.clients),
        };
        if limits.says(false) {
            let name = lp.listener(listener).map_or_else(String::new, |(listener, _)| listener.name.clone());
            lp.process.errors.limit_reached(|| match whose {
                IdleScope::Anybody => "the limit of clients by open files (half of `ulimit -n`)".to_owned(),
                _ => format!("max_clients of listener {name:?}"),
            });
        }
        make_room(lp, whose)
    }

    /// A client waits for room among those of its address.
    pub fn make_room_for(&self, lp: &Rc<Loop>, listener: usize, address: IpAddr) {
        if self.clients.says(true) {
            let name = lp.listener(listener).map_or_else(String::new, |(listener, _)| listener.name.clone());
            lp.process.errors.limit_reached(|| {
                format!("max_clients_per_address of listener {name:?}, by {}", address.to_canonical())
            });
        }
        make_room(lp, IdleScope::Address(listener, address));
    }
}

/// Closes a connection, here or else on another loop; returns whether its place is free already.
pub(crate) fn make_room(lp: &Rc<Loop>, whose: IdleScope) -> bool {
    if cut_for(lp, whose) {
        return true;
    }
    if !close_idle(lp, whose) {
        // One after another, so that one new client does not cost as many as there are loops.
        let loops = lp.process.loops().max(1);
        let other = (lp.number + 1 + lp.turn() % (loops - 1).max(1)) % loops;
        if other != lp.number {
            lp.process.tell(other, ToLoop::MakeRoom(whose));
        }
    }
    false
}

/// Closes a connection of this loop, if there is one that lingers or is idle.
pub(crate) fn make_room_here(lp: &Loop, whose: IdleScope) {
    let _ = cut_for(lp, whose) || close_idle(lp, whose);
}

/// Closes a descriptor, if there is one that can be spared: of a client that lingers, or else of an idle connection to
/// an origin. It may be free only when the client's task has run.
pub(crate) fn free_descriptor(lp: &Loop) -> bool {
    cut_lingering_short(lp) || lp.targets.close_oldest()
}

/// Ends the oldest lingering close of this loop, if there is one; its descriptor is free when its task has run.
pub(crate) fn cut_lingering_short(lp: &Loop) -> bool {
    let found = lp.longest_lingering(|_| true);
    found.inspect(|session| session.cut_lingering_short()).is_some()
}

/// The same where a place is needed, which is free at once. Those that linger have none among the clients of a listener
/// or an address.
fn cut_for(lp: &Loop, whose: IdleScope) -> bool {
    let found = match whose {
        IdleScope::Anybody => lp.longest_lingering(Session::has_place),
        IdleScope::Listener(_) | IdleScope::Address(..) => None,
    };
    found.inspect(|session| session.cut_lingering_short()).is_some()
}

/// Closes an idle connection of this loop, if there is one.
fn close_idle(lp: &Loop, whose: IdleScope) -> bool {
    let number = |session: &Session| session.listener.number();
    let found = lp.longest_idle(IDLE_BEFORE_ROOM_NS, |session| match whose {
        IdleScope::Anybody => true,
        IdleScope::Listener(listener) => number(session) == Some(listener),
        IdleScope::Address(listener, ip) => {
            number(session) == Some(listener) && session.peer().map(|p| p.ip()) == Some(ip)
        }
    });
    found.inspect(|session| session.end_for_room()).is_some()
}
