//! The ends of the parts of a run with results over time: what is counted there.

use super::{Engine, FeatureStates};
use crate::state::boundaries::{BoundaryCount, boundary_after, share_of};
use weir_policy::TargetId;

impl Engine<'_> {
    /// Counts at the end of the part that goes on.
    pub(super) fn pass_boundary(&mut self) {
        let at_ns = self.core.boundary;
        self.core.boundary = boundary_after(self.core.code, &self.core.source, at_ns);
        self.count_at(at_ns);
    }

    /// The last arrival is known: the part in which it is ends with it.
    #[cold]
    pub(super) fn end_last_part(&mut self) {
        self.core.boundary = self.core.boundary.min(self.core.source.over_ns);
    }

    /// A request arrives that may be the last of a closed loop.
    pub(crate) fn count_at_arrival(&mut self, now_ns: u64) {
        if self.core.boundary < u64::MAX {
            let count = self.counted(now_ns);
            self.core.ledger.aside.iter_mut().for_each(|aside| aside.count_at_arrival(count.clone()));
        }
    }

    /// No event is left: counts at the ends of the last parts.
    pub(super) fn finish_boundaries(&mut self) {
        while self.core.boundary <= self.core.source.over_ns && self.core.source.over_ns < u64::MAX {
            self.pass_boundary();
        }
        self.core.boundary = u64::MAX;
    }

    /// Counts at the end of a part.
    fn count_at(&mut self, at_ns: u64) {
        let count = self.counted(at_ns);
        if let Some(aside) = &mut self.core.ledger.aside {
            aside.count(count);
        }
    }

    fn counted(&mut self, at_ns: u64) -> BoundaryCount {
        let code = self.core.code;
        let FeatureStates { connections, changes, guards, .. } = &mut self.features;
        let balancers = &self.core.balancers;
        let share = |view: usize, place: u32| {
            let instance = code.changes.as_deref()?.views.get(view)?.instance as usize;
            if let Some(Some(guard)) = guards.of.get(instance) {
                return guard.at_place(TargetId(place)).map(|target| share_of(&guard.upstream, target));
            }
            balancers.get(instance)?.seen.as_ref()?.target(place).map(|_| 1.0)
        };
        BoundaryCount::new(code, connections.as_deref_mut(), changes.watch.as_deref_mut(), at_ns, share)
    }
}
