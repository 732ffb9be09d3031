//! The cheaper of two drawn targets, where cost is a latency that rises at once and falls slowly, times what is in flight.
//!
//! - Idea: a target that was slow once is believed slow until enough time or enough good answers say otherwise.
//! - Signal: the time from pick to answer, and requests in flight, both from this balancer. State: cost, stamp and count per target.
//! - Cost of a decision: O(1), two exponentials.
//! - Formula: an answer after `rtt` gives cost := rtt if rtt > cost, else cost·w + rtt·(1 − w), w = e^(−dt/decay); unseen, cost
//!   decays as w. Load = cost·(in flight + 1) / weight. A new target costs `default_rtt`.
//! - Choices: looking changes nothing (Finagle's and tower's `load` writes the decay back, so that a target that is looked at
//!   often forgets its answers sooner). An answer that is an error, or was cut off, may raise the cost and never lowers it:
//!   else a target that fails fast would draw all traffic.
//! - Pathologies: an idle bad target is tried again every few `decay`; a `default_rtt` below what others take draws a burst.
//! - Source: Finagle `PeakEwma`, tower/linkerd `peak_ewma`. In the language: `lb.peak_ewma(targets, decay=10*s, default_rtt=30*ms)`.

use crate::Outcome;
use weir_stats::{Key, math};

/// Draws that may meet a barred target before the rest is enumerated.
const TRIALS: u64 = 34;

#[derive(Clone, Copy, Debug)]
struct Cost {
    ns: f64,
    stamp: u64,
    in_flight: u32,
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    decay_ns: f64,
    default_rtt_ns: f64,
    open: Vec<u32>,
    weights: Vec<f64>,
    costs: Vec<Cost>,
    /// Used within a pick only.
    rest: Vec<u32>,
}

