//! What the engine keeps of a balancer and of a member of a pool.

use crate::code::Targets;
use crate::state::deferred::Deferred;
use weir_model::queue::Queue;
use weir_policy::Balancer;
use weir_policy::retry::Tried;
use weir_stats::Key;

/// A balancer in virtual time.
pub(crate) struct Instance {
    pub balancer: Balancer,
    /// What its choices are drawn by.
    pub picks: Key,
    pub targets: Targets,
    /// Requests that will have come back before its next pick.
    pub deferred: Deferred,
}

impl Instance {
    /// Takes in all who came back before a turn.
    #[inline(always)]
    pub fn take_returns(&mut self, turn: (u64, u64)) {
        while let Some(target) = self.deferred.before(turn) {
            self.balancer.release(target);
        }
    }

    /// A pick of a request that has tried targets before.
    #[cold]
    #[inline(never)]
    pub fn pick_anew(&mut self, draw: Key, tried: &Tried, own: u32, excluded: &mut Vec<u32>) -> Option<u32> {
        tried.at(own, excluded);
        self.balancer.pick(draw, excluded)
    }
}

/// A member of a block, and its first queue: what a pick touches is what the entry will need.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Member {
    pub queue: Queue,
    /// Entries of selected requests since they were carried over to [`Engine::entered`].
    pub entries: i32,
    /// Requests on their way to the queue, where some enter ahead of time; and when the last of those does.
    pub coming: u32,
    pub since: u64,
}
