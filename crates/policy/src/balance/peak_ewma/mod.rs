//! The cheaper of two drawn targets, where cost is a latency that rises at once and falls slowly, times what is in
//! flight.
//!
//! - Idea: a target that was slow once is believed slow until enough time or enough good answers say otherwise. A short
//!   latency speaks for a target only if it ended well.
//! - Signal: the time from pick to answer, how it ended, and requests in flight, all from this balancer. State: cost,
//!   stamp and count per target; whether it failed last; what was cancelled there since its last success.
//! - Cost of a decision: O(1), two exponentials.
//! - Formula: an answer after `rtt` gives cost := rtt if rtt > cost, else cost·w + rtt·(1 − w), w = e^(−dt/decay);
//!   unseen, cost decays as w. A new target costs `default_rtt`. Load = cost·(in flight + cancelled + 1) / weight,
//!   cancelled being the requests cancelled since the last success there, at most 16.
//! - Errors: they may raise the cost and never lower it. Of two drawn of which exactly one failed last, the first drawn
//!   is taken, whatever they cost: one of n gets 1/n at most, and competes by its cost again from its first success on.
//!   If the one that failed has less weight than the other, it is taken in that proportion only: a light one gains
//!   nothing either.
//! - Cancelled requests: they raise the cost to the time that they took, and until a success time alone does not bring
//!   it below that. It is unknown whether the target still works on them, so they weigh like requests in flight: a
//!   target that hangs behind a `timeout` is not cheap because the time limit is short. It might never be cheap again,
//!   so one in 64 of the picks that draw it first while it has nothing in flight takes it: 1/(64·n) of all.
//! - Choices: looking changes nothing (Finagle's and tower's `load` writes the decay back, so that a target that is
//!   looked at often forgets its answers sooner). A success forgets what was cancelled before, as it came back in spite
//!   of it.
//! - Pathologies: an idle bad target is tried again every few `decay`; a `default_rtt` below what others take draws a
//!   burst; a target that fails gets its even share however long its errors take (`eject` ends that).
//! - Source: Finagle `PeakEwma`, tower/linkerd `peak_ewma`; what failed and what was cancelled: weir's own.
//! - In the language: `lb.peak_ewma(targets, decay=10*s, default_rtt=30*ms)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/peak_ewma.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

use crate::balance::Ask;
use crate::balance::policy::{Policy, Release, Traits};
use crate::balance::roster::Roster;
use crate::{Kind, Outcome, TargetId};
use serde::{Deserialize, Serialize};
use weir_stats::{Key, math};

/// The arguments of `lb.peak_ewma`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeakEwmaArgs {
    /// After this time a cost has fallen to 1/e, ns.
    pub decay_ns: u64,
    /// What a target costs of which nothing is known, ns.
    pub default_rtt_ns: u64,
}

/// Draws that may meet a barred target before the rest is enumerated.
const TRIALS: u64 = 34;
/// The draw that decides about doubts: none of the two that choose among the enumerated.
const DOUBT: u64 = TRIALS + 2;
/// One in this number of picks tries a target that was cancelled and has not answered since.
const TRIED: u64 = 64;
/// More cancelled requests in a row than this weigh no more: when all targets come back from a stall, the first to
/// answer must not get everything.
const MOST_CANCELLED: u8 = 16;

/// The state of a target: 32 bytes, two in a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    ns: f64,
    stamp: u64,
    /// The longest time, ns, after which a request was cancelled since the last success: time alone stops there.
    floor_ns: f64,
    in_flight: u32,
    /// Requests cancelled since the last success, at most [`MOST_CANCELLED`].
    cancelled: u8,
    /// The last answer was an error.
    failed: bool,
}

impl Cost {
    fn unknown(default_rtt_ns: f64, now_ns: u64) -> Cost {
        Cost { ns: default_rtt_ns, stamp: now_ns, floor_ns: 0.0, in_flight: 0, cancelled: 0, failed: false }
    }
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct PeakEwma {
    decay_ns: f64,
    default_rtt_ns: f64,
    open: Vec<TargetId>,
    weights: Vec<f64>,
    costs: Vec<Cost>,
    /// Used within a pick only.
    rest: Vec<TargetId>,
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
    pub fn refresh(&mut self, weights: &[f64], now_ns: u64) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.costs.resize(weights.len(), Cost::unknown(self.default_rtt_ns, now_ns));
    }

    /// A target that is another from now on: nothing is known of it.
    pub fn forget(&mut self, target: TargetId, now_ns: u64) {
        let cost = &mut self.costs[target.index()];
        *cost = Cost { in_flight: cost.in_flight, ..Cost::unknown(self.default_rtt_ns, now_ns) };
    }

    /// Takes over what another has learnt of the same targets; counts stay its own.
    pub fn learn_from(&mut self, old: &PeakEwma) {
        for (own, old) in self.costs.iter_mut().zip(&old.costs) {
            *own = Cost { in_flight: own.in_flight, ..*old };
        }
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        self.costs[target.index()].in_flight
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.costs.iter().map(|c| u64::from(c.in_flight)).sum()
    }

    /// What a target costs now, ns.
    pub fn cost_ns(&self, target: TargetId, now_ns: u64) -> f64 {
        let cost = &self.costs[target.index()];
        let decayed = cost.ns * self.weight_of_past(cost.stamp, now_ns);
        if decayed < cost.floor_ns { cost.floor_ns } else { decayed }
    }

    fn weight_of_past(&self, stamp: u64, now_ns: u64) -> f64 {
        match now_ns.saturating_sub(stamp) {
            0 => 1.0,
            dt => math::exp(-(dt as f64) / self.decay_ns),
        }
    }

