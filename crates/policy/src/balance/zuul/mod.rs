//! The better of two drawn targets by failures, reported load and requests in flight: Netflix's choice of two.
//!
//! - Idea: what a balancer sees itself is not enough, since each of many balancers sees little of a target. So targets
//!   report in a field of each answer how busy they are, failures weigh more than any load, and a target of which
//!   nothing is known gets one request at a time (probation).
//! - Signal: how requests ended, the load in the answers, requests in flight; all from this balancer. State: 32 bytes per
//!   target.
//! - Cost of a decision: O(1), two divisions for each of the two; O(n) where most targets are passed over.
//! - Formula: a is better than b if its score is lower: 4·E + U + Q. E, the share of failures, is a moving average over
//!   about eight ends: E + (x − E)/8, x = 1 for what `eject` counts, else 0. U is the load that was read last. Both fall
//!   to 0 in a straight line over `decay` since the target was last heard from, and an end changes what they have fallen
//!   to. Q = a/(a + b + 1) with the requests in flight by weight, a = q_a/w_a. Of equal scores the first drawn is taken.
//! - Draws: two distinct targets, uniformly among those that may be picked; weights matter to Q alone. Passed over while
//!   another is left: targets whose U is above `max_load`, and those never heard from that have a request in flight.
//! - A request that was cancelled says nothing; one that a `timeout` around the balancer cut off is a failure.
//! - Choices: an excluded target is taken only after those that are passed over here. Looking changes nothing. In a subset
//!   targets are passed over within it: a cold start must not send a loop to the targets of others.
//! - Pathologies: rates per target differ more than by any policy that spreads evenly, as they follow what targets
//!   report, so a canary is harder to judge (`docs/policies.md#choice-of-two`); a target that reports no load is taken
//!   for an idle one; loads are as old as the last answer, so many loops with few answers each see late.
//! - Source: Mike Smith and others, "Rethinking Netflix's Edge Load Balancing" (2018). The article gives no numbers for
//!   the sum, the average and the decay but 30 s; those here are weir's own.
//! - In the language: `lb.zuul(targets, load="x-load", decay=30*s, max_load=None)`.
//! - Elsewhere: the field in [`field`]; arguments and reference text in `topology/src/nodes/lb/zuul.rs`; checks of a plan
//!   in `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`; what a built-in server reports
//!   in `model/src/busy.rs`.

pub mod field;

use crate::balance::Ask;
use crate::balance::open::change_few;
use crate::balance::policy::{Policy, Release, Traits};
use crate::balance::roster::Roster;
use crate::ds::counts::SharedCounts;
use crate::outcome::is_failure;
use crate::{Kind, Outcome, TargetId};
use serde::{Deserialize, Serialize};
use weir_stats::Key;

/// The arguments of `lb.zuul`, without the targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ZuulArgs {
    /// The field of an answer that has the load, in lower case.
    pub load: String,
    /// The time after which nothing counts any more of a target that was not heard from, ns.
    pub decay_ns: u64,
    /// Targets with more load are passed over; 0 to 1. `None`: none are.
    pub max_load: Option<f64>,
}

/// How much failures weigh against load.
const FAILURE_WEIGHT: f64 = 4.0;
/// Ends over which failures are averaged.
const ENDS: f64 = 8.0;
/// Draws that may meet a target that is left out before the rest is enumerated.
const TRIALS: u64 = 34;
/// The stamp of a target that was never heard from.
const NEVER: u64 = u64::MAX;

/// What is known of a target: 32 bytes, two in a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Record {
    /// The share of failures, and the load, both as of the stamp.
    failures: f64,
    load: f64,
    /// When it was last heard from, ns, or [`NEVER`].
    stamp: u64,
    in_flight: u32,
    /// The load as it was read last; NaN: none was.
    reported: f32,
}

const UNKNOWN: Record = Record { failures: 0.0, load: 0.0, stamp: NEVER, in_flight: 0, reported: f32::NAN };

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct Zuul {
    decay_ns: f64,
    /// Infinite without a limit.
    max_load: f64,
    open: Vec<TargetId>,
    weights: Vec<f64>,
    known: Vec<Record>,
    /// The counts of all loops, which are compared in place of its own.
    shared: Option<SharedCounts>,
    /// Used within a pick only.
    rest: Vec<TargetId>,
}

