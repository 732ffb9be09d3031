//! Which of its targets each event loop prefers: a file per policy, and the state that the policies share.
//!
//! Loops with connections of their own make loops times targets of them. With a subset for each loop there are fewer,
//! and each carries more. [`Subsets`] divides the targets of one balancer among the loops of one process, and follows
//! changes of the targets; [`SubsetTable`] is the result, which loops share. It says nothing of which targets may be
//! picked ([`crate::upstream`]): health never changes a subset, and all targets that exist count, drained ones too.
//!
//! The result is a function of the policy, the number of loops, the key and the history of changes: the same on any
//! thread. `ring_hash` and `maglev` take no subset, since a key must meet one target on every loop, and neither does
//! `first` ([`crate::config::Balance::takes_subsets`]).

mod deterministic;
mod loops;
#[cfg(test)]
mod naive;
mod population;
mod random;
mod rendezvous;
mod ringsteady;
mod table;
#[cfg(test)]
mod tests;

use crate::{TargetChange, TargetId, TargetNames};
use deterministic::Deterministic;
use loops::Loops;
use population::{Population, Step};
use random::Random;
use rendezvous::Rendezvous;
use ringsteady::Ringsteady;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_stats::Key;

pub use loops::LoopsArgs;
pub use random::RandomArgs;
pub use rendezvous::RendezvousArgs;
pub use table::{SubsetSizes, SubsetTable};

/// A subset policy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Subset {
    /// Disjoint slices of the targets, each on an equal number of loops.
    Loops(LoopsArgs),
    /// Targets drawn for each loop.
    Random(RandomArgs),
    /// For each loop the targets of the highest hashes.
    Rendezvous(RendezvousArgs),
    /// Slices of shuffled targets, dealt out to the loops of all instances.
    Deterministic(InstanceArgs),
    /// The next targets on a ring of bit-reversed numbers, for the loops of all instances.
    Ringsteady(InstanceArgs),
}

/// The arguments of the policies that know which of several instances this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceArgs {
    /// Targets in a subset.
    pub size: u32,
    /// The number of this instance, from 0.
    pub instance: u32,
    /// How many instances there are.
    pub instances: u32,
}

impl InstanceArgs {
    /// The number of a loop among all loops of all instances.
    fn client(&self, loops: u32, on: u32) -> u64 {
        u64::from(self.instance) * u64::from(loops) + u64::from(on)
    }
}

impl Subset {
    /// The name in the language.
    pub fn name(&self) -> &'static str {
        match self {
            Subset::Loops(_) => "subset.loops",
            Subset::Random(_) => "subset.random",
            Subset::Rendezvous(_) => "subset.rendezvous",
            Subset::Deterministic(_) => "subset.deterministic",
            Subset::Ringsteady(_) => "subset.ringsteady",
        }
    }

    /// The targets of a subset; `None`: as many as make equal ones.
    pub fn size(&self) -> Option<u32> {
        match self {
            Subset::Loops(_) => None,
            Subset::Random(args) => Some(args.size),
            Subset::Rendezvous(args) => Some(args.size),
            Subset::Deterministic(args) | Subset::Ringsteady(args) => Some(args.size),
        }
    }

    /// Whether the result depends on the names of the targets, which must then be given.
    pub fn uses_names(&self) -> bool {
        !matches!(self, Subset::Loops(_) | Subset::Random(_))
    }
}

/// The key by which a balancer's targets are divided, of the key of its state: the same in all worlds.
pub fn subset_key(state: Key) -> Key {
    state.with(5)
}

/// A subset policy: its state over the targets of one balancer. A change is applied in three steps, after which the
/// lists are right.
trait SubsetPolicy {
    /// Applies that these targets have left `all`.
    fn leave(&mut self, _all: &Population, _leavers: &[TargetId], _draw: Key) {}

    /// Applies that these targets have joined `all`, in this order.
    fn join(&mut self, _all: &Population, _newcomers: &[TargetId], _draw: Key) {}

    /// Brings the subsets in order after that. Returns how many targets were moved to keep subsets equal.
    fn settle(&mut self, all: &Population) -> u64;

    /// The members of each subset, by index. A list that has not changed is the same in memory.
    fn lists(&self) -> Vec<Arc<[TargetId]>>;
}

/// The policy's state.
#[derive(Clone, Debug)]
enum State {
    Loops(Loops),
    Random(Random),
    Rendezvous(Rendezvous),
    Deterministic(Deterministic),
    Ringsteady(Ringsteady),
}