    fn load(&self, target: TargetId, now_ns: u64) -> f64 {
        let cost = &self.costs[target.index()];
        let requests = f64::from(cost.in_flight + u32::from(cost.cancelled) + 1);
        self.cost_ns(target, now_ns) * requests / self.weights[target.index()]
    }

    /// The one to take of two in the order in which they were drawn.
    fn better(&self, first: TargetId, second: TargetId, draw: Key, now_ns: u64) -> TargetId {
        let (a, b) = (&self.costs[first.index()], &self.costs[second.index()]);
        if (a.failed != b.failed || a.cancelled > 0)
            && let Some(target) = self.by_doubt(first, second, draw.nth(DOUBT))
        {
            return target;
        }
        if self.load(second, now_ns) < self.load(first, now_ns) { second } else { first }
    }

    /// The one to take where the first was cancelled or exactly one failed last, if that decides.
    #[cold]
    fn by_doubt(&self, first: TargetId, second: TargetId, draw: Key) -> Option<TargetId> {
        let (a, b) = (&self.costs[first.index()], &self.costs[second.index()]);
        if a.failed != b.failed {
            let share = self.weights[first.index()] / self.weights[second.index()];
            let passed_over = a.failed && share < 1.0 && draw.unit() >= share;
            return Some(if passed_over { second } else { first });
        }
        (a.in_flight == 0 && draw.below(TRIED) == 0).then_some(first)
    }

    /// Chooses and counts a target that is not barred; `None` if there is none.
    pub fn pick_where(
        &mut self,
        draw: Key,
        now_ns: u64,
        barred: impl Fn(TargetId) -> bool,
    ) -> Option<TargetId> {
        let target =
            self.draw_two(draw, now_ns, &barred).or_else(|| self.enumerate(draw, now_ns, &barred))?;
        self.take(target);
        Some(target)
    }

    fn draw_two(&self, draw: Key, now_ns: u64, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let n = self.open.len() as u64;
        let mut first = None;
        for trial in 0..if n > 0 { TRIALS } else { 0 } {
            let target = self.open[draw.nth(trial).below(n) as usize];
            if barred(target) || first == Some(target) {
                continue;
            }
            match first {
                Some(first) => return Some(self.better(first, target, draw, now_ns)),
                None if n == 1 => return Some(target),
                None => first = Some(target),
            }
        }
        None
    }

    #[cold]
    fn enumerate(&mut self, draw: Key, now_ns: u64, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
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
                Some(self.better(self.rest[i as usize], self.rest[j as usize], draw, now_ns))
            }
        }
    }

    /// Counts a request at a target that was chosen elsewhere.
    #[inline]
    pub fn take(&mut self, target: TargetId) {
        self.costs[target.index()].in_flight += 1;
    }

    /// A request has come back after `rtt_ns`, or was cancelled then.
    pub fn done(&mut self, target: TargetId, now_ns: u64, rtt_ns: u64, outcome: Outcome) {
        self.release(target);
        // A fault of the request does not count against the target.
        if outcome == Some(Kind::BadRequest) {
            return;
        }
        let (rtt, known) = (rtt_ns as f64, self.costs[target.index()]);
        let past = self.weight_of_past(known.stamp, now_ns);
        let decayed = known.ns * past;
        let cost = &mut self.costs[target.index()];
        cost.stamp = known.stamp.max(now_ns);
        if outcome.is_none() {
            cost.ns = if rtt > known.ns { rtt } else { decayed + rtt * (1.0 - past) };
            (cost.floor_ns, cost.cancelled, cost.failed) = (0.0, 0, false);
            return;
        }
        // Only what the clock alone would have left, or the time that it took if that is more.
        cost.ns = rtt.max(decayed);
        if outcome == Some(Kind::Cancelled) {
            cost.floor_ns = cost.floor_ns.max(rtt);
            cost.cancelled = (cost.cancelled + 1).min(MOST_CANCELLED);
        } else {
            cost.failed = true;
        }
    }

    /// A request left without an answer that says anything.
    pub fn release(&mut self, target: TargetId) {
        let count = &mut self.costs[target.index()].in_flight;
        debug_assert!(*count > 0, "a target with nothing in flight released a request");
        *count = count.saturating_sub(1);
    }
}

impl Policy for PeakEwma {
    type Args = PeakEwmaArgs;
    const NAME: &'static str = "lb.peak_ewma";
    const TRAITS: Traits = Traits { counts: true, measures: true, ..Traits::PLAIN };

    fn build(args: &PeakEwmaArgs, roster: &Roster, _draw: Key) -> PeakEwma {
        PeakEwma::new(roster.effective(), args.decay_ns, args.default_rtt_ns)
    }

    fn follow(&mut self, now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective(), now_ns);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, ask.now_ns, barred)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        PeakEwma::take(self, target);
    }

    #[inline(always)]
    fn release(&mut self, target: TargetId) {
        PeakEwma::release(self, target);
    }

    fn finished(&mut self, now_ns: u64, target: TargetId, took_ns: u64, outcome: Outcome) -> Release {
        PeakEwma::done(self, target, now_ns, took_ns, outcome);
        Release::Now
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.total_in_flight()
    }

    fn estimate_ns(&self, now_ns: u64, target: TargetId) -> Option<f64> {
        Some(self.cost_ns(target, now_ns))
    }

    fn forget_target(&mut self, now_ns: u64, target: TargetId) {
        self.forget(target, now_ns);
    }

    fn learn(&mut self, old: &PeakEwma) {
        self.learn_from(old);
    }
}

#[cfg(test)]
mod tests;
