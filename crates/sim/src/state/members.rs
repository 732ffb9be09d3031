//! The engine's state of a balancer and of a member of a pool.

use crate::code::changes::SeenTargets;
use crate::code::{Code, Target, Targets};
use crate::state::deferred::Deferred;
use weir_model::queue::Queue;
use weir_policy::retry::{BalancerId, TriedTargets};
use weir_policy::{Balancer, TargetId};
use weir_stats::Key;

/// A balancer in virtual time.
pub(crate) struct Instance {
    pub balancer: Balancer,
    /// The key of its picks.
    pub picks: Key,
    /// All that ever are.
    pub targets: Targets,
    /// The place of each target among them, where they change.
    pub seen: Option<Box<SeenTargets>>,
    /// Requests that will have returned before its next pick.
    pub deferred: Deferred,
}

impl Instance {
    /// Where a target is.
    #[inline(always)]
    pub fn target(&self, code: &Code, target: TargetId) -> Target {
        self.targets.get(code, self.place(target))
    }

    /// The place of a target in the list of all that ever are.
    #[inline(always)]
    pub fn place(&self, target: TargetId) -> u32 {
        self.seen.as_ref().map_or(target.0, |seen| seen.place(target.0))
    }

    /// Processes all returns before a turn.
    #[inline(always)]
    pub fn take_returns(&mut self, turn: (u64, u64)) {
        while let Some(target) = self.deferred.before(turn) {
            self.balancer.release(target);
        }
    }

    /// A pick for a request that has tried targets before.
    #[cold]
    #[inline(never)]
    pub fn pick_anew(
        &mut self,
        draw: Key,
        tried: &TriedTargets,
        own: BalancerId,
        excluded: &mut Vec<TargetId>,
    ) -> Option<TargetId> {
        tried.add_to(own, excluded);
        self.balancer.pick(draw, excluded)
    }
}

/// A member of a block, and its first queue: a pick touches what the entry will need.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Member {
    pub queue: Queue,
    /// Entries of selected requests since they were carried over to [`Engine::entered`].
    pub entries: i32,
    /// Requests on their way to the queue, where some enter ahead of time; and when the last of them enters.
    pub coming: u32,
    pub since: u64,
}
