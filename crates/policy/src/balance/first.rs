//! The first target that is left: a hot spare behind it.
//!
//! - Idea: all requests go to the first eligible target, in the order of the file; the next is a spare.
//! - Signal: eligibility alone. State: the targets of positive weight, in order.
//! - Cost of a decision: O(1); with targets left out, O(their number).
//! - Formula: none; availability of n targets that fail independently with share p of the time is 1 - p^n.
//! - Pathologies: without health checks or retries a dead first target takes everything; the spare is cold when it is
//!   needed. Its `panic` is 0 by default: one of two targets being down is its normal case.
//! - Source: HAProxy `balance first` and `backup`; Kingsbury, Timelike's hot spare.
//! - In the language: `lb.first(targets)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/first.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use weir_stats::Key;

/// The targets of one balancer.
#[derive(Clone, Debug, Default)]
pub struct First {
    open: Vec<TargetId>,
}

impl First {
    /// A balancer over targets of these weights; one of weight 0 is never picked.
    pub fn new(weights: &[f64]) -> First {
        let mut lb = First::default();
        lb.refresh(weights);
        lb
    }

    /// Replaces the weights, of these and perhaps of more targets.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
    }

    /// The first target; an excluded one only if no other is left.
    #[inline]
    pub fn pick(&self, exclude: &[TargetId]) -> Option<TargetId> {
        if exclude.is_empty() {
            return self.open.first().copied();
        }
        self.pick_where(|t| exclude.contains(&t)).or_else(|| self.open.first().copied())
    }

    /// The first target that is not barred.
    pub fn pick_where(&self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.open.iter().copied().find(|&t| !barred(t))
    }
}

impl Policy for First {
    type Args = ();
    const NAME: &'static str = "lb.first";
    const TRAITS: Traits = Traits { remembers: false, ..Traits::PLAIN };

    fn build((): &(), roster: &Roster, _draw: Key) -> First {
        First::new(roster.effective())
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn ask_where(&mut self, _ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(barred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spare_waits_its_turn() {
        let mut lb = First::new(&[0.0, 1.0, 1.0]);
        let picks = [&[][..], &[1], &[1, 2]]
            .map(|exclude| lb.pick(&exclude.iter().copied().map(TargetId).collect::<Vec<_>>()));
        assert_eq!(picks, [1, 2, 1].map(|t| Some(TargetId(t))));
        assert_eq!(lb.pick_where(|_| true), None);
        lb.refresh(&[0.0, 0.0, 1.0]);
        assert_eq!(lb.pick(&[]), Some(TargetId(2)));
        lb.refresh(&[0.0, 1.0, 1.0, 1.0]);
        assert_eq!(lb.pick(&[]), Some(TargetId(1)));
        assert_eq!(First::new(&[]).pick(&[]), None);
    }
}
