//! Each target in turn; with weights smoothly, as nginx.
//!
//! - Idea: every target raises its current value by its weight; the highest is taken and lowered by the sum.
//! - Signal: none. State: one integer per target (with equal weights just a cursor, which gives the same sequence).
//! - Cost of a decision: O(1): the sequence repeats after W picks, so a short one is written down; O(distinct weights)
//!   where it is long, and after targets were left out, as those of one weight are raised alike. O(n) where some are
//!   left out, and for a few picks after that. A change of the targets writes the sequence anew, off that path.
//! - Formula: over each cycle of W = sum of weights picks, target i is taken exactly w_i times; {5,1,1}: a a b a c a a.
//! - Pathologies: balancers that start alike hit the first target together (hence `start="random"`); blind to queues.
//! - Source: nginx, commit "smooth weighted round-robin" (2012). In the language: `lb.round_robin(targets, start=)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/round_robin.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`, `validate/node.rs`; the naive twin in `examples/decisions/naive.rs`.

mod classes;

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::open::change_few;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use classes::Classes;
use serde::{Deserialize, Serialize};
use weir_stats::Key;

/// Where a round robin begins its cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// After a drawn number of steps: 0 to the sum of weights less one.
    #[default]
    Random,
    /// At the first target.
    First,
}

/// The arguments of `lb.round_robin`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRobinArgs {
    /// Where the cycle begins.
    pub start: Start,
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// Targets of positive weight.
    open: Vec<TargetId>,
    /// Index in `open` of the next; equal weights only.
    cursor: usize,
    /// (current value, weight) of each of `open`; empty where weights are equal. The values are those of now on the
    /// track of values only.
    smooth: Vec<(i64, i64)>,
    /// What a weight of 1 is in `smooth`.
    unit: f64,
    /// The sequence from all-zero values on, if it is short.
    cycle: Vec<TargetId>,
    /// Targets by weight: the way through a longer one.
    classes: Box<Classes>,
    track: Track,
    /// Picks in a row by values that left no target out.
    calm: u32,
    /// Of the weights, divided by what they have in common: picks until the sequence repeats; 0 where they are equal.
    sum: i64,
}

/// Where the next pick is read off; the same sequence on each. On the cycle `cursor` counts in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    Cycle,
    Classes,
    Values,
}

/// Longest sequence that is written down, and most work that this may take.
const LONGEST_CYCLE: i64 = 4096;
const MOST_WORK: i64 = 1 << 20;
/// Most different weights by which a pick costs about as much as one of a written sequence.
const FEW_CLASSES: usize = 8;
/// Picks that leave no target out before the balancer goes over from values to classes.
const CALM: u32 = 8;

/// Greatest sum of unequal weights (divided by what they have in common): a start is drawn by walking there.
pub const GREATEST_SUM: f64 = 1_000_000.0;

/// Whether these weights make a sequence longer than [`GREATEST_SUM`]. Fractions are kept to a thousandth.
pub fn is_too_long(weights: &[f64]) -> bool {
    let open = || weights.iter().copied().filter(|w| *w > 0.0);
    let Some(first) = open().next() else { return false };
    if open().all(|w| w == first) {
        return false;
    }
    let scale = if open().any(|w| w.fract() != 0.0) { 1000.0 } else { 1.0 };
    let open = || open().map(|w| (w * scale).round());
    // Beyond 2^53 whole numbers are no longer exact, and far too many anyway.
    let common =
        if open().all(|w| w < (1u64 << 53) as f64) { open().map(|w| w as i64).fold(0, gcd) } else { 1 };
    open().map(|w| w / common as f64).sum::<f64>() > GREATEST_SUM
}

impl RoundRobin {
    /// A balancer over targets of these (whole) weights.
    pub fn new(weights: &[f64], start: Start, draw: Key) -> RoundRobin {
        let mut lb = RoundRobin::at_first(weights);
        let length = lb.length();
        if start == Start::Random && length > 0 {
            // Weights that a list or an operator gave may have any sum; a walk that grows with it would hold up a loop.
            let most = if length > GREATEST_SUM as i64 { LONGEST_CYCLE } else { length };
            let steps = draw.below(most as u64);
            if lb.track == Track::Classes {
                (0..steps).for_each(|_| _ = lb.classes.step());
            } else {
                lb.cursor = steps as usize;
            }
        }
        lb
    }

