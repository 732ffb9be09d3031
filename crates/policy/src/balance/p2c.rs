//! The least loaded of a few drawn targets ("power of two choices").
//!
//! - Idea: draw `choices` targets by weight, one after another, and take the one with the fewest in flight for its
//!   weight. Idle ones are equally loaded, and the first drawn is taken: they get the shares of their weights.
//! - Signal: requests in flight from this balancer. State: a count per target.
//! - Cost of a decision: O(choices); with unequal weights draws repeat until they meet another target (an alias table),
//!   and after some trials O(n).
//! - Formula: load in flight^bias / weight (with bias 0: none, so the first drawn is taken); among many M/M/1 servers
//!   at load r the mean time in system is the sum of r^(2^i - 2) service times (Vvedenskaya 1996, Mitzenmacher 1996).
//! - Ties: `random` keeps the first drawn, which is by weight; `first` takes the lowest index.
//! - Pathologies: with replacement and two targets the busier is taken every fourth time; weaker black holes than a
//!   full scan, yet black holes (`error_hold`).
//! - Source: Mitzenmacher, "The Power of Two P2cArgs in Randomized Load Balancing" (2001); Envoy, Finagle.
//! - In the language: `lb.p2c(targets, choices=2, replacement=False, ties=, error_hold=, bias=1.0)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/p2c.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::alias::Alias;
use crate::balance::open::change_few;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use crate::balance::ties::Ties;
use crate::ds::counts::SharedCounts;
use serde::{Deserialize, Serialize};
use weir_stats::{Key, math};

/// The arguments of `lb.p2c`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct P2cArgs {
    /// How many are drawn.
    pub choices: u32,
    /// Whether one target may be drawn twice.
    pub replacement: bool,
    /// Among equals; never `Rotate`.
    pub ties: Ties,
    /// How much longer a failed request keeps counting, ns.
    pub error_hold_ns: u64,
    /// Exponent of the load: in flight^bias / weight; 0: not compared.
    pub bias: f64,
}

/// Draws that may meet a barred target (by weight: for one choice, or one drawn before) before the rest is enumerated.
const TRIALS: u64 = 34;

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct P2c {
    choices: u32,
    replacement: bool,
    ties: Ties,
    error_hold_ns: u64,
    bias: f64,
    /// Targets of positive weight.
    open: Vec<TargetId>,
    weights: Vec<f64>,
    counts: Vec<u32>,
    /// Loads can be compared as counts.
    plain: bool,
    /// Two are drawn, of equal weights.
    pair: bool,
    /// The counts of all loops, which are compared in place of its own.
    shared: Option<SharedCounts>,
    scratch: Box<Scratch>,
}

/// What a pick among many needs for its time only.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// Targets that are not excluded.
    rest: Vec<TargetId>,
    /// What was drawn, in order of value (by weight: in order of drawing).
    drawn: Vec<u64>,
    /// Over the targets of positive weight; here to keep a balancer small.
    alias: Alias,
    /// Their weights.
    weights: Vec<f64>,
}