impl Zuul {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64], decay_ns: u64, max_load: Option<f64>) -> Zuul {
        let mut lb = Zuul {
            decay_ns: (decay_ns as f64).max(1.0),
            max_load: max_load.unwrap_or(f64::INFINITY),
            open: Vec::new(),
            weights: Vec::new(),
            known: Vec::new(),
            shared: None,
            rest: Vec::new(),
        };
        lb.refresh(weights);
        lb
    }

    /// Other weights from now on, of these and perhaps of more targets; what is known of them stays.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.make_room(weights.len());
    }

    /// Room for what is known of this many targets, and for a list of them.
    fn make_room(&mut self, targets: usize) {
        self.known.resize(targets, UNKNOWN);
        self.rest.clear();
        self.rest.reserve(targets);
    }

    /// Forgets a target's history, as another server takes its place.
    pub fn forget(&mut self, target: TargetId) {
        let known = &mut self.known[target.index()];
        *known = Record { in_flight: known.in_flight, ..UNKNOWN };
    }

    /// Takes over what another has learnt of the same targets; counts stay its own.
    pub fn learn_from(&mut self, old: &Zuul) {
        for (own, old) in self.known.iter_mut().zip(&old.known) {
            *own = Record { in_flight: own.in_flight, ..*old };
        }
    }

    /// Requests in flight at a target, as this balancer counts them.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        self.known[target.index()].in_flight
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.known.iter().map(|known| u64::from(known.in_flight)).sum()
    }

    /// Sets how many are in flight at a target, as all loops count them.
    pub fn set_count(&mut self, target: TargetId, count: u32) {
        if let Some(own) = self.known.get_mut(target.index()) {
            own.in_flight = count;
        }
    }

    /// Compares what all loops have in flight from now on; `None`: what this balancer has.
    pub fn compare_counts(&mut self, shared: Option<SharedCounts>) {
        self.shared = shared;
    }

    /// The load that was read last in an answer of a target, 0 to 1; `None`: none was.
    pub fn reported(&self, target: TargetId) -> Option<f32> {
        self.known.get(target.index()).map(|known| known.reported).filter(|load| !load.is_nan())
    }

    /// What is left at this time of what was known at the stamp: 1 to 0.
    fn left(&self, known: &Record, now_ns: u64) -> f64 {
        let silent_ns = now_ns.saturating_sub(known.stamp) as f64;
        (1.0 - silent_ns / self.decay_ns).max(0.0)
    }

    /// The share of failures and the load of a target at this time.
    pub fn failures_and_load(&self, target: TargetId, now_ns: u64) -> (f64, f64) {
        let known = &self.known[target.index()];
        let left = self.left(known, now_ns);
        (known.failures * left, known.load * left)
    }

    /// Requests in flight that are compared.
    fn compared(&self, target: TargetId) -> u32 {
        self.shared.as_ref().map_or(self.known[target.index()].in_flight, |shared| shared.get(target))
    }

    /// The scores of two targets against each other; the lower is better.
    pub fn scores(&self, a: TargetId, b: TargetId, now_ns: u64) -> (f64, f64) {
        let in_flight = |target: TargetId| f64::from(self.compared(target)) / self.weights[target.index()];
        let (at_a, at_b) = (in_flight(a), in_flight(b));
        let all = at_a + at_b + 1.0;
        let score = |target, in_flight: f64| {
            let (failures, load) = self.failures_and_load(target, now_ns);
            FAILURE_WEIGHT * failures + load + in_flight / all
        };
        (score(a, at_a), score(b, at_b))
    }

    /// The one to take of two in the order in which they were drawn.
    fn better(&self, first: TargetId, second: TargetId, now_ns: u64) -> TargetId {
        let (of_first, of_second) = self.scores(first, second, now_ns);
        if of_second < of_first { second } else { first }
    }

    /// Whether a target is left out as long as another is there.
    fn is_passed_over(&self, target: TargetId, now_ns: u64) -> bool {
        let known = &self.known[target.index()];
        if known.stamp == NEVER {
            return self.compared(target) > 0;
        }
        known.load > self.max_load && known.load * self.left(known, now_ns) > self.max_load
    }

    /// Chooses and counts a target that is not barred; `None` if there is none.
    pub fn pick_where(
        &mut self,
        draw: Key,
        now_ns: u64,
        barred: impl Fn(TargetId) -> bool,
    ) -> Option<TargetId> {
        let out = |lb: &Zuul, target| barred(target) || lb.is_passed_over(target, now_ns);
        let target = match self.draw_two(draw, now_ns, |target| out(self, target)) {
            Some(target) => target,
            None => self
                .enumerate(draw, now_ns, out)
                .or_else(|| self.enumerate(draw, now_ns, |_, target| barred(target)))?,
        };
        self.take(target);
        Some(target)
    }

    /// Two distinct draws, each repeated until it meets a target that is not out; `None` where too many do not.
    fn draw_two(&self, draw: Key, now_ns: u64, out: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let n = self.open.len() as u64;
        if n < 2 {
            return self.open.first().copied().filter(|&target| !out(target));
        }
        let mut first = None;
        for trial in 0..TRIALS {
            let (at, target) = match first {
                None => self.drawn(draw.nth(trial).below(n)),
                // One of the others, so that the two are distinct at once.
                Some((at, _)) => {
                    let other = draw.nth(trial).below(n - 1);
                    self.drawn(other + u64::from(other >= at))
                }
            };
            match first {
                _ if out(target) => {}
                Some((_, first)) => return Some(self.better(first, target, now_ns)),
                None => first = Some((at, target)),
            }
        }
        None
    }

    fn drawn(&self, at: u64) -> (u64, TargetId) {
        (at, self.open[at as usize])
    }

    /// The better of two drawn from a list of those that are not out.
    #[cold]
    fn enumerate(
        &mut self,
        draw: Key,
        now_ns: u64,
        out: impl Fn(&Zuul, TargetId) -> bool,
    ) -> Option<TargetId> {
        let mut rest = std::mem::take(&mut self.rest);
        rest.clear();
        rest.extend(self.open.iter().copied().filter(|&target| !out(self, target)));
        let target = match rest.len() as u64 {
            0 => None,
            1 => Some(rest[0]),
            n => {
                let i = draw.nth(TRIALS).below(n);
                let j = draw.nth(TRIALS + 1).below(n - 1);
                let j = j + u64::from(j >= i);
                Some(self.better(rest[i as usize], rest[j as usize], now_ns))
            }
        };
        self.rest = rest;
        target
    }

    /// Counts a request at a target that was chosen elsewhere.
    #[inline]
    pub fn take(&mut self, target: TargetId) {
        self.known[target.index()].in_flight += 1;
    }

    /// A request left without an answer that says anything.
    pub fn release(&mut self, target: TargetId) {
        let count = &mut self.known[target.index()].in_flight;
        debug_assert!(*count > 0, "a target with nothing in flight released a request");
        *count = count.saturating_sub(1);
    }

    /// A target was heard from: what is known of it is as of now.
    fn hear(&mut self, target: TargetId, now_ns: u64) -> &mut Record {
        let left = self.left(&self.known[target.index()], now_ns);
        let known = &mut self.known[target.index()];
        (known.failures, known.load) = (known.failures * left, known.load * left);
        known.stamp = if known.stamp == NEVER { now_ns } else { known.stamp.max(now_ns) };
        known
    }

    /// A request has come back.
    pub fn done(&mut self, target: TargetId, now_ns: u64, outcome: Outcome) {
        self.release(target);
        if outcome == Some(Kind::Cancelled) {
            return;
        }
        let failed = if outcome.is_some_and(is_failure) { 1.0 } else { 0.0 };
        let known = self.hear(target, now_ns);
        known.failures += (failed - known.failures) / ENDS;
    }

    /// An answer of a target reports a load: 0 to 1, more counts as 1.
    pub fn loaded(&mut self, target: TargetId, now_ns: u64, load: f32) {
        if load.is_nan() || target.index() >= self.known.len() {
            return;
        }
        let load = load.clamp(0.0, 1.0);
        let known = self.hear(target, now_ns);
        (known.load, known.reported) = (f64::from(load), load);
    }
}