    /// A balancer at the start of its sequence.
    fn at_first(weights: &[f64]) -> RoundRobin {
        let open: Vec<TargetId> =
            TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0).collect();
        let (smooth, unit) = values(weights, &open);
        let (cycle, classes) = (Vec::new(), Box::default());
        let mut lb = RoundRobin {
            open,
            cursor: 0,
            smooth,
            unit,
            cycle,
            classes,
            track: Track::Values,
            calm: 0,
            sum: 0,
        };
        lb.write_track();
        lb
    }

    /// Picks until the sequence repeats.
    fn length(&self) -> i64 {
        if self.smooth.is_empty() { self.open.len() as i64 } else { self.sum }
    }

    /// Writes the sequence down if it is short, else prepares to walk it by classes.
    fn write_track(&mut self) {
        self.cycle.clear();
        *self.classes = Classes::new(&self.smooth);
        self.sum = self.smooth.iter().map(|(_, weight)| weight).sum();
        let work = self.sum.saturating_mul(self.classes.len() as i64);
        let short = self.sum <= LONGEST_CYCLE && work <= MOST_WORK;
        self.track = if short { Track::Cycle } else { Track::Classes };
        if short {
            self.cycle = (0..self.sum).map(|_| self.open[self.classes.step() as usize]).collect();
        }
    }

    /// Other weights from now on, of these and perhaps of more targets.
    ///
    /// Equal weights go on with the target whose turn it was, or the next that is left. Else the targets that stay keep their
    /// values. Where that takes a written sequence, since there are many different weights, it is entered where the lightest
    /// target has its value, and as near as it can be to the share of its length at which the old one was left, so that balancers
    /// which started apart stay apart.
    pub fn refresh(&mut self, weights: &[f64]) {
        let mut before = std::mem::replace(self, RoundRobin::at_first(weights));
        if self.smooth.is_empty() {
            return self.go_on_at(before.pick(&[]).unwrap_or_default());
        }
        let progress = match before.track {
            Track::Cycle => before.cursor as f64 / before.length().max(1) as f64,
            Track::Classes | Track::Values => 0.0,
        };
        let has_values = !before.smooth.is_empty();
        if has_values {
            before.leave_track();
            self.take_values(&before);
        }
        let is_walked = self.track == Track::Classes || has_values && self.classes.len() <= FEW_CLASSES;
        if is_walked {
            self.classes.load(&self.smooth);
            self.track = Track::Classes;
        } else {
            self.enter_cycle(progress, has_values);
        }
    }

    /// The values of another balancer for the targets that both have, in this one's units. No target is more than a
    /// round ahead or behind, even if a far greater weight was there before.
    fn take_values(&mut self, before: &RoundRobin) {
        let ratio = self.unit / before.unit;
        let most = self.sum as f64;
        for (slot, target) in self.smooth.iter_mut().zip(&self.open) {
            let value = before.open.binary_search(target).ok().and_then(|at| before.smooth.get(at));
            slot.0 = value.map_or(0, |v| (v.0 as f64 * ratio).round().clamp(-most, most) as i64);
        }
    }

    /// Enters the written sequence near to a share of its length; if there are values, where the lightest target is as near to
    /// its next pick as its value says. A heavy one is picked soon wherever that is.
    fn enter_cycle(&mut self, progress: f64, has_values: bool) {
        let length = self.cycle.len();
        let wanted_at = ((progress * length as f64) as usize).min(length - 1);
        self.cursor = wanted_at;
        let lightest = self.smooth.iter().zip(&self.open).min_by_key(|((_, weight), _)| *weight);
        let Some((&(wanted, weight), &target)) = lightest.filter(|_| has_values) else { return };
        let (mut value, mut nearest) = (0, (i64::MAX, usize::MAX));
        for (at, picked) in self.cycle.iter().enumerate() {
            // A step changes the value by the weight: nothing is nearer than half of it.
            let strays = (2 * (value - wanted).abs()).max(weight);
            let of = (strays, at.abs_diff(wanted_at));
            if of < nearest {
                (self.cursor, nearest) = (at, of);
            }
            value += weight - if *picked == target { self.sum } else { 0 };
        }
    }

    /// It is this target's turn, or that of the next one that is left.
    fn go_on_at(&mut self, next: TargetId) {
        let at = self.open.partition_point(|&t| t < next);
        self.cursor = if at == self.open.len() { 0 } else { at };
    }

    /// The next target; `None` if there is none. The excluded are left out while others remain.
    #[inline]
    pub fn pick(&mut self, exclude: &[TargetId]) -> Option<TargetId> {
        if self.open.is_empty() {
            return None;
        }
        if !self.smooth.is_empty() {
            if self.track == Track::Cycle && exclude.is_empty() {
                let target = self.cycle[self.cursor];
                self.cursor = if self.cursor + 1 == self.cycle.len() { 0 } else { self.cursor + 1 };
                return Some(target);
            }
            return self.step_without(exclude);
        }
        if !exclude.is_empty() {
            return self.turn_where(|t| exclude.contains(&t)).or_else(|| Some(self.turn()));
        }
        Some(self.turn())
    }

    /// The next target that is not barred; `None` if there is none.
    #[cold]
    pub fn pick_where(&mut self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        if self.smooth.is_empty() { self.turn_where(barred) } else { self.step_off(barred) }
    }

    #[inline]
    fn turn(&mut self) -> TargetId {
        let target = self.open[self.cursor];
        self.cursor = if self.cursor + 1 == self.open.len() { 0 } else { self.cursor + 1 };
        target
    }

    #[cold]
    fn turn_where(&mut self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        (0..self.open.len()).map(|_| self.turn()).find(|&t| !barred(t))
    }

    #[inline(never)]
    fn step_without(&mut self, exclude: &[TargetId]) -> Option<TargetId> {
        if exclude.is_empty() {
            return self.step_on();
        }
        self.step_off(|t| exclude.contains(&t)).or_else(|| self.step_off(|_| false))
    }

    /// A step of all targets, off the written sequence. Going over to classes is worth as much as a few steps of
    /// values, so it waits until a few in a row have left no target out.
    fn step_on(&mut self) -> Option<TargetId> {
        if self.track == Track::Values {
            if self.calm < CALM {
                let calm = self.calm + 1;
                let target = self.step_off(|_| false);
                self.calm = calm;
                return target;
            }
            self.classes.load(&self.smooth);
            self.track = Track::Classes;
        }
        Some(self.open[self.classes.step() as usize])
    }

    /// Writes down the values of now, which the written cycle and the classes do without.
    fn leave_track(&mut self) {
        match self.track {
            Track::Values => {}
            Track::Classes => self.classes.store(&mut self.smooth),
            Track::Cycle => {
                for (value, weight) in &mut self.smooth {
                    *value = *weight * self.cursor as i64;
                }
                for target in &self.cycle[..self.cursor] {
                    if let Ok(i) = self.open.binary_search(target) {
                        self.smooth[i].0 -= self.sum;
                    }
                }
            }
        }
        (self.track, self.calm) = (Track::Values, 0);
    }

    /// A step of the values, which leaves the written cycle until they are all zero again.
    fn step_off(&mut self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.leave_track();
        let target = self.step(barred);
        if !self.cycle.is_empty() && self.smooth.iter().all(|(current, _)| *current == 0) {
            (self.track, self.cursor) = (Track::Cycle, 0);
        }
        target
    }

    fn step(&mut self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let (mut best, mut most, mut total) = (usize::MAX, i64::MIN, 0);
        for (i, ((current, weight), target)) in self.smooth.iter_mut().zip(&self.open).enumerate() {
            if barred(*target) {
                continue;
            }
            *current += *weight;
            total += *weight;
            if *current > most {
                (best, most) = (i, *current);
            }
        }
        self.smooth.get_mut(best)?.0 -= total;
        Some(self.open[best])
    }
}

