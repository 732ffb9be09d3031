//! A target drawn by weight, without memory.
//!
//! - Idea: each request meets each target with probability weight over sum of weights.
//! - Signal: none. State: the targets of positive weight; with unequal weights an alias table (Vose 1991).
//! - Cost of a decision: O(1); with exclusion a few trials, then O(n). A change of the targets is O(n), off that path.
//! - Formula: behind it each of n equal servers is a queue of its own (Pollaczek-Khinchine), hence the longest tails.
//! - Pathologies: none of herds or black holes, but no help against queues either; composed, random of random is
//!   random.
//! - Source: Kingsbury, Timelike `lb-random`. In the language: `lb.random(targets)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/random.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::alias::Alias;
use crate::balance::open::change_few;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use weir_stats::Key;

/// Trials that may hit an excluded target before the rest is enumerated.
const TRIALS: u64 = 32;

/// The targets of one balancer.
#[derive(Clone, Debug)]
pub struct Random {
    /// Targets of positive weight.
    open: Vec<TargetId>,
    /// Weight of each of `open`.
    weights: Vec<f64>,
    /// Over `open`.
    alias: Alias,
}

impl Random {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64]) -> Random {
        let mut lb = Random { open: Vec::new(), weights: Vec::new(), alias: Alias::default() };
        lb.refresh(weights);
        lb
    }

    /// Other weights from now on, of these and perhaps of more targets.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        self.weights.clear();
        self.weights.extend(self.open.iter().map(|&i| weights[i.index()]));
        self.alias = Alias::new(&self.weights);
    }

    /// Chooses a target; `None` if there is none. The excluded are left out while others remain.
    #[inline]
    pub fn pick(&self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        if exclude.is_empty() {
            return self.choose(draw);
        }
        self.pick_where(draw, |t| exclude.contains(&t)).or_else(|| self.choose(draw))
    }

    #[inline]
    fn choose(&self, draw: Key) -> Option<TargetId> {
        let at = self.alias.draw(draw, self.open.len());
        self.open.get(at).copied()
    }

    /// Chooses a target that is not barred; `None` if there is none.
    #[cold]
    pub fn pick_where(&self, draw: Key, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        for trial in 0..TRIALS {
            let target = self.choose(draw.nth(2 + trial))?;
            if !barred(target) {
                return Some(target);
            }
        }
        let rest = || (0..self.open.len()).filter(|&i| !barred(self.open[i]));
        let total: f64 = rest().map(|i| self.weights[i]).sum();
        let mut left = draw.nth(1).unit() * total;
        let mut last = None;
        for i in rest() {
            last = Some(self.open[i]);
            left -= self.weights[i];
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

impl Policy for Random {
    type Args = ();
    const NAME: &'static str = "lb.random";
    const TRAITS: Traits = Traits { remembers: false, is_inlined: true, ..Traits::PLAIN };

    fn build((): &(), roster: &Roster, _draw: Key) -> Random {
        Random::new(roster.effective())
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn follow_few(&mut self, _now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        let weights = roster.effective();
        if self.alias.is_needed() || !change_few(&mut self.open, weights, changed) {
            return self.refresh(weights);
        }
        let all = self.open.first().map_or(1.0, |target| weights[target.index()]);
        self.weights.resize(self.open.len(), all);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, barred)
    }

    #[inline]
    fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        Random::pick(self, ask.draw, ask.exclude)
    }

    #[inline(always)]
    fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        Random::pick(self, draw, exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[f64], exclude: &[TargetId]) -> Vec<f64> {
        let lb = Random::new(weights);
        let mut seen = vec![0.0; weights.len()];
        let n = 100_000;
        for i in 0..n {
            seen[lb.pick(Key::new(4).with(i), exclude).unwrap().index()] += 1.0 / n as f64;
        }
        seen
    }

    fn close(got: &[f64], want: &[f64]) {
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() < 5.0 * (w * (1.0 - w) / 1e5).sqrt() + 1e-12, "{got:?} {want:?}");
        }
    }

    #[test]
    fn shares_follow_the_weights() {
        close(&shares(&[1.0; 4], &[]), &[0.25; 4]);
        close(&shares(&[6.0, 3.0, 1.0, 0.0], &[]), &[0.6, 0.3, 0.1, 0.0]);
    }

    #[test]
    fn the_excluded_are_left_out_and_the_rest_keeps_its_proportions() {
        close(&shares(&[6.0, 3.0, 1.0, 0.0], &[TargetId(0)]), &[0.0, 0.75, 0.25, 0.0]);
        close(&shares(&[1000.0, 1e-9, 3e-9], &[TargetId(0)]), &[0.0, 0.25, 0.75]);
        close(&shares(&[1.0, 1.0], &[TargetId(0), TargetId(1)]), &[0.5, 0.5]);
    }

    #[test]
    fn without_targets_nothing_is_picked() {
        assert_eq!(Random::new(&[0.0]).pick(Key::new(1), &[]), None);
    }
}
