//! The ends of the parts of a run that is told over time: what is counted there.

use super::{Engine, FeatureStates};
use crate::state::boundaries::{BoundaryCount, boundary_after, last_boundary, share_of};
use weir_policy::TargetId;

impl Engine<'_> {
    /// Counts at the ends of parts that the clock has passed.
    pub(super) fn pass_boundaries(&mut self, now_ns: u64) {
        while now_ns > self.core.boundary {
            let at_ns = self.core.boundary;
            self.core.boundary = boundary_after(self.core.code, &self.core.source, at_ns);
            self.count_at(at_ns);
        }
    }

    /// The last arrival is known: the part in which it is ends with it.
    #[cold]
    pub(crate) fn end_last_part(&mut self) {
        if self.core.boundary < u64::MAX {
            self.core.boundary = self.core.boundary.min(self.core.source.over_ns);
            self.core.mark = self.core.mark.min(self.core.boundary);
        }
    }

    /// The run is over: counts at the ends of its last parts.
    pub(super) fn finish_boundaries(&mut self) {
        if self.core.boundary < u64::MAX
            && let Some(end_ns) = last_boundary(&self.core.source)
        {
            self.pass_boundaries(end_ns);
            if self.core.boundary < u64::MAX {
                self.count_at(end_ns);
            }
        }
        self.core.boundary = u64::MAX;
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
