//! The target with the least work left: clairvoyant, a lower bound for all policies that cannot know it.
//!
//! - Idea: send the request where it would wait least.
//! - Signal: the work of all requests picked for a target and not yet done, less what has been served, given by the
//!   caller.
//! - State: the targets of positive weight. Cost of a decision: O(n).
//! - Formula: argmin of work left; ties uniformly. With one server each and first come first served it minimises each
//!   request's own wait; n such targets behave as one queue before n servers.
//! - Pathologies: none; but no real balancer can know it: simulation only. Source: "join the least work", e.g.
//!   Harchol-Balter 2013, ch. 24.
//! - In the language: `lb.least_work(targets)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/least_work.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`, `validate/node.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use weir_stats::Key;

/// The targets of one balancer.
#[derive(Clone, Debug, Default)]
pub struct LeastWork {
    open: Vec<TargetId>,
    /// The last known work left at each target, ns; 0 if unknown.
    left_ns: Vec<u64>,
}

impl LeastWork {
    /// A balancer over targets of these weights; one of weight 0 is never picked.
    pub fn new(weights: &[f64]) -> LeastWork {
        let mut lb = LeastWork::default();
        lb.refresh(weights);
        lb
    }

    /// Replaces the weights, of these and perhaps of more targets.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        self.left_ns.resize(weights.len(), 0);
    }

    /// Sets the work left at each target as of now.
    pub fn tell(&mut self, left_ns: impl Fn(TargetId) -> u64) {
        for &target in &self.open {
            self.left_ns[target.index()] = left_ns(target);
        }
    }

    /// Chooses a target that is not barred; `None` if there is none.
    pub fn pick_where(&self, draw: Key, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let (mut best, mut ties) = (None, 0);
        for target in self.open.iter().copied().filter(|&t| !barred(t)) {
            let work = self.left_ns[target.index()];
            match best {
                Some((least, _)) if work > least => {}
                Some((least, _)) if work == least => {
                    // The k-th of equals replaces with probability 1/k: each is chosen equally often.
                    ties += 1;
                    if draw.nth(ties).below(ties + 1) == 0 {
                        best = Some((work, target));
                    }
                }
                _ => (best, ties) = (Some((work, target)), 0),
            }
        }
        best.map(|(_, target)| target)
    }
}

impl Policy for LeastWork {
    type Args = ();
    const NAME: &'static str = "lb.least_work";
    const TRAITS: Traits = Traits::PLAIN;

    fn build((): &(), roster: &Roster, _draw: Key) -> LeastWork {
        LeastWork::new(roster.effective())
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, barred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_work_wins_and_ties_are_even() {
        let mut lb = LeastWork::new(&[1.0, 1.0, 0.0, 1.0, 1.0]);
        let left = [5, 3, 0, 3, 3];
        lb.tell(|t| left[t.index()]);
        let mut seen = [0; 5];
        for i in 0..30_000 {
            seen[lb.pick_where(Key::new(2).with(i), |_| false).unwrap().index()] += 1;
        }
        assert_eq!((seen[0], seen[2]), (0, 0));
        assert!([1, 3, 4].iter().all(|&t| (9_600..10_400).contains(&seen[t])), "{seen:?}");
        let barred = |t| t != TargetId(0);
        assert_eq!(lb.pick_where(Key::new(2), barred), Some(TargetId(0)));
        assert_eq!(lb.pick_where(Key::new(2), |_| true), None);
    }
}
