//! Subsets of the targets that loops prefer: kept by the balancer for all of its loops, or received by a loop that has a
//! balancer of its own.

use super::Upstream;
use crate::config::Subset;
use crate::subset::Subsets;
use crate::{SubsetTable, TargetId, TargetNames};
use weir_stats::Key;

impl Upstream {
    /// Divides the targets among the loops and follows their changes from now on. For a balancer with all loops, of
    /// which the first has the number 0; loops that are added later have the next ones. `loops`: by how many the subsets
    /// are divided; `key`: that of the instance; `names`: of all targets, by index, for [`Subset::uses_names`].
    ///
    /// The policy must take subsets ([`crate::config::Balance::takes_subsets`]).
    pub fn keep_subsets(
        &mut self,
        now_ns: u64,
        subset: Subset,
        loops: u32,
        names: impl Into<TargetNames>,
        key: Key,
    ) {
        let roster = self.roster();
        let exists: Vec<bool> = TargetId::all(roster.len()).map(|target| roster.exists(target)).collect();
        let subsets = Subsets::new(subset, loops, key, &exists, &names.into());
        self.prefer(now_ns, subsets.table(), 0);
        self.subsets = Some(Box::new(subsets));
    }

    /// Prefers the subset of loop `on`, as the owner of the process's subsets has divided the targets
    /// ([`Subsets::table`]). With changes of the targets the new table comes first: the policy follows a second time only
    /// where targets that stay are shown or hidden.
    pub fn follow_subsets(&mut self, now_ns: u64, table: &SubsetTable, on: u32) {
        self.subsets = None;
        self.prefer(now_ns, table, on);
    }

    /// Prefers no target to another from now on.
    pub fn drop_subsets(&mut self, now_ns: u64) {
        self.subsets = None;
        self.loops.all_mut().for_each(|own| own.prefer_none(now_ns));
        self.simplify();
    }

    fn prefer(&mut self, now_ns: u64, table: &SubsetTable, first: u32) {
        debug_assert!(self.ramps, "a policy that hashes takes no subset");
        for (on, own) in (first..).zip(self.loops.all_mut()) {
            own.prefer(now_ns, table, on);
        }
        self.simplify();
    }

    /// The subsets, if the loops prefer any.
    pub fn subsets(&self) -> Option<&SubsetTable> {
        self.loops.first.preference.as_ref().map(|preference| preference.table())
    }

    /// How many targets have come into another subset although they stayed ([`Subsets::moves`]), where they are kept here.
    pub fn subset_moves(&self) -> u64 {
        self.subsets.as_ref().map_or(0, |subsets| subsets.moves())
    }

    /// Picks of targets outside of the loop's subset, on all loops: where no target inside would do, and where a cookie
    /// said so.
    pub fn borrowed(&self) -> u64 {
        self.loops
            .all()
            .filter_map(|own| own.preference.as_ref())
            .map(|preference| preference.borrowed())
            .sum()
    }
}
