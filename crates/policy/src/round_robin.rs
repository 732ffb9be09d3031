//! Each target in turn; with weights smoothly, as nginx.
//!
//! - Idea: every target raises its current value by its weight; the highest is taken and lowered by the sum.
//! - Signal: none. State: one integer per target (with equal weights just a cursor, which gives the same sequence).
//! - Cost of a decision: O(1): the sequence repeats after W picks, so a short one is written down; O(n) where it is long,
//!   and after targets were left out, which takes the balancer off the beaten track. A change of the targets writes the
//!   sequence anew, off that path.
//! - Formula: over each cycle of W = sum of weights picks, target i is taken exactly w_i times; {5,1,1}: a a b a c a a.
//! - Pathologies: balancers that start alike hit the first target together (hence `start="random"`); blind to queues.
//! - Source: nginx, commit "smooth weighted round-robin" (2012). In the language: `lb.round_robin(targets, start=)`.

use crate::config::Start;
use weir_stats::Key;

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// Targets of positive weight.
    open: Vec<u32>,
    /// Index in `open` of the next; equal weights only.
    cursor: usize,
    /// (current value, weight) of each of `open`; empty where weights are equal.
    smooth: Vec<(i64, i64)>,
    /// The sequence from all-zero values on, if it is short; `cursor` counts in it while `on_cycle`, and the values are
    /// those of its start.
    cycle: Vec<u32>,
    on_cycle: bool,
}

/// Longest sequence that is written down, and most work that this may take.
const LONGEST_CYCLE: i64 = 4096;
const MOST_WORK: i64 = 1 << 20;

/// Greatest sum of unequal weights (divided by what they have in common): a start is drawn by walking there.
pub const GREATEST_SUM: f64 = 1_000_000.0;

/// Whether these whole weights make a sequence longer than [`GREATEST_SUM`].
pub fn is_too_long(weights: &[f64]) -> bool {
    let open = || weights.iter().copied().filter(|w| *w > 0.0);
    let Some(first) = open().next() else { return false };
    if open().all(|w| w == first) {
        return false;
    }
    // Beyond 2^53 whole numbers are no longer exact, and far too many anyway.
    let common =
        if open().all(|w| w < (1u64 << 53) as f64) { open().map(|w| w as i64).fold(0, gcd) } else { 1 };
    open().map(|w| w / common as f64).sum::<f64>() > GREATEST_SUM
}

impl RoundRobin {
    /// A balancer over targets of these (whole) weights.
    pub fn new(weights: &[f64], start: Start, draw: Key) -> RoundRobin {
        let open: Vec<u32> = (0..weights.len() as u32).filter(|&i| weights[i as usize] > 0.0).collect();
        let smooth = values(weights, &open);
        let mut lb = RoundRobin { open, cursor: 0, smooth, cycle: Vec::new(), on_cycle: false };
        lb.write_cycle();
        let length = lb.length();
        if start == Start::Random && length > 0 {
            let steps = draw.below(length as u64);
            if lb.smooth.is_empty() || lb.on_cycle {
                lb.cursor = steps as usize;
            } else {
                (0..steps).for_each(|_| {
                    lb.step(|_| false);
                });
            }
        }
        lb
    }

    /// Picks until the sequence repeats.
    fn length(&self) -> i64 {
        if self.smooth.is_empty() { self.open.len() as i64 } else { self.smooth.iter().map(|(_, w)| w).sum() }
    }

    /// Writes the sequence down if it is short. The values must be all zero, and are again.
    fn write_cycle(&mut self) {
        let length = self.length();
        if !self.smooth.is_empty() && length <= LONGEST_CYCLE && length * self.open.len() as i64 <= MOST_WORK
        {
            self.cycle = (0..length).filter_map(|_| self.step(|_| false)).collect();
            self.on_cycle = true;
        }
    }

    /// Other weights from now on, of these and perhaps of more targets.
    ///
    /// Equal weights go on with the target whose turn it was, or the next that is left. A written sequence is entered where
    /// the old one was left, as a share of its length, so that balancers which started apart stay apart. Where none is
    /// written, those that stay keep their values.
    pub fn refresh(&mut self, weights: &[f64]) {
        let next = self.open.get(self.cursor).copied().unwrap_or(0);
        let progress = match self.cycle.len() {
            0 => self.cursor as f64 / self.open.len().max(1) as f64,
            length => self.cursor as f64 / length as f64,
        };
        let open: Vec<u32> = (0..weights.len() as u32).filter(|&i| weights[i as usize] > 0.0).collect();
        let mut smooth = values(weights, &open);
        let old = std::mem::take(&mut self.open);
        let kept = |t: u32| old.binary_search(&t).ok().and_then(|at| self.smooth.get(at)).map_or(0, |v| v.0);
        let values: Vec<i64> = open.iter().map(|&t| kept(t)).collect();
        std::mem::swap(&mut self.smooth, &mut smooth);
        (self.open, self.on_cycle, self.cursor) = (open, false, 0);
        self.cycle.clear();
        self.write_cycle();
        if self.on_cycle {
            self.cursor = ((progress * self.cycle.len() as f64) as usize).min(self.cycle.len() - 1);
        } else if self.smooth.is_empty() {
            let at = self.open.partition_point(|&t| t < next);
            self.cursor = if at == self.open.len() { 0 } else { at };
        } else {
            self.smooth.iter_mut().zip(values).for_each(|(slot, value)| slot.0 = value);
        }
    }

