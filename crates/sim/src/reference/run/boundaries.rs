//! The ends of the parts of a run that is told over time: what is counted there.

use super::Reference;
use crate::state::boundaries::{BoundaryCount, boundary_after, share_of};
use weir_policy::TargetId;

impl Reference<'_> {
    /// Counts at the ends of parts that the clock has passed.
    pub(super) fn pass_boundaries(&mut self, now_ns: u64) {
        while now_ns > self.boundary {
            let at_ns = self.boundary;
            self.boundary = boundary_after(self.code, self.clients.load(), at_ns);
            self.count_at(at_ns);
        }
    }

    /// The run is over: counts at the ends of its last parts.
    pub(super) fn finish_boundaries(&mut self) {
        let slices = self.ledger.aside.as_deref().and_then(|aside| aside.slices.as_ref());
        let Some(ended_ns) = slices.map(|slices| slices.last_end_ns()) else { return };
        let until_ns = self.clients.load().end_ns(self.clients.issued, ended_ns).max(ended_ns);
        self.pass_boundaries(until_ns);
        if std::mem::replace(&mut self.boundary, u64::MAX) < u64::MAX {
            self.count_at(until_ns);
        }
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
