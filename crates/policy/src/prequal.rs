//! Prequal: asynchronous probes of requests in flight and latency; the hot are avoided, the fastest cold one is taken.
//!
//! - Idea: what a target says of itself is better than what one balancer sees. Each request has a few random targets probed,
//!   and is itself decided by answers that are there already, kept in a small pool.
//! - Signal: each target's own requests in flight (RIF) and its estimate of latency at that RIF. State: a pool of at most
//!   `pool` answers, the last 128 RIFs seen.
//! - Cost of a decision: O(pool), and `probes` probes.
//! - Formula: θ = the `q_rif` quantile of recent RIFs; hot if RIF > θ. Least latency / weight among the cold; if all are hot
//!   the least (RIF + 1) / weight. An answer is used b = max(1, (1 + delta) / ((1 − pool/n)·probes − remove)) times (rounded at
//!   random), adds 1 to its RIF each time, and is dropped after `age`. Per request `remove` answers go, the oldest and the worst
//!   in turn. With fewer than two usable answers: at random by weight.
//! - Choices: an error drops the target's answers (a target that fails fast looks empty: "sinkholing").
//! - Pathologies: needs targets that answer probes; a pool larger than the set of targets herds; stale answers herd too.
//! - Source: Wydrowski et al., "Load is not what you should balance" (NSDI 2024).
//! - In the language: `lb.prequal(targets, probes=3, pool=16, age=1*s, q_rif=0.84, remove=1, delta=1.0)`.

use crate::random::Random;
use std::mem::take;
use weir_stats::Key;

/// RIFs remembered for the quantile.
const REMEMBERED: usize = 128;

/// The arguments of `lb.prequal`, without the targets.
#[derive(Clone, Copy, Debug)]
pub struct Probing {
    /// Probes per request; may be a fraction.
    pub probes: f64,
    /// Answers kept.
    pub pool: u32,
    /// How long an answer is used, ns.
    pub age_ns: u64,
    /// The quantile of RIFs above which a target is hot.
    pub q_rif: f64,
    /// Answers removed per request; may be a fraction.
    pub remove: f64,
    /// How much more often than they are removed answers may be used.
    pub delta: f64,
}

/// An answer in the pool.
#[derive(Clone, Copy, Debug)]
struct Answer {
    target: u32,
    rif: u32,
    latency_ns: u64,
    at: u64,
    uses: u32,
}

/// What the choice of targets to probe is drawn by, beside the request's draw.
const PROBES: u64 = 12;

/// How busy a target is: what it would say of itself, as seen by whoever sends it all of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Requests in flight there.
    pub in_flight: u32,
    /// How long one answer takes while nothing else is there, ns, smoothed; 0: nothing came back yet.
    pub alone_ns: u64,
}

impl Busy {
    /// A request goes there.
    pub fn entered(&mut self) {
        self.in_flight += 1;
    }

    /// A request has left after this time, however it ended.
    pub fn left(&mut self, took_ns: u64) {
        self.in_flight -= 1;
        // By how many were there, so that it says what one costs: a target that was full once is not slow for ever.
        let alone_ns = took_ns / (u64::from(self.in_flight) + 1);
        let seen = &mut self.alone_ns;
        *seen = if *seen == 0 { alone_ns } else { *seen - *seen / 8 + alone_ns / 8 };
    }

    /// How long one more request would take, ns.
    pub fn latency_ns(&self) -> u64 {
        self.alone_ns.saturating_mul(u64::from(self.in_flight) + 1)
    }
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct Prequal {
    how: Probing,
    weights: Vec<f64>,
    open: Vec<u32>,
    random: Random,
    /// Oldest first.
    pool: Vec<Answer>,
    /// The last RIFs in order of arrival, and in order of size.
    recent: Vec<u32>,
    sorted: Vec<u32>,
    oldest: usize,
    /// Fractions of probes and removals not yet done.
    owed_probes: f64,
    owed_removals: f64,
    remove_worst: bool,
    /// Those being probed; kept for its memory.
    asked: Vec<u32>,
}

impl Prequal {
    /// A balancer over targets of these weights.
    pub fn new(weights: &[f64], how: Probing) -> Prequal {
        let mut lb = Prequal {
            how,
            weights: Vec::new(),
            open: Vec::new(),
            random: Random::new(&[]),
            pool: Vec::with_capacity(how.pool as usize + 1),
            recent: Vec::with_capacity(REMEMBERED),
            sorted: Vec::with_capacity(REMEMBERED),
            oldest: 0,
            owed_probes: 0.0,
            owed_removals: 0.0,
            remove_worst: false,
            asked: Vec::new(),
        };
        lb.refresh(weights);
        lb
    }

