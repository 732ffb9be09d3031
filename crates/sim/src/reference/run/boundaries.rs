//! The ends of the parts of a run that is told over time: what is counted there.

use super::Reference;
use crate::state::boundaries::{BoundaryCount, boundary_after, last_boundary, share_of};
use weir_policy::TargetId;

impl Reference<'_> {
    /// Counts at the ends of parts that the clock has passed.
    pub(super) fn pass_boundaries(&mut self, now_ns: u64) {
        while now_ns > self.boundary {
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

    /// The run is over: counts at the ends of its last parts.
    pub(super) fn finish_boundaries(&mut self) {
        if self.boundary < u64::MAX
            && let Some(end_ns) = last_boundary(self.clients.source())
        {
            self.pass_boundaries(end_ns);
            if self.boundary < u64::MAX {
                self.count_at(end_ns);
            }
        }
        self.boundary = u64::MAX;
    }

    /// Counts at the end of a part.
    fn count_at(&mut self, at_ns: u64) {
        let (code, balancers) = (self.code, &self.balancers);
        let share = |view: usize, place: u32| {
            let balancer = balancers.get(code.changes.as_deref()?.views.get(view)?.instance as usize)?;
            let target = balancer.seen.as_ref()?.target(place)?;
            Some(share_of(&balancer.upstream, TargetId(target)))
        };
        let (connections, watch) = (self.connections.as_deref_mut(), self.changes.watch.as_deref_mut());
        let count = BoundaryCount::new(code, connections, watch, at_ns, share);
        if let Some(aside) = self.ledger.aside.as_deref_mut() {
            aside.count(count);
        }
    }
}
