//! The ends of the parts of a run that is told over time: what is counted there.

use super::{Engine, FeatureStates};
use crate::state::boundaries::{BoundaryCount, boundary_after, share_of};
use weir_policy::TargetId;

impl Engine<'_> {
    /// Counts at the ends of parts that the clock has passed.
    pub(super) fn pass_boundaries(&mut self, now_ns: u64) {
        while now_ns > self.core.boundary {
            let at_ns = self.core.boundary;
            self.core.boundary = boundary_after(self.core.code, &self.core.source.load, at_ns);
            self.count_at(at_ns);
        }
    }

    /// The run is over: counts at the ends of its last parts.
    pub(super) fn finish_boundaries(&mut self) {
        let slices = self.core.ledger.aside.as_deref().and_then(|aside| aside.slices.as_ref());
        let Some(ended_ns) = slices.map(|slices| slices.last_end_ns()) else { return };
        let until_ns = self.core.source.load.end_ns(self.core.issued, ended_ns).max(ended_ns);
        self.pass_boundaries(until_ns);
        if std::mem::replace(&mut self.core.boundary, u64::MAX) < u64::MAX {
            self.count_at(until_ns);
        }
    }

    /// Counts at the end of a part.
    fn count_at(&mut self, at_ns: u64) {
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
        let count =
            BoundaryCount::new(code, connections.as_deref_mut(), changes.watch.as_deref_mut(), at_ns, share);
        if let Some(aside) = &mut self.core.ledger.aside {
            aside.count(count);
        }
    }
}
