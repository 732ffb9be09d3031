//! Passes an accepted connection to another loop: the system spreads connections over sockets by a hash, which is
//! uneven for few connections, and one loop may get all long-lived ones.
//!
//! A loop passes on what it accepts while it carries more than a quarter and a few more requests than the loop that
//! carries least ([`crate::threads::load`]): a connection may carry a hundred. With equal loads it compares the
//! connections of that listener. So with many connections none is moved, and with few the loops differ by a handful at
//! most. Where a balancer behind the listener has a subset, what a loop carries is what its targets get: there each
//! connection goes to the loop that has fewest.

use super::connection;
use crate::threads::admission::Place;
use crate::threads::event_loop::Loop;
use crate::threads::mail::ToLoop;
use crate::threads::transit::{HandedOver, InTransit};
use crate::transport::listening::Accepted;
use std::rc::Rc;

/// Passes a connection to another loop, for which it is counted already.
pub(super) fn send(lp: &Loop, transit: InTransit, listener: usize, accepted: Accepted, place: Place) {
    let to = transit.to as u32;
    lp.process.tell(to, ToLoop::Client(Box::new(HandedOver { listener, accepted, place, transit })));
}

/// Serves a connection here that another loop has accepted.
pub(crate) fn serve(lp: &Rc<Loop>, client: HandedOver) {
    if let Some((listener, _)) = lp.listener_or_former(client.listener) {
        connection::begin(lp, &listener, client.accepted, Box::new(client.place), Some(client.transit));
    }
}
