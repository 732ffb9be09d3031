//! The ends of the parts of a run with results over time: what is counted there.

use super::Reference;
use crate::state::boundaries::{BoundaryCount, boundary_after, last_instant, share_of};
use weir_policy::TargetId;

impl Reference<'_> {
    /// Counts at the ends of parts before an instant.
    pub(in crate::reference) fn pass_boundaries(&mut self, until_ns: u64) {
        while last_instant(self.clients.source(), self.boundary) < until_ns {
            let at_ns = self.boundary;
            self.boundary = boundary_after(self.code, self.clients.source(), at_ns);
            self.count_at(at_ns);
        }
    }

    /// Where the last arrival is known, the part in which it is ends with it.
    pub(in crate::reference) fn end_last_part(&mut self) {
        if self.boundary < u64::MAX {
            self.boundary = self.boundary.min(self.clients.source().over_ns);
        }
    }

    /// A request arrives that may be the last of a closed loop.
    pub(in crate::reference) fn count_at_arrival(&mut self) {
        if self.boundary < u64::MAX {
            let count = self.counted(self.now_ns);
            self.ledger.aside.iter_mut().for_each(|aside| aside.count_at_arrival(count.clone()));
        }
    }

    /// No event is left: counts at the ends of the last parts.
    pub(super) fn finish_boundaries(&mut self) {
        let over_ns = self.clients.source().over_ns;
        if over_ns < u64::MAX {
            self.pass_boundaries(over_ns + 1);
        }
        self.boundary = u64::MAX;
    }

    /// Counts at the end of a part.
    fn count_at(&mut self, at_ns: u64) {
        let count = self.counted(at_ns);
        if let Some(aside) = self.ledger.aside.as_deref_mut() {
            aside.count(count);
        }
    }

    fn counted(&mut self, at_ns: u64) -> BoundaryCount {
        let (code, balancers) = (self.code, &self.balancers);
        let share = |view: usize, place: u32| {
            let balancer = balancers.get(code.changes.as_deref()?.views.get(view)?.instance as usize)?;
            let target = balancer.seen.as_ref()?.target(place)?;
            Some(share_of(&balancer.upstream, TargetId(target)))
        };
        let (connections, watch) = (self.connections.as_deref_mut(), self.changes.watch.as_deref_mut());
        BoundaryCount::new(code, connections, watch, at_ns, share)
    }
}