    /// Other weights from now on, of these and perhaps of more targets; answers of those that stay are kept.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.open.clear();
        self.open.extend((0..weights.len() as u32).filter(|&i| weights[i as usize] > 0.0));
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.random.refresh(weights);
        self.pool.retain(|a| weights[a.target as usize] > 0.0);
    }

    /// The targets to probe for one request, distinct and uniformly drawn, into `out`.
    pub fn to_probe(&mut self, draw: Key, out: &mut Vec<u32>) {
        out.clear();
        self.owed_probes += self.how.probes;
        let wanted = (self.owed_probes + 1e-9).floor();
        self.owed_probes -= wanted;
        let n = self.open.len() as u64;
        for k in 0..(wanted as u64).min(n) {
            // Distinct draws: the k-th among those left, then the next not drawn (the few drawn are kept in order).
            let mut i = draw.nth(k).below(n - k) as u32;
            for &drawn in out.iter() {
                i += u32::from(drawn <= i);
            }
            let at = out.partition_point(|&d| d < i);
            out.insert(at, i);
        }
        out.iter_mut().for_each(|i| *i = self.open[*i as usize]);
    }

    /// Probes targets for one request, drawn by its `draw`, where answers are there at once.
    pub fn probe(&mut self, now: u64, draw: Key, busy: impl Fn(u32) -> Busy) {
        let draw = draw.with(PROBES);
        let mut asked = take(&mut self.asked);
        self.to_probe(draw, &mut asked);
        for (i, &target) in (1u64..).zip(&asked) {
            let busy = busy(target);
            self.probed(now, draw.with(i), target, busy.in_flight, busy.latency_ns());
        }
        self.asked = asked;
    }

    /// A target has answered a probe.
    pub fn probed(&mut self, now: u64, draw: Key, target: u32, rif: u32, latency_ns: u64) {
        if self.weights.get(target as usize).is_none_or(|w| *w <= 0.0) {
            return;
        }
        self.remember(rif);
        // One answer of each target at most.
        if let Some(at) = self.pool.iter().position(|a| a.target == target) {
            self.pool.remove(at);
        } else if self.pool.len() >= self.how.pool.max(1) as usize {
            self.pool.remove(0);
        }
        let uses = self.uses(draw);
        self.pool.push(Answer { target, rif, latency_ns, at: now, uses });
    }

    /// How often an answer is used: the reuse budget, its fraction at random.
    fn uses(&self, draw: Key) -> u32 {
        let n = self.open.len().max(1) as f64;
        let gained = (1.0 - f64::from(self.how.pool) / n) * self.how.probes - self.how.remove;
        if gained <= 0.0 {
            return u32::MAX;
        }
        let budget = ((1.0 + self.how.delta) / gained).clamp(1.0, 1e9);
        budget.floor() as u32 + u32::from(draw.unit() < budget.fract())
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
    pub fn pick_where(&mut self, draw: Key, now: u64, barred: impl Fn(u32) -> bool) -> Option<u32> {
        let age = self.how.age_ns;
        // The oldest stands first.
        let too_old = |a: &Answer| now.saturating_sub(a.at) > age;
        if self.pool.first().is_some_and(too_old) {
            self.pool.retain(|a| !too_old(a));
        }
        let chosen = self.best(|t| !barred(t));
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
            None => self.random.pick_where(draw, barred),
        };
        self.remove_some();
        target
    }

