//! What all loops of a process share: the clock, the seed, the way to the built-in servers, and state that is the process's.

use crate::built_in::BuiltIn;
use crate::clock::Clock;
use crate::shared::Shared;

/// Shared by all loops.
pub(crate) struct Process {
    pub clock: Clock,
    /// Where draws begin.
    pub seed: u64,
    pub built_in: BuiltIn,
    /// Queues, limits, budgets, faults.
    pub shared: Shared,
}