/// (0, weight) of each open target, divided by what the weights have in common, nothing where they are equal; and what
/// a weight of 1 is then.
///
/// Weights are whole in the file. Those that slow start or a change at run time makes are kept to a thousandth. A
/// weight beyond all bounds counts as the greatest with which no sum overflows.
fn values(weights: &[f64], open: &[TargetId]) -> (Vec<(i64, i64)>, f64) {
    let fraction = open.iter().any(|&i| weights[i.index()].fract() != 0.0);
    let scale = if fraction { 1000.0 } else { 1.0 };
    let most = i64::MAX / 8 / (open.len().max(1) as i64);
    let whole =
        |t: &TargetId| ((weights[t.index()] * scale + 0.5 * f64::from(fraction)) as i64).clamp(1, most);
    let first = open.first().map(whole);
    if open.iter().map(whole).all(|w| Some(w) == first) {
        return (Vec::new(), 1.0);
    }
    let common = open.iter().map(whole).fold(0, gcd).max(1);
    (open.iter().map(|i| (0, whole(i) / common)).collect(), scale / common as f64)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Policy for RoundRobin {
    type Args = RoundRobinArgs;
    const NAME: &'static str = "lb.round_robin";
    const TRAITS: Traits = Traits { is_inlined: true, ..Traits::PLAIN };

    fn build(args: &RoundRobinArgs, roster: &Roster, draw: Key) -> RoundRobin {
        RoundRobin::new(roster.effective(), args.start, draw)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn follow_few(&mut self, _now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        let next = self.open.get(self.cursor).copied().unwrap_or_default();
        if !self.smooth.is_empty() || !change_few(&mut self.open, roster.effective(), changed) {
            return self.refresh(roster.effective());
        }
        self.go_on_at(next);
    }

    fn ask_where(&mut self, _ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(barred)
    }

    #[inline]
    fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        RoundRobin::pick(self, ask.exclude)
    }

    #[inline(always)]
    fn pick(&mut self, _draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        RoundRobin::pick(self, exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(weights: &[f64], n: usize) -> Vec<u32> {
        let mut lb = RoundRobin::new(weights, Start::First, Key::new(0));
        (0..n).map(|_| lb.pick(&[]).unwrap().0).collect()
    }

    /// The sequence of nginx's commit message, and the same again.
    #[test]
    fn five_one_one_is_smooth() {
        assert_eq!(run(&[5.0, 1.0, 1.0], 14), [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(run(&[10.0, 2.0, 2.0], 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn equal_weights_go_round_in_order() {
        assert_eq!(run(&[3.0, 0.0, 3.0, 3.0], 5), [0, 2, 3, 0, 2]);
    }

    /// Over each cycle every target has exactly its share, from any start, and no prefix strays by one or more.
    #[test]
    fn shares_are_exact_over_a_cycle() {
        for seed in 0..300u64 {
            let draw = Key::new(seed);
            let n = 1 + draw.below(8) as usize;
            let weights: Vec<f64> = (0..n).map(|i| (1 + draw.nth(i as u64).below(19)) as f64).collect();
            let cycle = weights.iter().sum::<f64>() as usize;
            let mut lb = RoundRobin::new(&weights, Start::Random, draw);
            let mut seen = vec![0.0; n];
            for _ in 0..cycle {
                seen[lb.pick(&[]).unwrap().index()] += 1.0;
            }
            assert_eq!(seen, weights);
            let mut seen = vec![0.0; n];
            for (t, i) in run(&weights, cycle).into_iter().enumerate() {
                seen[i as usize] += 1.0;
                for k in 0..n {
                    assert!((seen[k] - (t + 1) as f64 * weights[k] / cycle as f64).abs() < 1.0);
                }
            }
        }
    }

    #[test]
    fn starts_are_spread_over_the_cycle() {
        let mut seen = [0; 7];
        for seed in 0..7000 {
            let mut lb = RoundRobin::new(&[1.0; 7], Start::Random, Key::new(seed));
            seen[lb.pick(&[]).unwrap().index()] += 1;
        }
        assert!(seen.iter().all(|c| (850..1150).contains(c)), "{seen:?}");
    }

    #[test]
    fn long_sequences_are_told_apart() {
        assert!(!is_too_long(&[5e9, 5e9, 5e9]) && !is_too_long(&[]) && !is_too_long(&[0.0]));
        assert!(!is_too_long(&[2e9, 4e9]), "1 and 2");
        assert!(is_too_long(&[1_000_000_007.0, 1.0]) && is_too_long(&[1e300, 1.0]));
    }

    /// The algorithm as nginx has it: what the tracks agree with.
    fn bare(weights: &[f64]) -> impl FnMut(&[TargetId]) -> TargetId {
        let weights: Vec<i64> = weights.iter().map(|w| *w as i64).collect();
        let mut current = vec![0; weights.len()];
        move |exclude| {
            let all = exclude.len() == weights.len();
            let may = |i: &usize| all || !exclude.contains(&TargetId(*i as u32));
            let (mut best, mut total) = (None, 0);
            for i in (0..weights.len()).filter(may) {
                current[i] += weights[i];
                total += weights[i];
                if best.is_none_or(|b: usize| current[i] > current[b]) {
                    best = Some(i);
                }
            }
            let best = best.unwrap();
            current[best] -= total;
            TargetId(best as u32)
        }
    }

    /// Written, by classes or off both, with and without targets left out: the same picks.
    #[test]
    fn no_track_changes_a_pick() {
        let mut seen = [0; 3];
        for seed in 0..150u64 {
            let draw = Key::new(seed);
            let (n, greatest) = (2 + draw.below(9), [7, 3000][seed as usize % 2]);
            // A prime divides none of the others, so that sequences are as long as they look.
            let kinds: Vec<f64> = (0..3).map(|i| (1 + draw.nth(i).below(greatest)) as f64).collect();
            let mut weights: Vec<f64> = (0..n).map(|i| kinds[draw.nth(9 + i).below(3) as usize]).collect();
            weights[0] = 7.0;
            let mut lb = RoundRobin::new(&weights, Start::First, draw);
            let mut bare = bare(&weights);
            let left_out = draw.nth(30).below(2) as f64 * 0.02;
            for i in 0..1500u64 {
                let exclude: &[TargetId] = if draw.with(i).unit() < left_out { &[TargetId(1)] } else { &[] };
                seen[lb.track as usize] += 1;
                if lb.smooth.is_empty() {
                    break;
                }
                assert_eq!(lb.pick(exclude), Some(bare(exclude)), "{weights:?}, pick {i}");
            }
        }
        assert!(seen.iter().all(|n| *n > 5_000), "each track is used: {seen:?}");
    }

    /// Changed as often as it picks, a long sequence keeps its shares.
    #[test]
    fn a_long_sequence_that_changes_keeps_its_shares() {
        for seed in 0..40u64 {
            let draw = Key::new(seed);
            let weights: Vec<f64> =
                (0..20).map(|i| [997.0, 1000.0, 3001.0][draw.nth(i).below(3) as usize]).collect();
            let sum: f64 = weights.iter().sum();
            let mut lb = RoundRobin::new(&weights, Start::Random, draw);
            let (mut seen, mut other) = ([0.0; 20], weights.clone());
            for k in 0..4000 {
                assert_eq!(lb.track, Track::Classes);
                other[19] = weights[19] + f64::from(k % 2);
                lb.refresh(&other);
                seen[lb.pick(&[]).unwrap().index()] += 1.0;
            }
            let strays = |i: usize| (seen[i] - 4000.0 * weights[i] / sum).abs();
            assert!((0..20).all(|i| strays(i) < 2.0), "{seen:?} {weights:?}");
        }
    }

    /// A newcomer whose weight grows in steps gets its share but for the half of a pick by which it begins, though each step has
    /// another unit, and though short sequences follow long ones.
    #[test]
    fn a_newcomer_gets_its_share_while_its_weight_grows() {
        const RUNS: u64 = 40;
        for old in [4usize, 15, 59] {
            for picks in [3u64, 10, 50] {
                let (mut seen, mut fair) = (0.0, 0.0);
                for seed in 0..RUNS {
                    let mut lb = RoundRobin::new(&vec![1.0; old], Start::Random, Key::new(seed));
                    let mut weights = vec![1.0; old + 1];
                    for step in 1..100u32 {
                        weights[old] = f64::from(step) / 100.0;
                        lb.refresh(&weights);
                        let picked = (0..picks).filter(|_| lb.pick(&[]) == Some(TargetId(old as u32)));
                        seen += picked.count() as f64;
                        fair += picks as f64 * weights[old] / (old as f64 + weights[old]);
                    }
                }
                let behind: f64 = (fair - seen) / RUNS as f64;
                assert!(behind.abs() < 0.8, "{old} targets, {picks} picks a step: behind by {behind}");
            }
        }
    }

    /// When a ramp is over, balancers that started apart are still apart.
    #[test]
    fn weights_that_become_equal_keep_balancers_apart() {
        for old in [4usize, 15] {
            let mut first = vec![0; old + 1];
            for seed in 0..200 {
                let mut lb = RoundRobin::new(&vec![1.0; old], Start::Random, Key::new(seed));
                let mut weights = vec![1.0; old + 1];
                for step in 1..=100u32 {
                    weights[old] = f64::from(step) / 100.0;
                    lb.refresh(&weights);
                    (0..1 + seed % 7).for_each(|_| _ = lb.pick(&[]));
                }
                first[lb.pick(&[]).unwrap().index()] += 1;
            }
            let most = first.iter().max().unwrap();
            assert!(*most < 3 * 200 / old as i32, "{first:?}");
        }
    }

    #[test]
    fn the_excluded_are_left_out_while_others_remain() {
        for weights in [[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]] {
            let mut lb = RoundRobin::new(&weights, Start::First, Key::new(0));
            assert!((0..20).all(|_| lb.pick(&[TargetId(0)]).unwrap() != TargetId(0)));
            assert!((0..20).all(|_| lb.pick(&[TargetId(0), TargetId(1)]).unwrap() == TargetId(2)));
            assert!(lb.pick(&[TargetId(0), TargetId(1), TargetId(2)]).is_some());
        }
    }
}