    /// The index of the answer to use, among targets that are not barred; `None` with fewer than two.
    fn best(&self, usable: impl Fn(u32) -> bool) -> Option<usize> {
        let threshold = self.threshold();
        let weight = |a: &Answer| self.weights[a.target as usize];
        let (mut count, mut cold, mut hot) = (0, None, None);
        for (i, a) in self.pool.iter().enumerate().filter(|(_, a)| usable(a.target)) {
            count += 1;
            let (slot, cost) = if self.is_hot(a, threshold) {
                (&mut hot, (f64::from(a.rif) + 1.0) / weight(a))
            } else {
                (&mut cold, a.latency_ns as f64 / weight(a))
            };
            if slot.is_none_or(|(_, least)| cost < least) {
                *slot = Some((i, cost));
            }
        }
        let best: Option<(usize, f64)> = cold.or(hot);
        best.filter(|_| count >= 2).map(|(i, _)| i)
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

    /// A request has failed at a target: what it said of itself is not believed.
    pub fn failed(&mut self, target: u32) {
        self.pool.retain(|a| a.target != target);
    }

    /// Answers in the pool.
    pub fn pooled(&self) -> usize {
        self.pool.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Probing =
        Probing { probes: 3.0, pool: 16, age_ns: 1_000_000_000, q_rif: 0.84, remove: 1.0, delta: 1.0 };

    fn lb(n: usize, how: Probing) -> Prequal {
        Prequal::new(&vec![1.0; n], how)
    }

    fn mean_uses(n: usize, pool: u32) -> f64 {
        let lb = lb(n, Probing { pool, ..DEFAULT });
        (0..20_000).map(|i| f64::from(lb.uses(Key::new(1).with(i)))).sum::<f64>() / 20_000.0
    }

    /// The notes' worked figures: 1.316 with a pool of 16 of 100, 3.57 with 48, unlimited with 4 of 6.
    #[test]
    fn the_reuse_budget_is_the_papers() {
        assert!((mean_uses(100, 16) - 1.316).abs() < 0.02);
        assert!((mean_uses(100, 48) - 3.571).abs() < 0.02);
        assert_eq!(lb(6, Probing { pool: 4, ..DEFAULT }).uses(Key::new(1)), u32::MAX);
    }

    fn keep() -> Probing {
        Probing { remove: 0.0, probes: 0.0, ..DEFAULT }
    }

    /// With a threshold of 5: of (RIF 10, 1 ms), (2, 50 ms) and (3, 20 ms) the third; of two hot ones the less loaded.
    #[test]
    fn hot_ones_are_avoided_and_the_fastest_cold_one_taken() {
        let mut three = lb(4, keep());
        (0..100).for_each(|_| three.remember(5));
        for (t, rif, ms) in [(0, 10, 1), (1, 2, 50), (2, 3, 20)] {
            three.probed(0, Key::new(1), t, rif, ms * 1_000_000);
        }
        assert_eq!(three.threshold(), 5.0);
        assert_eq!(three.clone().pick_where(Key::new(1), 0, |_| false), Some(2));
        assert_eq!(three.clone().pick_where(Key::new(1), 0, |t| t == 2), Some(1));
        let mut hot = lb(4, keep());
        (0..100).for_each(|_| hot.remember(5));
        hot.probed(0, Key::new(1), 0, 10, 1);
        hot.probed(0, Key::new(1), 1, 8, 9);
        assert_eq!(hot.pick_where(Key::new(1), 0, |_| false), Some(1));
        assert_eq!(hot.pool[1].rif, 9, "and is one fuller now");
    }

    #[test]
    fn the_ends_of_the_quantile_are_rif_alone_and_latency_alone() {
        for (q_rif, want) in [(0.0, 1), (1.0, 0)] {
            let mut two = lb(3, Probing { q_rif, ..keep() });
            two.probed(0, Key::new(1), 0, 10, 1);
            two.probed(0, Key::new(1), 1, 2, 50);
            assert_eq!(two.pick_where(Key::new(1), 0, |_| false), Some(want));
        }
    }

    /// The quantile against one of a plain sorted copy.
    #[test]
    fn the_threshold_is_that_of_the_last_answers() {
        let mut lb = lb(3, DEFAULT);
        let mut all = Vec::new();
        for i in 0..500u64 {
            let rif = Key::new(2).with(i).below(40) as u32;
            all.push(rif);
            lb.remember(rif);
            let mut last = all[all.len().saturating_sub(REMEMBERED)..].to_vec();
            last.sort_unstable();
            let rank = (0.84 * last.len() as f64).ceil() as usize - 1;
            assert_eq!(lb.threshold(), f64::from(last[rank]));
        }
    }

    #[test]
    fn answers_age_are_spent_and_removed() {
        let mut lb = lb(100, DEFAULT);
        for t in 0..40 {
            lb.probed(u64::from(t), Key::new(1), t, t, 1);
            assert!(lb.pooled() <= 16);
        }
        lb.probed(50, Key::new(1), 39, 0, 1);
        assert_eq!(lb.pooled(), 16, "the newest of each target only");
        lb.pick_where(Key::new(1), 50, |_| false);
        assert!((14..16).contains(&lb.pooled()), "one removed, perhaps one spent");
        lb.failed(38);
        assert!(lb.pool.iter().all(|a| a.target != 38));
        lb.pick_where(Key::new(1), 2_000_000_000, |_| false);
        assert_eq!(lb.pooled(), 0);
    }

    #[test]
    fn probes_go_to_distinct_targets_evenly() {
        let mut lb = lb(7, Probing { probes: 2.5, ..DEFAULT });
        let (mut out, mut seen, mut sent) = (Vec::new(), [0; 7], 0);
        for i in 0..14_000 {
            lb.to_probe(Key::new(5).with(i), &mut out);
            sent += out.len();
            assert!(out.windows(2).all(|w| w[0] < w[1]) && (2..=3).contains(&out.len()));
            out.iter().for_each(|&t| seen[t as usize] += 1);
        }
        assert_eq!(sent, 35_000);
        assert!(seen.iter().all(|c| (4700..5300).contains(c)), "{seen:?}");
        lb.refresh(&[1.0, 0.0]);
        lb.to_probe(Key::new(1), &mut out);
        assert_eq!(out, [0]);
    }

    #[test]
    fn how_busy_a_target_is_says_what_one_request_costs() {
        let mut busy = Busy::default();
        assert_eq!(busy.latency_ns(), 0);
        (0..4).for_each(|_| busy.entered());
        busy.left(400);
        assert_eq!(busy, Busy { in_flight: 3, alone_ns: 100 });
        assert_eq!(busy.latency_ns(), 400);
        (0..3).for_each(|_| busy.left(900));
        assert_eq!((busy.in_flight, busy.latency_ns()), (0, 100 - 12 + 37 - 15 + 56 - 20 + 112));
    }

    #[test]
    fn probes_tell_the_fast_from_the_slow() {
        let mut lb = lb(4, DEFAULT);
        let busy = |t: u32| Busy { in_flight: 0, alone_ns: if t == 2 { 1 } else { 100 } };
        let picks = (0..1000u64).filter(|&i| {
            let draw = Key::new(3).with(i);
            lb.probe(i, draw, busy);
            lb.pick_where(draw, i, |_| false) == Some(2)
        });
        let picked = picks.count();
        assert!(picked > 700, "{picked}: as often as it is probed, three times in four");
    }

    /// Without answers it draws by weight; what left the set is not picked from old answers.
    #[test]
    fn without_two_answers_it_is_random() {
        let mut lb = Prequal::new(&[3.0, 1.0, 0.0], DEFAULT);
        let mut seen = [0; 3];
        for i in 0..10_000 {
            seen[lb.pick_where(Key::new(1).with(i), 0, |_| false).unwrap() as usize] += 1;
        }
        assert!((7_250..7_750).contains(&seen[0]) && seen[2] == 0, "{seen:?}");
        lb.probed(0, Key::new(1), 0, 0, 1);
        lb.probed(0, Key::new(1), 1, 0, 1);
        lb.refresh(&[0.0, 1.0, 1.0]);
        assert_eq!(lb.pooled(), 1);
        lb.probed(0, Key::new(1), 0, 0, 1);
        assert_eq!(lb.pooled(), 1, "a late answer of one that left");
        assert_eq!(lb.pick_where(Key::new(1), 0, |_| true), None);
    }
}