impl P2c {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64], how: P2cArgs) -> P2c {
        let mut lb = P2c {
            choices: how.choices.max(1),
            replacement: how.replacement,
            ties: how.ties,
            error_hold_ns: how.error_hold_ns,
            bias: how.bias,
            open: Vec::new(),
            weights: Vec::new(),
            counts: Vec::new(),
            plain: true,
            pair: false,
            shared: None,
            scratch: Box::default(),
        };
        lb.refresh(weights);
        lb
    }

    /// Other weights from now on, of these and perhaps of more targets; counts go on.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        let scratch = &mut *self.scratch;
        scratch.weights.clear();
        scratch.weights.extend(self.open.iter().map(|t| weights[t.index()]));
        scratch.alias = Alias::new(&scratch.weights);
        let equal = !scratch.alias.is_needed();
        self.pair = equal && self.choices == 2;
        self.plain = equal && self.bias > 0.0 && self.shared.is_none();
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.counts.resize(weights.len(), 0);
    }

    /// How much longer a failed request is counted, ns.
    pub fn error_hold_ns(&self) -> u64 {
        self.error_hold_ns
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        self.counts[target.index()]
    }

    /// Sets how many are in flight at a target, as all loops count them.
    pub fn set_count(&mut self, target: TargetId, count: u32) {
        if let Some(own) = self.counts.get_mut(target.index()) {
            *own = count;
        }
    }

    /// Compares what all loops have in flight from now on; `None`: what this balancer has.
    pub fn compare_counts(&mut self, shared: Option<SharedCounts>) {
        self.plain = !self.scratch.alias.is_needed() && self.bias > 0.0 && shared.is_none();
        self.shared = shared;
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.counts.iter().map(|c| u64::from(*c)).sum()
    }

    /// Chooses and counts a target; `None` if there is none.
    #[inline]
    pub fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        let n = self.open.len() as u64;
        let target = if n == 0 {
            return None;
        } else if self.pair && exclude.is_empty() && n > 1 {
            let i = draw.below(n);
            let j = if self.replacement {
                draw.nth(1).below(n)
            } else {
                let j = draw.nth(1).below(n - 1);
                j + u64::from(j >= i)
            };
            self.better(self.open[i as usize], self.open[j as usize])
        } else {
            self.choose_of_many(draw, exclude)
        };
        self.counts[target.index()] += 1;
        Some(target)
    }

    /// Chooses and counts a target that is not barred; `None` if there is none.
    #[cold]
    pub fn pick_where(&mut self, draw: Key, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let target = if self.scratch.alias.is_needed() {
            self.best_by_weight(draw, &barred)
        } else {
            self.best_of_even(draw, &barred)
        }?;
        self.counts[target.index()] += 1;
        Some(target)
    }

    /// As [`P2c::pick_where`], where weights are equal; without counting.
    fn best_of_even(&mut self, draw: Key, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.try_draws(draw, barred).or_else(|| {
            let mut rest = std::mem::take(&mut self.scratch.rest);
            rest.clear();
            rest.extend(self.open.iter().copied().filter(|&t| !barred(t)));
            let best = self.best_of(draw, &rest);
            self.scratch.rest = rest;
            best
        })
    }

    /// The best of the choices among those that are not barred, each drawn by weight.
    fn best_by_weight(&mut self, draw: Key, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
        // The list alone: an empty box in its place would be an allocation.
        let mut drawn = std::mem::take(&mut self.scratch.drawn);
        drawn.clear();
        let mut best = None;
        for k in 0..u64::from(self.choices) {
            let Scratch { alias, weights, .. } = &*self.scratch;
            let again = |i: usize| !self.replacement && drawn.contains(&(i as u64));
            let out = |i: usize| barred(self.open[i]) || again(i);
            let Some(i) = draw_by_weight(draw.nth(k), alias, weights, out) else { break };
            drawn.push(i as u64);
            let target = self.open[i];
            best = Some(best.map_or(target, |b| self.better(b, target)));
        }
        self.scratch.drawn = drawn;
        best
    }

    /// As many draws as are wanted, each repeated until it meets a target that is not barred; `None` where too many do
    /// not.
    fn try_draws(&mut self, draw: Key, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let n = self.open.len() as u64;
        self.scratch.drawn.clear();
        let (mut best, mut trial) = (None, 2);
        for _ in 0..self.choices {
            let i = loop {
                if n == 0 || trial == TRIALS {
                    return None;
                }
                let i = draw.nth(trial).below(n);
                trial += 1;
                let again = !self.replacement && self.scratch.drawn.contains(&i);
                if !again && !barred(self.open[i as usize]) {
                    break i;
                }
            };
            self.scratch.drawn.push(i);
            let target = self.open[i as usize];
            best = Some(best.map_or(target, |b| self.better(b, target)));
        }
        best
    }

    /// Counts a request at a target that was chosen elsewhere.
    pub fn take(&mut self, target: TargetId) {
        self.counts[target.index()] += 1;
    }

    /// A request has come back, or its hold has ended.
    #[inline]
    pub fn release(&mut self, target: TargetId) {
        let count = &mut self.counts[target.index()];
        debug_assert!(*count > 0, "a target with nothing in flight released a request");
        *count = count.saturating_sub(1);
    }

    /// The less loaded of two, the first of equals (or the lower index).
    #[inline(always)]
    fn better(&self, a: TargetId, b: TargetId) -> TargetId {
        let order = if self.plain {
            self.counts[b.index()].cmp(&self.counts[a.index()])
        } else {
            self.load(b).total_cmp(&self.load(a))
        };
        let second = order.is_lt() || order.is_eq() && self.ties == Ties::First && b < a;
        if second { b } else { a }
    }

    fn load(&self, target: TargetId) -> f64 {
        let count = self.shared.as_ref().map_or(self.counts[target.index()], |shared| shared.get(target));
        let n = f64::from(count);
        let load = if self.bias == 1.0 {
            n
        } else if self.bias == 0.0 || n == 0.0 {
            0.0
        } else {
            math::pow(n, self.bias)
        };
        load / self.weights[target.index()]
    }

    #[inline(never)]
    fn choose_of_many(&mut self, draw: Key, exclude: &[TargetId]) -> TargetId {
        if self.scratch.alias.is_needed() {
            let best = self.best_by_weight(draw, &|t| exclude.contains(&t));
            return best.or_else(|| self.best_by_weight(draw, &|_| false)).unwrap_or(self.open[0]);
        }
        if exclude.is_empty() {
            let open = std::mem::take(&mut self.open);
            let best = self.best_of(draw, &open);
            self.open = open;
            return best.unwrap_or(self.open[0]);
        }
        let mut rest = std::mem::take(&mut self.scratch.rest);
        rest.clear();
        rest.extend(self.open.iter().copied().filter(|t| !exclude.contains(t)));
        if rest.is_empty() {
            rest.extend_from_slice(&self.open);
        }
        let best = self.best_of(draw, &rest);
        self.scratch.rest = rest;
        best.unwrap_or(self.open[0])
    }

    /// The best of the choices among these.
    fn best_of(&mut self, draw: Key, from: &[TargetId]) -> Option<TargetId> {
        let n = from.len() as u64;
        let mut best = None;
        // Distinct draws: the k-th is one of those left, its index moved past the drawn ones below it.
        self.scratch.drawn.clear();
        for k in 0..u64::from(self.choices) {
            let i = if n == 0 || !self.replacement && k == n {
                break;
            } else if self.replacement {
                draw.nth(k).below(n)
            } else {
                let mut i = draw.nth(k).below(n - k);
                for &d in &self.scratch.drawn {
                    i += u64::from(d <= i);
                }
                let at = self.scratch.drawn.partition_point(|&d| d < i);
                self.scratch.drawn.insert(at, i);
                i
            };
            let target = from[i as usize];
            best = Some(best.map_or(target, |b| self.better(b, target)));
        }
        best
    }
}