    /// The next target; `None` if there is none. The excluded are left out while others remain.
    #[inline]
    pub fn pick(&mut self, exclude: &[u32]) -> Option<u32> {
        if self.open.is_empty() {
            return None;
        }
        if !self.smooth.is_empty() {
            if self.on_cycle && exclude.is_empty() {
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
    pub fn pick_where(&mut self, barred: impl Fn(u32) -> bool) -> Option<u32> {
        if self.smooth.is_empty() { self.turn_where(barred) } else { self.step_off(barred) }
    }

    #[inline]
    fn turn(&mut self) -> u32 {
        let target = self.open[self.cursor];
        self.cursor = if self.cursor + 1 == self.open.len() { 0 } else { self.cursor + 1 };
        target
    }

    #[cold]
    fn turn_where(&mut self, barred: impl Fn(u32) -> bool) -> Option<u32> {
        (0..self.open.len()).map(|_| self.turn()).find(|&t| !barred(t))
    }

    #[cold]
    fn step_without(&mut self, exclude: &[u32]) -> Option<u32> {
        self.step_off(|t| exclude.contains(&t)).or_else(|| self.step_off(|_| false))
    }

    /// A step of the values, which leaves the written cycle until they are all zero again.
    fn step_off(&mut self, barred: impl Fn(u32) -> bool) -> Option<u32> {
        if self.on_cycle {
            self.on_cycle = false;
            for _ in 0..self.cursor {
                self.step(|_| false);
            }
        }
        let target = self.step(barred);
        if !self.cycle.is_empty() && self.smooth.iter().all(|(current, _)| *current == 0) {
            (self.on_cycle, self.cursor) = (true, 0);
        }
        target
    }

    #[inline]
    fn step(&mut self, barred: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut best, mut total) = (None, 0);
        for (i, (current, weight)) in self.smooth.iter_mut().enumerate() {
            if barred(self.open[i]) {
                continue;
            }
            *current += *weight;
            total += *weight;
            if best.is_none_or(|(_, value)| *current > value) {
                best = Some((i, *current));
            }
        }
        let (i, _) = best?;
        self.smooth[i].0 -= total;
        Some(self.open[i])
    }
}

/// (0, weight) of each open target, divided by what the weights have in common; nothing where they are equal.
///
/// Weights are whole in the file. Those that slow start or a change at run time makes are kept to a thousandth.
fn values(weights: &[f64], open: &[u32]) -> Vec<(i64, i64)> {
    let fraction = open.iter().any(|&i| weights[i as usize].fract() != 0.0);
    let scale = if fraction { 1000.0 } else { 1.0 };
    let whole = |i: &u32| ((weights[*i as usize] * scale + 0.5 * f64::from(fraction)) as i64).max(1);
    let first = open.first().map(whole);
    if open.iter().map(whole).all(|w| Some(w) == first) {
        return Vec::new();
    }
    let common = open.iter().map(whole).fold(0, gcd).max(1);
    open.iter().map(|i| (0, whole(i) / common)).collect()
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(weights: &[f64], n: usize) -> Vec<u32> {
        let mut lb = RoundRobin::new(weights, Start::First, Key::new(0));
        (0..n).map(|_| lb.pick(&[]).unwrap()).collect()
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
                seen[lb.pick(&[]).unwrap() as usize] += 1.0;
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
            seen[lb.pick(&[]).unwrap() as usize] += 1;
        }
        assert!(seen.iter().all(|c| (850..1150).contains(c)), "{seen:?}");
    }

    #[test]
    fn long_sequences_are_told_apart() {
        assert!(!is_too_long(&[5e9, 5e9, 5e9]) && !is_too_long(&[]) && !is_too_long(&[0.0]));
        assert!(!is_too_long(&[2e9, 4e9]), "1 and 2");
        assert!(is_too_long(&[1_000_000_007.0, 1.0]) && is_too_long(&[1e300, 1.0]));
    }

    /// The written cycle and the bare algorithm agree, with and without targets left out.
    #[test]
    fn a_written_cycle_changes_no_pick() {
        for seed in 0..100u64 {
            let draw = Key::new(seed);
            let weights: Vec<f64> = (0..4).map(|i| (1 + draw.nth(i).below(7)) as f64).collect();
            let mut written = RoundRobin::new(&weights, Start::First, draw);
            let mut bare = written.clone();
            (bare.cycle, bare.on_cycle) = (Vec::new(), false);
            for i in 0..400u64 {
                let exclude: &[u32] = if draw.with(i).unit() < 0.05 { &[1] } else { &[] };
                assert_eq!(written.pick(exclude), bare.pick(exclude), "{weights:?}, pick {i}");
            }
        }
    }

    #[test]
    fn the_excluded_are_left_out_while_others_remain() {
        for weights in [[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]] {
            let mut lb = RoundRobin::new(&weights, Start::First, Key::new(0));
            assert!((0..20).all(|_| lb.pick(&[0]).unwrap() != 0));
            assert!((0..20).all(|_| lb.pick(&[0, 1]).unwrap() == 2));
            assert!(lb.pick(&[0, 1, 2]).is_some());
        }
    }
}
