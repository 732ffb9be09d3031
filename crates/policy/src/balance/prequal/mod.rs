//! Prequal: asynchronous probes of requests in flight and latency; the hot are avoided, the fastest cold one is taken.
//!
//! - Idea: what a target says of itself is better than what one balancer sees. Each request has a few random targets
//!   probed, and is itself decided by answers that are there already, kept in a small pool.
//! - Signal: each target's own requests in flight (RIF), and the median latency of its latest answers to requests that
//!   met about as many there (`latencies.rs`). State: a pool of at most `pool` answers, the last 128 RIFs seen.
//! - Cost of a decision: O(pool), and `probes` probes.
//! - Formula: θ = the `q_rif` quantile of recent RIFs; hot if RIF > θ. Least latency / weight among the cold; if all
//!   are hot the least (RIF + 1) / weight; one of several equal ones at random. An answer is used b = max(1, (1 +
//!   delta) / ((1 − pool/n)·probes − remove)) times (rounded at random), adds 1 to its RIF each time, and is dropped
//!   after `age`. Per request `remove` answers go, the oldest and the worst in turn. With fewer than two usable
//!   answers: at random by weight.
//! - Errors: a target that fails at once looks empty ("sinkholing"). So an error drops the target's answer, and those
//!   that follow are not used until as many successes as errors have come back (16 at most). Until then a request picks
//!   it if a draw of one among n falls on it, unless its answer is hot: 1/n at most, and its weight's share where that
//!   is less. Else it is left out, at random as well.
//! - Cancelled requests: they raise the latency that is believed to the time that they took, until a success. It might
//!   never be the least again, so of the draws of one among n that fall on such a target one in 64 is heeded.
//! - Pathologies: needs targets that answer probes; a pool larger than the set of targets herds; stale answers herd
//!   too; a target that hangs behind a `timeout` is cold when others are hot (a `timeout` behind this balancer is an
//!   error); a median of a few answers that is too high stays until the target is picked again, which may be when the
//!   others are hot.
//! - Source: Wydrowski et al., "Load is not what you should balance" (NSDI 2024); what errors and cancelled requests do
//!   to a target: weir's own.
//! - In the language: `lb.prequal(targets, probes=3, pool=16, age=1*s, q_rif=0.84, remove=1, delta=1.0)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/prequal.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `tests.rs`.

mod busy;
mod doubts;
mod latencies;

use crate::balance::Ask;
use crate::balance::policy::{Policy, Release, Traits};
use crate::balance::random::Random;
use crate::balance::roster::Roster;
use crate::{Kind, Outcome, TargetId};
pub use busy::{Busy, Reading};
use doubts::Doubts;
use serde::{Deserialize, Serialize};
use std::mem::take;
use weir_stats::Key;

/// The arguments of `lb.prequal`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrequalArgs {
    /// Probes per request.
    pub probes: f64,
    /// Answers kept.
    pub pool: u32,
    /// How long one is used, ns.
    pub age_ns: u64,
    /// The quantile of requests in flight above which a target is hot.
    pub q_rif: f64,
    /// Answers removed per request.
    pub remove: f64,
    /// How much more often than they are removed answers may be used.
    pub delta: f64,
}

/// RIFs remembered for the quantile.
const REMEMBERED: usize = 128;

/// An answer in the pool.
#[derive(Clone, Copy, Debug)]
struct Answer {
    target: TargetId,
    rif: u32,
    latency_ns: u64,
    at: u64,
    uses: u32,
    /// It is not believed: its target failed.
    doubted: bool,
}

