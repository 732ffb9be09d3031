//! Connections on their way from the loop that accepted them to another.
//!
//! Once any loop has closed its listening sockets no connection is passed on any more. A loop that drains first waits
//! for connections on their way to it: the sender counts first and then checks whether all is closed; the loop that
//! closes does it in the other order.

use super::admission::Place;
use super::process::Process;
use crate::transport::listening::Accepted;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// A connection on its way to another loop.
pub(crate) struct HandedOver {
    /// The number of its listener.
    pub listener: usize,
    pub accepted: Accepted,
    pub place: Place,
    pub transit: InTransit,
}

/// Connections on their way to each loop.
pub(crate) struct Transits {
    coming: Box<[AtomicU32]>,
    closed: AtomicBool,
}

/// A connection that a loop waits for, until it is known there.
pub(crate) struct InTransit {
    process: Arc<Process>,
    /// The number of the loop.
    pub to: usize,
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