impl Policy for Zuul {
    type Args = ZuulArgs;
    const NAME: &'static str = "lb.zuul";
    const TRAITS: Traits = Traits { counts: true, measures: true, ..Traits::PLAIN };

    fn build(args: &ZuulArgs, roster: &Roster, _draw: Key) -> Zuul {
        Zuul::new(roster.effective(), args.decay_ns, args.max_load)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn follow_few(&mut self, _now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        let weights = roster.effective();
        if !change_few(&mut self.open, weights, changed) {
            return self.refresh(weights);
        }
        self.weights.resize(weights.len(), 0.0);
        self.make_room(weights.len());
        changed.iter().for_each(|target| self.weights[target.index()] = weights[target.index()]);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, ask.now_ns, barred)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        Zuul::take(self, target);
    }

    #[inline(always)]
    fn release(&mut self, target: TargetId) {
        Zuul::release(self, target);
    }

    fn finished(&mut self, now_ns: u64, target: TargetId, _took_ns: u64, outcome: Outcome) -> Release {
        Zuul::done(self, target, now_ns, outcome);
        Release::Now
    }

    fn timed_out(&mut self, now_ns: u64, target: TargetId, _took_ns: u64) {
        Zuul::done(self, target, now_ns, Some(Kind::Timeout));
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.total_in_flight()
    }

    fn forget_target(&mut self, _now_ns: u64, target: TargetId) {
        self.forget(target);
    }

    fn learn(&mut self, old: &Zuul) {
        self.learn_from(old);
    }
}

#[cfg(test)]
mod tests;