/// What the choice of targets to probe is drawn by, beside the request's draw.
const PROBES: u64 = 12;
/// What the choice of a doubted target is drawn by.
const DOUBT: u64 = 13;
/// What the choice among equal answers is drawn by.
const TIE: u64 = 14;
/// One in this number of draws of a target that was cancelled and has not answered since is heeded.
const TRIED: f64 = 64.0;

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct Prequal {
    how: PrequalArgs,
    weights: Vec<f64>,
    /// Of the targets of positive weight.
    mean_weight: f64,
    /// How often an answer is used, and the part of a further use; the former [`u32::MAX`]: without end.
    budget: (u32, f64),
    open: Vec<TargetId>,
    random: Random,
    doubts: Doubts,
    /// Oldest first.
    pool: Vec<Answer>,
    /// Whether some of them are of hidden targets, and not used.
    hides: bool,
    /// The last RIFs in order of arrival, and in order of size.
    recent: Vec<u32>,
    sorted: Vec<u32>,
    oldest: usize,
    /// Fractions of probes and removals not yet done.
    owed_probes: f64,
    owed_removals: f64,
    remove_worst: bool,
    /// Those being probed; kept for its memory.
    asked: Vec<TargetId>,
}

impl Prequal {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64], how: PrequalArgs) -> Prequal {
        let mut lb = Prequal {
            how,
            weights: Vec::new(),
            mean_weight: 1.0,
            budget: (u32::MAX, 0.0),
            open: Vec::new(),
            random: Random::new(&[]),
            doubts: Doubts::default(),
            pool: Vec::with_capacity(how.pool as usize + 1),
            hides: false,
            recent: Vec::with_capacity(REMEMBERED),
            sorted: Vec::with_capacity(REMEMBERED),
            oldest: 0,
            owed_probes: 0.0,
            owed_removals: 0.0,
            remove_worst: false,
            asked: Vec::new(),
        };
        lb.refresh(weights, |_| true);
        lb
    }

    /// Takes over what another has learnt of the same targets, as far as there is room for it.
    pub fn learn_from(&mut self, old: &Prequal) {
        self.doubts = old.doubts.clone();
        self.pool.extend(old.pool.iter().take(self.how.pool as usize).cloned());
        (self.recent, self.sorted, self.oldest) = (old.recent.clone(), old.sorted.clone(), old.oldest);
    }

    /// Other weights from now on, of these and perhaps of more targets; answers of those that stay are kept. Targets that
    /// are hidden for a while stay too, and their answers are not used meanwhile.
    pub fn refresh(&mut self, weights: &[f64], stays: impl Fn(TargetId) -> bool) {
        self.open.clear();
        self.open.extend(TargetId::all(weights.len() as u32).filter(|t| weights[t.index()] > 0.0));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        let sum: f64 = self.open.iter().map(|&t| weights[t.index()]).sum();
        self.mean_weight = sum / self.open.len().max(1) as f64;
        self.budget = self.reuse_budget();
        self.doubts.grow(weights.len());
        self.random.refresh(weights);
        self.pool.retain(|a| stays(a.target));
        self.hides = self.pool.iter().any(|a| weights[a.target.index()] <= 0.0);
    }

    /// The targets to probe for one request, distinct and uniformly drawn, into `out`. Each is as likely to be the
    /// first of them, since what is added to the pool first leaves it first.
    pub fn to_probe(&mut self, draw: Key, out: &mut Vec<TargetId>) {
        out.clear();
        self.owed_probes += self.how.probes;
        let wanted = (self.owed_probes + 1e-9).floor();
        self.owed_probes -= wanted;
        let n = self.open.len() as u64;
        for k in 0..(wanted as u64).min(n) {
            // Distinct draws: the k-th among those left, then the next not drawn (the few drawn are kept in order).
            let mut i = draw.nth(k).below(n - k) as u32;
            for &drawn in out.iter() {
                i += u32::from(drawn.0 <= i);
            }
            let at = out.partition_point(|d| d.0 < i);
            out.insert(at, TargetId(i));
        }
        let drawn = out.len();
        if drawn > 1 {
            out.rotate_left(draw.nth(n).below(drawn as u64) as usize);
        }
        // Places among the open ones until now.
        out.iter_mut().for_each(|i| *i = self.open[i.index()]);
    }

    /// The targets to probe for one request, drawn by its `draw`, into `out`, each with what its answer is to be drawn
    /// by ([`Prequal::probed`]): where answers take their time.
    pub fn whom(&mut self, draw: Key, out: &mut Vec<(TargetId, Key)>) {
        let draw = draw.with(PROBES);
        let mut asked = take(&mut self.asked);
        self.to_probe(draw, &mut asked);
        out.clear();
        out.extend((1u64..).zip(&asked).map(|(i, &target)| (target, draw.with(i))));
        self.asked = asked;
    }

    /// Probes targets for one request, drawn by its `draw`, where answers are there at once.
    pub fn probe(&mut self, now_ns: u64, draw: Key, read: impl Fn(TargetId) -> Reading) {
        let draw = draw.with(PROBES);
        let mut asked = take(&mut self.asked);
        self.to_probe(draw, &mut asked);
        for (i, &target) in (1u64..).zip(&asked) {
            self.probed(now_ns, draw.with(i), target, read(target));
        }
        self.asked = asked;
    }

    /// A target has answered a probe.
    pub fn probed(&mut self, now_ns: u64, draw: Key, target: TargetId, reading: Reading) {
        if self.weights.get(target.index()).is_none_or(|w| *w <= 0.0) {
            return;
        }
        let Reading { in_flight: rif, latency_ns } = reading;
        self.remember(rif);
        // One answer of each target at most.
        if let Some(at) = self.pool.iter().position(|a| a.target == target) {
            self.pool.remove(at);
        } else if self.pool.len() >= self.how.pool.max(1) as usize {
            self.pool.remove(0);
        }
        let (uses, doubt) = (self.uses(draw), self.doubts.get(target));
        let latency_ns = latency_ns.max(doubt.floor_ns);
        self.pool.push(Answer { target, rif, latency_ns, at: now_ns, uses, doubted: doubt.failed() });
    }

    /// How often an answer is used: the reuse budget, its fraction at random.
    fn uses(&self, draw: Key) -> u32 {
        match self.budget {
            (u32::MAX, _) => u32::MAX,
            (whole, part) => whole + u32::from(draw.unit() < part),
        }
    }

    /// The paper's reuse budget for the targets that there are.
    fn reuse_budget(&self) -> (u32, f64) {
        let n = self.open.len().max(1) as f64;
        let gained = (1.0 - f64::from(self.how.pool) / n) * self.how.probes - self.how.remove;
        if gained <= 0.0 {
            return (u32::MAX, 0.0);
        }
        let budget = ((1.0 + self.how.delta) / gained).clamp(1.0, 1e9);
        (budget.floor() as u32, budget.fract())
    }

    fn remember(&mut self, rif: u32) {
        let to = self.sorted.partition_point(|&r| r < rif);
        if self.recent.len() < REMEMBERED {
            self.recent.push(rif);
            self.sorted.insert(to, rif);
            return;
        }
        let old = std::mem::replace(&mut self.recent[self.oldest], rif);
        self.oldest = (self.oldest + 1) % REMEMBERED;
        // The old one's place is closed and the new one's opened at once: only what is between them moves.
        let from = self.sorted.partition_point(|&r| r < old);
        if from < to {
            self.sorted.copy_within(from + 1..to, from);
            self.sorted[to - 1] = rif;
        } else {
            self.sorted.copy_within(to..from, to + 1);
            self.sorted[to] = rif;
        }
    }

    /// Above this RIF a target is hot. With `q_rif` 0 all are (RIF alone decides), with 1 none is.
    fn threshold(&self) -> f64 {
        if self.how.q_rif <= 0.0 {
            return -1.0;
        }
        let rank = (self.how.q_rif * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).map_or(f64::INFINITY, |&r| f64::from(r))
    }

    fn is_hot(&self, answer: &Answer, threshold: f64) -> bool {
        self.how.q_rif < 1.0 && f64::from(answer.rif) > threshold
    }

    /// Chooses a target that is not barred; `None` if there is none.
    pub fn pick_where(
        &mut self,
        draw: Key,
        now_ns: u64,
        barred: impl Fn(TargetId) -> bool,
    ) -> Option<TargetId> {
        let age = self.how.age_ns;
        // The oldest stands first.
        let too_old = |a: &Answer| now_ns.saturating_sub(a.at) > age;
        if self.pool.first().is_some_and(too_old) {
            self.pool.retain(|a| !too_old(a));
        }
        let (tried, chosen) = match self.doubts.any() || self.hides {
            true => self.choose_doubting(draw, &barred),
            false => (None, self.best(draw, |a| !barred(a.target))),
        };
        let target = match chosen {
            Some(at) => {
                let answer = &mut self.pool[at];
                answer.rif = answer.rif.saturating_add(1);
                answer.uses -= u32::from(answer.uses != u32::MAX);
                let (target, spent) = (answer.target, answer.uses == 0);
                if spent {
                    self.pool.remove(at);
                }
                Some(target)
            }
            None => tried.or_else(|| self.at_random(draw, barred)),
        };
        self.remove_some();
        target
    }

    /// Where something speaks against targets, or some are hidden: one that is tried all the same, and the index of the
    /// answer to use.
    #[cold]
    fn choose_doubting(
        &self,
        draw: Key,
        barred: &impl Fn(TargetId) -> bool,
    ) -> (Option<TargetId>, Option<usize>) {
        let tried = self.to_try(draw.with(DOUBT), barred);
        let chosen = match tried {
            Some(target) => self.pool.iter().position(|a| a.target == target),
            None => {
                self.best(draw, |a| !a.doubted && self.weights[a.target.index()] > 0.0 && !barred(a.target))
            }
        };
        (tried, chosen)
    }

    /// A target that something speaks against and that this request tries all the same.
    fn to_try(&self, draw: Key, barred: &impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let target = *self.open.get(draw.below(self.open.len() as u64) as usize)?;
        let doubt = self.doubts.get(target);
        let heeded = if doubt.failed() {
            self.weights[target.index()] / self.mean_weight
        } else if doubt.floor_ns > 0 {
            1.0 / TRIED
        } else {
            return None;
        };
        // Where requests in flight alone decide all answers are hot: with nothing there it is tried all the same.
        let threshold = self.threshold();
        let full = |a: &Answer| a.target == target && a.rif > 0 && self.is_hot(a, threshold);
        let out = draw.nth(1).unit() >= heeded || barred(target) || self.pool.iter().any(full);
        (!out).then_some(target)
    }

    /// By weight, of those that did not fail if there are any.
    fn at_random(&self, draw: Key, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        if self.doubts.any() {
            let good = self.random.pick_where(draw, |t| barred(t) || self.doubts.get(t).failed());
            if good.is_some() {
                return good;
            }
        }
        self.random.pick_where(draw, barred)
    }

    /// The index of the answer to use, among those that are usable, of equal ones at random; `None` with fewer than
    /// two.
    fn best(&self, draw: Key, usable: impl Fn(&Answer) -> bool) -> Option<usize> {
        let threshold = self.threshold();
        let cost = |a: &Answer| {
            let (hot, cost) = match self.is_hot(a, threshold) {
                true => (true, f64::from(a.rif) + 1.0),
                false => (false, a.latency_ns as f64),
            };
            (hot, cost / self.weights[a.target.index()])
        };
        // How many are usable; the least cost, the first answer of this cost, and how many have it.
        let (mut count, mut least, mut first, mut equal) = (0, (true, f64::INFINITY), 0, 0);
        for (i, a) in self.pool.iter().enumerate().filter(|(_, a)| usable(a)) {
            count += 1;
            let cost = cost(a);
            if equal == 0 || cost < least {
                (least, first, equal) = (cost, i, 1);
            } else if cost == least {
                equal += 1;
            }
        }
        if count < 2 || equal < 2 {
            return (count >= 2).then_some(first);
        }
        let nth = draw.with(TIE).below(equal) as usize;
        let same = |i: &usize| usable(&self.pool[*i]) && cost(&self.pool[*i]) == least;
        (first..self.pool.len()).filter(same).nth(nth)
    }

    /// The oldest and the worst in turn: worst is the hot one with the greatest RIF, else the greatest latency.
    fn remove_some(&mut self) {
        self.owed_removals = (self.owed_removals + self.how.remove).min(f64::from(self.how.pool));
        while self.owed_removals >= 1.0 - 1e-9 {
            self.owed_removals -= 1.0;
            if self.pool.is_empty() {
                continue;
            }
            let at = if self.remove_worst { self.worst() } else { 0 };
            self.remove_worst = !self.remove_worst;
            self.pool.remove(at);
        }
    }

    fn worst(&self) -> usize {
        let threshold = self.threshold();
        let badness = |a: &Answer| match self.is_hot(a, threshold) {
            true => (1, u64::from(a.rif)),
            false => (0, a.latency_ns),
        };
        (0..self.pool.len()).max_by_key(|&i| (badness(&self.pool[i]), self.pool.len() - i)).unwrap_or(0)
    }

    /// A request has come back after `took_ns`, or was cancelled then.
    pub fn done(&mut self, target: TargetId, took_ns: u64, outcome: Outcome) {
        if outcome.is_none() && !self.doubts.any() {
            return;
        }
        let doubt = self.doubts.ended(target, took_ns, outcome);
        match outcome {
            None | Some(Kind::Cancelled) => {
                for answer in self.pool.iter_mut().filter(|a| a.target == target) {
                    answer.latency_ns = answer.latency_ns.max(doubt.floor_ns);
                    answer.doubted = doubt.failed();
                }
            }
            Some(Kind::BadRequest) => {}
            Some(_) => self.drop_answer(target),
        }
    }

    /// A target that is another from now on: nothing is known of it.
    pub fn forget(&mut self, target: TargetId) {
        self.doubts.forget(target);
        self.drop_answer(target);
    }

    fn drop_answer(&mut self, target: TargetId) {
        self.pool.retain(|a| a.target != target);
    }

    /// What the answer in the pool says that a target takes, ns; `None` without one.
    pub fn believed_ns(&self, target: TargetId) -> Option<f64> {
        self.pool.iter().rev().find(|a| a.target == target).map(|a| a.latency_ns as f64)
    }

    /// How old an answer may be, ns.
    pub fn age_ns(&self) -> u64 {
        self.how.age_ns
    }

    /// Answers in the pool.
    pub fn pooled(&self) -> usize {
        self.pool.len()
    }
}

impl Policy for Prequal {
    type Args = PrequalArgs;
    const NAME: &'static str = "lb.prequal";
    const TRAITS: Traits = Traits { measures: true, probes: true, ..Traits::PLAIN };

    fn build(args: &PrequalArgs, roster: &Roster, _draw: Key) -> Prequal {
        Prequal::new(roster.effective(), *args)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective(), |target| roster.is_open(target));
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, ask.now_ns, barred)
    }

    fn done(&mut self, target: TargetId, outcome: Outcome) -> Release {
        Prequal::done(self, target, 0, outcome);
        Release::Now
    }

    fn finished(&mut self, _now_ns: u64, target: TargetId, took_ns: u64, outcome: Outcome) -> Release {
        Prequal::done(self, target, took_ns, outcome);
        Release::Now
    }

    fn estimate_ns(&self, _now_ns: u64, target: TargetId) -> Option<f64> {
        self.believed_ns(target)
    }

    fn forget_target(&mut self, _now_ns: u64, target: TargetId) {
        self.forget(target);
    }

    fn learn(&mut self, old: &Prequal) {
        self.learn_from(old);
    }
}

#[cfg(test)]
mod tests;
