//! Deterministic subsets: the loops of all instances deal the shuffled targets out among themselves, round by round.
//!
//! - Idea: clients with consecutive numbers take consecutive slices of one shuffled list; when it is used up, the next
//!   ones take slices of another. So in each round every target is used once, but for those that are left over.
//! - Signal: the names alone. State: the targets by name.
//! - Cost of a change: O(n), and again for each round that this instance takes part in.
//! - Formula: ⌊n/size⌋ subsets per round; client c is number c mod that in round ⌊c / that⌋. The targets are in the order
//!   of their names, shuffled by the round alone, so that all instances agree; fewer than `size` are one subset.
//! - Pathologies: n mod size targets are unused in a round; any change of n shuffles everything anew: one target
//!   more replaces half of the connections of 100 clients to 300 targets, against 6 of 2,000 with Ringsteady. Instances
//!   need consecutive numbers.
//! - Source: Site Reliability Engineering (2016), ch. 20.
//! - In the language: `subset.deterministic(size, instance=0, instances=1)`.

use super::population::Population;
use super::{InstanceArgs, SubsetPolicy, renew};
use crate::TargetId;
use crate::fleet::draw;
use std::sync::Arc;
use weir_stats::Key;

/// What rounds are shuffled by, beside their number: the same in every process.
const SHUFFLE: u64 = 0x5352_4520_6368_3230;

/// The subsets of one balancer.
#[derive(Clone, Debug)]
pub(super) struct Deterministic {
    args: InstanceArgs,
    /// In the order of their names.
    sorted: Vec<TargetId>,
    lists: Vec<Arc<[TargetId]>>,
}

impl Deterministic {
    pub fn new(args: InstanceArgs, loops: u32) -> Deterministic {
        Deterministic { args, sorted: Vec::new(), lists: vec![Arc::default(); loops as usize] }
    }
}

impl SubsetPolicy for Deterministic {
    fn leave(&mut self, _all: &Population, leavers: &[TargetId], _draw: Key) {
        self.sorted.retain(|target| leavers.binary_search(target).is_err());
    }

    fn join(&mut self, all: &Population, newcomers: &[TargetId], _draw: Key) {
        self.sorted.extend(newcomers);
        all.sort_by_name(&mut self.sorted);
    }

    fn settle(&mut self, _all: &Population) -> u64 {
        let n = self.sorted.len();
        let size = (self.args.size.max(1) as usize).min(n).max(1);
        let in_round = ((n / size) as u64).max(1);
        let loops = self.lists.len() as u32;
        let (mut shuffled, mut round_now) = (Vec::new(), None);
        for (on, list) in (0..).zip(&mut self.lists) {
            let client = self.args.client(loops, on);
            let (round, number) = (client / in_round, (client % in_round) as usize);
            if round_now != Some(round) {
                shuffled = draw(self.sorted.clone(), n, Key::new(SHUFFLE).with(round));
                round_now = Some(round);
            }
            renew(list, shuffled.iter().copied().skip(number * size).take(size).collect());
        }
        0
    }

    fn lists(&self) -> Vec<Arc<[TargetId]>> {
        self.lists.clone()
    }
}