impl PeakEwma {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64], decay_ns: u64, default_rtt_ns: u64) -> PeakEwma {
        let mut lb = PeakEwma {
            decay_ns: (decay_ns as f64).max(1.0),
            default_rtt_ns: default_rtt_ns as f64,
            open: Vec::new(),
            weights: Vec::new(),
            costs: Vec::new(),
            rest: Vec::new(),
        };
        lb.refresh(weights, 0);
        lb
    }

    /// Other weights from now on, of these and perhaps of more targets; estimates and counts go on.
    pub fn refresh(&mut self, weights: &[f64], now: u64) {
        self.open.clear();
        self.open.extend((0..weights.len() as u32).filter(|&i| weights[i as usize] > 0.0));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        let new = Cost { ns: self.default_rtt_ns, stamp: now, in_flight: 0 };
        self.costs.resize(weights.len(), new);
    }

    /// A target that is another from now on: nothing is known of it.
    pub fn forget(&mut self, target: u32, now: u64) {
        let cost = &mut self.costs[target as usize];
        (cost.ns, cost.stamp) = (self.default_rtt_ns, now);
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: u32) -> u32 {
        self.costs[target as usize].in_flight
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.costs.iter().map(|c| u64::from(c.in_flight)).sum()
    }

    /// What a target costs now, ns.
    pub fn cost_ns(&self, target: u32, now: u64) -> f64 {
        let cost = &self.costs[target as usize];
        cost.ns * self.weight_of_past(cost.stamp, now)
    }

    fn weight_of_past(&self, stamp: u64, now: u64) -> f64 {
        match now.saturating_sub(stamp) {
            0 => 1.0,
            dt => math::exp(-(dt as f64) / self.decay_ns),
        }
    }

    fn load(&self, target: u32, now: u64) -> f64 {
        let in_flight = f64::from(self.costs[target as usize].in_flight + 1);
        self.cost_ns(target, now) * in_flight / self.weights[target as usize]
    }

    fn better(&self, a: u32, b: u32, now: u64) -> u32 {
        if a != b && self.load(b, now) < self.load(a, now) { b } else { a }
    }

    /// Chooses and counts a target that is not barred; `None` if there is none.
    pub fn pick_where(&mut self, draw: Key, now: u64, barred: impl Fn(u32) -> bool) -> Option<u32> {
        let target = self.draw_two(draw, now, &barred).or_else(|| self.enumerate(draw, now, &barred))?;
        self.take(target);
        Some(target)
    }

    fn draw_two(&self, draw: Key, now: u64, barred: &impl Fn(u32) -> bool) -> Option<u32> {
        let n = self.open.len() as u64;
        let mut first = None;
        for trial in 0..if n > 0 { TRIALS } else { 0 } {
            let target = self.open[draw.nth(trial).below(n) as usize];
            if barred(target) || first == Some(target) {
                continue;
            }
            match first {
                Some(first) => return Some(self.better(first, target, now)),
                None if n == 1 => return Some(target),
                None => first = Some(target),
            }
        }
        None
    }

    #[cold]
    fn enumerate(&mut self, draw: Key, now: u64, barred: &impl Fn(u32) -> bool) -> Option<u32> {
        let (open, rest) = (&self.open, &mut self.rest);
        rest.clear();
        rest.extend(open.iter().copied().filter(|&t| !barred(t)));
        match self.rest.len() as u64 {
            0 => None,
            1 => Some(self.rest[0]),
            n => {
                let i = draw.nth(TRIALS).below(n);
                let j = draw.nth(TRIALS + 1).below(n - 1);
                let j = j + u64::from(j >= i);
                Some(self.better(self.rest[i as usize], self.rest[j as usize], now))
            }
        }
    }

    /// Counts a request at a target that was chosen elsewhere.
    #[inline]
    pub fn take(&mut self, target: u32) {
        self.costs[target as usize].in_flight += 1;
    }

    /// A request has come back after `rtt_ns`.
    pub fn done(&mut self, target: u32, now: u64, rtt_ns: u64, outcome: Outcome) {
        self.release(target);
        let (rtt, known) = (rtt_ns as f64, self.costs[target as usize]);
        let past = self.weight_of_past(known.stamp, now);
        let decayed = known.ns * past;
        let next = if rtt > known.ns {
            rtt
        } else if outcome.is_none() {
            decayed + rtt * (1.0 - past)
        } else {
            // Only what the clock alone would have left, or the time that it took if that is more.
            rtt.max(decayed)
        };
        let cost = &mut self.costs[target as usize];
        (cost.ns, cost.stamp) = (next, known.stamp.max(now));
    }

    /// A request left without an answer that says anything.
    pub fn release(&mut self, target: u32) {
        let count = &mut self.costs[target as usize].in_flight;
        debug_assert!(*count > 0, "a target with nothing in flight released a request");
        *count = count.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    fn lb(n: usize) -> PeakEwma {
        PeakEwma::new(&vec![1.0; n], 10 * S, 30 * MS)
    }

    fn close(got_ns: f64, want_ms: f64) {
        assert!((got_ns / 1e6 - want_ms).abs() < 0.005, "{} ms, not {want_ms}", got_ns / 1e6);
    }

    fn answer(lb: &mut PeakEwma, at: u64, rtt_ms: u64, outcome: Outcome) {
        lb.take(0);
        lb.done(0, at, rtt_ms * MS, outcome);
    }

    /// The oracles of the notes: decay of an idle target, and of a spike under good answers.
    #[test]
    fn costs_are_those_of_the_formula() {
        let lb1 = lb(1);
        close(lb1.cost_ns(0, 5 * S), 18.20);
        close(lb1.cost_ns(0, 10 * S), 11.04);
        close(lb1.cost_ns(0, 6_931_471_806), 15.00);
        let mut spike = lb(1);
        answer(&mut spike, 0, 1000, None);
        for k in 1..=20u64 {
            answer(&mut spike, k * S, 10, None);
            close(spike.cost_ns(0, k * S), 10.0 + 990.0 * math::exp(-(k as f64) / 10.0));
        }
        let mut same = lb(1);
        answer(&mut same, 0, 30, None);
        close(same.cost_ns(0, 0), 30.0);
        let mut looked = lb(1);
        (0..1000).for_each(|i| close(looked.cost_ns(0, i * MS), 30.0 * math::exp(-(i as f64) / 10_000.0)));
        answer(&mut looked, S, 10, None);
        close(looked.cost_ns(0, S), 10.0 + 20.0 * math::exp(-0.1));
    }

    #[test]
    fn errors_raise_the_cost_and_never_lower_it() {
        let mut failing = lb(1);
        answer(&mut failing, S, 0, Some(Kind::Refused));
        close(failing.cost_ns(0, S), 30.0 * math::exp(-0.1));
        answer(&mut failing, S, 70, Some(Kind::Timeout));
        close(failing.cost_ns(0, S), 70.0);
    }

    /// The model that a reader believes at sight, by shares over many draws.
    #[test]
    fn the_cheaper_of_two_distinct_draws_is_taken() {
        let mut three = lb(3);
        for (t, rtt) in [(0, 10), (1, 20), (2, 40)] {
            three.costs[t].ns = (rtt * MS) as f64;
        }
        three.costs[0].in_flight = 2; // 30 against 20 and 40: the second beats both, the first the third
        let shares = |lb: &PeakEwma, barred: u32| {
            let mut seen = [0.0; 3];
            for i in 0..30_000 {
                seen[lb.clone().pick_where(Key::new(1).with(i), 0, |t| t == barred).unwrap() as usize] +=
                    1.0 / 3e4;
            }
            seen
        };
        let close = |got: [f64; 3], want: [f64; 3]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.015), "{got:?} {want:?}");
        };
        close(shares(&three, 9), [1.0 / 3.0, 2.0 / 3.0, 0.0]);
        close(shares(&three, 1), [1.0, 0.0, 0.0]);
        three.weights[2] = 4.0; // now it costs 10
        close(shares(&three, 9), [0.0, 1.0 / 3.0, 2.0 / 3.0]);
        close(shares(&lb(3), 9), [1.0 / 3.0; 3]);
        assert_eq!(lb(2).pick_where(Key::new(1), 0, |_| true), None);
        assert_eq!(lb(1).pick_where(Key::new(1), 0, |_| false), Some(0));
    }

    /// One of ten is ten times slower: it gets next to nothing.
    #[test]
    fn a_slow_target_is_avoided() {
        let mut lb = lb(10);
        let mut seen = [0; 10];
        for i in 0..20_000u64 {
            let now = i * 5 * MS;
            let t = lb.pick_where(Key::new(3).with(i), now, |_| false).unwrap();
            seen[t as usize] += 1;
            let rtt = if t == 9 { 100 } else { 10 };
            lb.done(t, now + rtt * MS, rtt * MS, None);
        }
        assert!(seen[9] < 200 && seen[..9].iter().all(|c| (1900..2500).contains(c)), "{seen:?}");
        assert_eq!(lb.total_in_flight(), 0);
    }
}