/// The subsets of one balancer in one process.
#[derive(Clone, Debug)]
pub struct Subsets {
    config: Subset,
    loops: u32,
    key: Key,
    state: State,
    all: Population,
    /// Changes so far: each draws by its own number.
    steps: u64,
    moves: u64,
    table: SubsetTable,
}

impl Subsets {
    /// Subsets for these loops of the targets that exist, by index; `names` may be empty unless the policy uses them
    /// ([`Subset::uses_names`]). `key`: that of the instance.
    pub fn new(config: Subset, loops: u32, key: Key, exists: &[bool], names: &TargetNames) -> Subsets {
        let (loops, n) = (loops.max(1), exists.iter().filter(|exists| **exists).count() as u32);
        let state = match config {
            Subset::Loops(args) => State::Loops(Loops::new(args, loops, n)),
            Subset::Random(args) => State::Random(Random::new(args, loops)),
            Subset::Rendezvous(args) => State::Rendezvous(Rendezvous::new(args, loops, key)),
            Subset::Deterministic(args) => State::Deterministic(Deterministic::new(args, loops)),
            Subset::Ringsteady(args) => State::Ringsteady(Ringsteady::new(args, loops)),
        };
        let goes_round = matches!(config, Subset::Loops(_));
        let table = SubsetTable::new(loops, goes_round, Vec::new());
        let all = Population::new(config.uses_names());
        let mut subsets = Subsets { config, loops, key, state, all, steps: 0, moves: 0, table };
        subsets.follow(exists, names);
        // A fleet may begin empty, and its loops have subsets all the same.
        subsets.publish();
        subsets
    }

    /// The policy with its arguments.
    pub fn config(&self) -> &Subset {
        &self.config
    }

    /// The loops that they are for.
    pub fn loops(&self) -> u32 {
        self.loops
    }

    /// The subsets now.
    pub fn table(&self) -> &SubsetTable {
        &self.table
    }

    /// Targets that came into another subset although they stayed, since the start: with `loops` those moved to keep
    /// subsets equal, each once; with the others once for each loop.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Applies changes of the targets as one step. Returns the subsets after it.
    pub fn change<'a>(&mut self, changes: impl Iterator<Item = TargetChange<'a>>) -> &SubsetTable {
        let step = self.all.plan(changes);
        self.apply(step)
    }

    /// Applies the difference between the targets before and those that exist now, by index, as one step. Returns the
    /// subsets after it. A target at an index that existed before is the same one.
    pub fn follow(&mut self, exists: &[bool], names: &TargetNames) -> &SubsetTable {
        let step = self.all.compare(exists, names);
        self.apply(step)
    }

    fn apply(&mut self, step: Step) -> &SubsetTable {
        if step.is_empty() {
            return &self.table;
        }
        let draw = self.key.with(self.steps);
        self.steps += 1;
        let newcomers = step.shuffled(draw);
        let Subsets { state, all, .. } = self;
        let policy = state.policy();
        all.remove(&step.leavers);
        policy.leave(all, &step.leavers, draw.with(1));
        all.add(&step.newcomers);
        policy.join(all, &newcomers, draw.with(2));
        self.moves += policy.settle(all);
        let before = self.table.clone();
        self.publish();
        if !self.table.goes_round() {
            let mut new = newcomers;
            new.sort_unstable();
            self.moves += self.table.count_entered(&before, &new);
        }
        &self.table
    }

    /// Makes a table of the lists, unless it would be the same.
    fn publish(&mut self) {
        let lists = self.state.policy().lists();
        if !self.table.has_lists(&lists) {
            self.table = SubsetTable::new(self.loops, self.table.goes_round(), lists);
        }
    }
}

impl State {
    fn policy(&mut self) -> &mut dyn SubsetPolicy {
        match self {
            State::Loops(subsets) => subsets,
            State::Random(subsets) => subsets,
            State::Rendezvous(subsets) => subsets,
            State::Deterministic(subsets) => subsets,
            State::Ringsteady(subsets) => subsets,
        }
    }
}

/// Replaces a list by the targets in order, unless it has these already.
fn renew(list: &mut Arc<[TargetId]>, mut targets: Vec<TargetId>) {
    targets.sort_unstable();
    if **list != *targets {
        *list = targets.into();
    }
}
