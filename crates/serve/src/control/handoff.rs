//! Passes an accepted connection to another loop: the system spreads connections over sockets by a hash, which is
//! uneven for few connections, and one loop may get all long-lived ones.
//!
//! A loop passes on what it accepts while it carries more than a quarter and a few more requests than the loop that
//! carries least ([`super::load`]): a connection may carry a hundred. With equal loads it compares the connections of
//! that listener. So with many connections none is moved, and with few the loops differ by a handful at most.
//!
//! Once any loop has closed its listening sockets no connection is passed on any more. A loop that drains first waits
//! for connections on their way to it: the sender counts first and then checks whether all is closed; the loop that
//! closes does it in the other order.

use super::admission::Place;
use super::connection;
use super::event_loop::Loop;
use super::mailbox::ToLoop;
use super::process::Process;
use crate::transport::listening::Accepted;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// A connection on its way to another loop.
pub(crate) struct HandedOver {
    /// The number of its listener.
    listener: usize,
    accepted: Accepted,
    place: Place,
    transit: InTransit,
}

/// Connections on their way to each loop.
pub(crate) struct Transits {
    coming: Box<[AtomicU32]>,
    closed: AtomicBool,
}

/// A connection that a loop waits for, until it is known there.
pub(crate) struct InTransit {
    process: Arc<Process>,
    to: usize,
}

impl Transits {
    /// State for `n` loops.
    pub fn new(loops: usize) -> Transits {
        Transits { coming: (0..loops).map(|_| AtomicU32::new(0)).collect(), closed: AtomicBool::new(false) }
    }

    /// A loop closes its listening sockets, or has ended: from now on no connection is passed on.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
    }

    /// The number of connections on their way to a loop.
    pub fn coming(&self, to: usize) -> usize {
        self.coming.get(to).map_or(0, |n| n.load(SeqCst) as usize)
    }
}

impl InTransit {
    /// Announces a connection to that loop; `None`: none is passed on any more.
    pub fn begin(process: &Arc<Process>, to: usize) -> Option<InTransit> {
        process.transits.coming.get(to)?.fetch_add(1, SeqCst);
        let transit = InTransit { process: process.clone(), to };
        (!process.transits.closed.load(SeqCst)).then_some(transit)
    }
}

impl Drop for InTransit {
    fn drop(&mut self) {
        self.process.transits.coming[self.to].fetch_sub(1, SeqCst);
    }
}

/// Passes a connection to another loop, for which it is counted already.
pub(crate) fn send(lp: &Loop, transit: InTransit, listener: usize, accepted: Accepted, place: Place) {
    let to = transit.to as u32;
    lp.process.tell(to, ToLoop::Client(Box::new(HandedOver { listener, accepted, place, transit })));
}

impl HandedOver {
    /// Serves it here.
    pub fn serve(self, lp: &Rc<Loop>) {
        if let Some((listener, _)) = lp.listener_or_former(self.listener) {
            connection::begin(lp, &listener, self.accepted, Box::new(self.place), Some(self.transit));
        }
    }
}