/// A place drawn by weight among those that are not out; `None` if all are.
fn draw_by_weight(draw: Key, alias: &Alias, weights: &[f64], out: impl Fn(usize) -> bool) -> Option<usize> {
    for trial in 0..TRIALS {
        let i = alias.draw(draw.nth(2 + trial), weights.len());
        if !weights.is_empty() && !out(i) {
            return Some(i);
        }
    }
    let rest = || (0..weights.len()).filter(|&i| !out(i));
    let mut left = draw.nth(1).unit() * rest().map(|i| weights[i]).sum::<f64>();
    let mut last = None;
    for i in rest() {
        last = Some(i);
        left -= weights[i];
        if left < 0.0 {
            break;
        }
    }
    last
}

impl Policy for P2c {
    type Args = P2cArgs;
    const NAME: &'static str = "lb.p2c";
    const TRAITS: Traits = Traits { counts: true, is_inlined: true, ..Traits::PLAIN };

    fn build(args: &P2cArgs, roster: &Roster, _draw: Key) -> P2c {
        P2c::new(roster.effective(), *args)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn follow_few(&mut self, _now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        let weights = roster.effective();
        if self.scratch.alias.is_needed() || !change_few(&mut self.open, weights, changed) {
            return self.refresh(weights);
        }
        let all = self.open.first().map_or(1.0, |target| weights[target.index()]);
        self.scratch.weights.resize(self.open.len(), all);
        self.weights.resize(weights.len(), 0.0);
        self.counts.resize(weights.len(), 0);
        changed.iter().for_each(|target| self.weights[target.index()] = weights[target.index()]);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, barred)
    }

    #[inline]
    fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        P2c::pick(self, ask.draw, ask.exclude)
    }

    #[inline(always)]
    fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        P2c::pick(self, draw, exclude)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        P2c::take(self, target);
    }

    #[inline(always)]
    fn release(&mut self, target: TargetId) {
        P2c::release(self, target);
    }

    #[inline]
    fn error_hold_ns(&self) -> u64 {
        self.error_hold_ns
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.total_in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lb(weights: &[f64], choices: u32, replacement: bool, bias: f64) -> P2c {
        P2c::new(weights, P2cArgs { choices, replacement, ties: Ties::Random, error_hold_ns: 0, bias })
    }

    fn shares(lb: &P2c, exclude: &[TargetId]) -> Vec<f64> {
        let mut seen = vec![0.0; lb.counts.len()];
        for i in 0..40_000 {
            seen[lb.clone().pick(Key::new(6).with(i), exclude).unwrap().index()] += 1.0 / 40_000.0;
        }
        seen
    }

    fn close(got: &[f64], want: &[f64]) {
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.013), "{got:?} {want:?}");
    }

    /// Envoy's documentation: with replacement and two hosts, the busier one is taken a quarter of the time.
    #[test]
    fn with_replacement_the_busier_of_two_gets_a_quarter() {
        let mut two = lb(&[1.0, 1.0], 2, true, 1.0);
        two.counts[0] = 5;
        close(&shares(&two, &[]), &[0.25, 0.75]);
        let mut two = lb(&[1.0, 1.0], 2, false, 1.0);
        two.counts[0] = 5;
        close(&shares(&two, &[]), &[0.0, 1.0]);
    }

    /// Without replacement the i-th least loaded of n is the best of d with probability C(n-i, d-1) / C(n, d).
    #[test]
    fn order_statistics_of_distinct_draws() {
        let mut six = lb(&[1.0; 6], 3, false, 1.0);
        (0..6).for_each(|i| six.counts[i] = i as u32);
        close(&shares(&six, &[]), &[10.0 / 20.0, 6.0 / 20.0, 3.0 / 20.0, 1.0 / 20.0, 0.0, 0.0]);
        close(&shares(&six, &[TargetId(0)]), &[0.0, 6.0 / 10.0, 3.0 / 10.0, 1.0 / 10.0, 0.0, 0.0]);
        close(
            &shares(&six, &[TargetId(0), TargetId(1), TargetId(2), TargetId(3)]),
            &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        );
    }

    #[test]
    fn idle_targets_are_equally_likely() {
        for replacement in [false, true] {
            for choices in [1, 2, 3, 9] {
                close(&shares(&lb(&[1.0; 5], choices, replacement, 1.0), &[]), &[0.2; 5]);
            }
        }
    }

    #[test]
    fn weight_and_bias_scale_the_load() {
        let mut two = lb(&[1.0, 3.0], 2, false, 1.0);
        two.counts = vec![1, 2];
        close(&shares(&two, &[]), &[0.0, 1.0]); // 1/1 against 2/3
        two.counts = vec![1, 4];
        close(&shares(&two, &[]), &[1.0, 0.0]); // 1/1 against 4/3
        let mut squared = lb(&[1.0, 3.0], 2, false, 2.0);
        squared.counts = vec![1, 2];
        close(&shares(&squared, &[]), &[1.0, 0.0]); // 1/1 against 4/3
        let mut blind = lb(&[1.0, 3.0], 2, false, 0.0);
        blind.counts = vec![9, 0];
        close(&shares(&blind, &[]), &[0.25, 0.75]); // the first drawn
    }

    /// Idle targets get the shares of their weights, however many are drawn.
    #[test]
    fn idle_targets_get_the_shares_of_their_weights() {
        for replacement in [false, true] {
            for (choices, bias) in [(1, 1.0), (2, 1.0), (2, 2.0), (3, 1.0), (9, 0.5)] {
                let lb = lb(&[2.0, 1.0, 0.0, 5.0], choices, replacement, bias);
                close(&shares(&lb, &[]), &[0.25, 0.125, 0.0, 0.625]);
                close(&shares(&lb, &[TargetId(3)]), &[2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
                close(&shares(&lb, &[0, 1, 3].map(TargetId)), &[0.25, 0.125, 0.0, 0.625]);
            }
        }
        // Far apart: the second draw hardly ever meets the other one, which is chosen where the first is busy.
        let mut far = lb(&[1e6, 0.001], 2, false, 1.0);
        close(&shares(&far, &[]), &[1.0, 0.0]);
        far.counts[0] = 1;
        close(&shares(&far, &[]), &[0.0, 1.0]);
    }

    /// One drawn after another by weight: with busier targets to the left of the list, the chance of each pair.
    #[test]
    fn distinct_draws_by_weight() {
        let mut three = lb(&[1.0, 2.0, 5.0], 2, false, 1.0);
        three.counts = vec![0, 1, 100];
        // The pair without the idle one, in either order: 2/8 · 5/6 + 5/8 · 2/3.
        let busy = 2.0 / 8.0 * 5.0 / 6.0 + 5.0 / 8.0 * 2.0 / 3.0;
        close(&shares(&three, &[]), &[1.0 - busy, busy, 0.0]);
    }
}
