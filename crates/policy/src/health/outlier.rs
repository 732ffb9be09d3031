//! Outlier detection as Envoy has it: errors in a row, success rates far below the others', failure percentages.
//!
//! - Idea: a target that does much worse than its peers is excluded for a while, longer each time.
//! - Signal: outcomes of requests. State per target: three counts of errors in a row, successes and requests of this
//!   interval and the last, its number of recent ejections. Cost: O(1) per outcome, O(n) per `interval`.
//! - Formula, each sweep: (1) a target that has been out for min(base · ejections, max) + jitter comes back; (2)
//!   success rate: among at least `minimum_hosts` targets with `request_volume` requests in the last interval, below
//!   mean − factor/1000 · population standard deviation; (3) failure percentage ≥ threshold; (4) a target that is in,
//!   and came back at least an interval ago, is forgiven one ejection. `enforcing_*` percent of detections eject. 100
//!   · (out + 1) / n must stay ≤ `max_ejection_percent`.
//! - Pathologies: with fewer than 10 targets the default of 10 % ejects none; among n targets one outlier is √(n − 1)
//!   deviations away, so 4 never reach 1.9.
//! - Source: Envoy `outlier_detection_impl.cc`. In the language: `outlier(...)`, with Envoy's names and defaults.

use crate::health::eligibility::Reason;
use crate::outcome::is_failure;
use crate::{Kind, Outcome, TargetId};
use serde::{Deserialize, Serialize};
use weir_stats::{Key, math};

/// `outlier(...)`: Envoy's outlier detection, by Envoy's names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Errors of any kind in a row that eject.
    pub consecutive_5xx: u32,
    /// Errors of a gateway (502, 503, 504, or no answer) in a row that eject.
    pub consecutive_gateway_failure: u32,
    /// Failures in a row without an answer; only if these are counted separately.
    pub consecutive_local_origin_failure: u32,
    /// Whether failures without an answer are judged apart from answers.
    pub split_external_local_origin_errors: bool,
    /// From one sweep to the next, ns.
    pub interval_ns: u64,
    /// An ejection lasts this times how many there were lately, ns.
    pub base_ejection_time_ns: u64,
    /// The longest ejection (or the base, if that is longer).
    pub max_ejection_time_ns: u64,
    /// A uniform draw up to this is added.
    pub max_ejection_time_jitter_ns: u64,
    /// At most this share of the targets is out, percent.
    pub max_ejection_percent: f64,
    /// One may always be ejected, regardless of the share.
    pub always_eject_one_host: bool,
    /// Percent of detections that eject, by kind.
    pub enforcing_consecutive_5xx: f64,
    /// Likewise.
    pub enforcing_consecutive_gateway_failure: f64,
    /// Likewise.
    pub enforcing_consecutive_local_origin_failure: f64,
    /// Likewise.
    pub enforcing_success_rate: f64,
    /// Likewise.
    pub enforcing_failure_percentage: f64,
    /// Success rates are compared only among at least this number of targets with enough requests.
    pub success_rate_minimum_hosts: u32,
    /// Enough requests of one interval.
    pub success_rate_request_volume: u32,
    /// Thousandths of a standard deviation below the mean.
    pub success_rate_stdev_factor: u32,
    /// Percent of failures that eject.
    pub failure_percentage_threshold: f64,
    /// As for success rates.
    pub failure_percentage_minimum_hosts: u32,
    /// As for success rates.
    pub failure_percentage_request_volume: u32,
}

impl Default for Outlier {
    fn default() -> Outlier {
        const S: u64 = 1_000_000_000;
        Outlier {
            consecutive_5xx: 5,
            consecutive_gateway_failure: 5,
            consecutive_local_origin_failure: 5,
            split_external_local_origin_errors: false,
            interval_ns: 10 * S,
            base_ejection_time_ns: 30 * S,
            max_ejection_time_ns: 300 * S,
            max_ejection_time_jitter_ns: 0,
            max_ejection_percent: 10.0,
            always_eject_one_host: false,
            enforcing_consecutive_5xx: 100.0,
            enforcing_consecutive_gateway_failure: 0.0,
            enforcing_consecutive_local_origin_failure: 100.0,
            enforcing_success_rate: 100.0,
            enforcing_failure_percentage: 0.0,
            success_rate_minimum_hosts: 5,
            success_rate_request_volume: 100,
            success_rate_stdev_factor: 1900,
            failure_percentage_threshold: 85.0,
            failure_percentage_minimum_hosts: 5,
            failure_percentage_request_volume: 50,
        }
    }
}

/// What an outcome says about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A good answer.
    Good,
    /// A bad answer; of a gateway if its status is 502, 503 or 504.
    Bad {
        /// Whether it is such a status.
        gateway: bool,
    },
    /// No answer at all.
    Local,
    /// Nothing.
    Nothing,
}

/// What an outcome says, with the status of the answer, if there was one.
pub fn seen(outcome: Outcome, status: Option<u16>) -> Observation {
    match outcome {
        None => Observation::Good,
        Some(Kind::Status5xx) => Observation::Bad { gateway: matches!(status, Some(502..=504)) },
        Some(kind) if is_failure(kind) => Observation::Local,
        Some(_) => Observation::Nothing,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    requests: u32,
    good: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    exists: bool,
    bad: u32,
    gateway: u32,
    local: u32,
    bucket: Bucket,
    /// When it was ejected; `None` while it is in.
    ejected_at: Option<u64>,
    until: u64,
    /// When it last came back.
    back_at: Option<u64>,
    /// The length of its next ejection, in base times.
    ejections: u32,
}

/// The outliers among the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Outliers {
    config: Outlier,
    records: Vec<Record>,
    out: u32,
    next_sweep: u64,
    draw: Key,
    drawn: u64,
}

impl Outliers {
    /// `n` targets from `start` on. `draw` is for enforcement and jitter.
    pub fn new(config: Outlier, n: u32, start: u64, draw: Key) -> Outliers {
        let record = Record { exists: true, ..Record::default() };
        let next_sweep = start.saturating_add(config.interval_ns.max(1));
        Outliers { config, records: vec![record; n as usize], out: 0, next_sweep, draw, drawn: 0 }
    }

    /// Replaces the arguments; the state of the targets stays.
    pub fn configure(&mut self, config: Outlier) {
        self.config = config;
    }

    /// Adds a target, at the index of a removed one or the next; or (`exists` false) removes one.
    pub fn forget(&mut self, target: TargetId, exists: bool) {
        let i = target.index();
        if i >= self.records.len() {
            self.records.resize(i + 1, Record::default());
        }
        self.out -= u32::from(self.records[i].ejected_at.is_some());
        self.records[i] = Record { exists, ..Record::default() };
    }

    /// The remaining time of a target's ejection, ns, and the length of its next, in base times.
    pub fn known(&self, now_ns: u64, target: TargetId) -> (Option<u64>, u32) {
        let Some(record) = self.records.get(target.index()) else { return (None, 0) };
        (record.ejected_at.map(|_| record.until.saturating_sub(now_ns)), record.ejections)
    }

    /// Ejects a target for this time, as found elsewhere.
    pub fn heed(&mut self, now_ns: u64, target: TargetId, out_for_ns: u64, ejections: u32) {
        self.forget(target, true);
        let record = &mut self.records[target.index()];
        (record.ejected_at, record.until) = (Some(now_ns), now_ns.saturating_add(out_for_ns));
        record.ejections = ejections;
        self.out += 1;
    }

    /// Ejected targets.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// When the next sweep is.
    pub fn next_deadline(&self) -> u64 {
        self.next_sweep
    }

    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        self.draw.with(self.drawn).unit()
    }

    /// Notes the outcome of a request. Returns the reason of an ejection, if it causes one.
    pub fn outcome(&mut self, now_ns: u64, target: TargetId, seen: Observation) -> Option<Reason> {
        let split = self.config.split_external_local_origin_errors;
        let record = self.records.get_mut(target.index()).filter(|r| r.exists)?;
        if seen == Observation::Nothing {
            return None;
        }
        record.bucket.requests = record.bucket.requests.saturating_add(1);
        let (bad, gateway, local) = match seen {
            Observation::Good | Observation::Nothing => {
                record.bucket.good = record.bucket.good.saturating_add(1);
                (record.bad, record.gateway, record.local) = (0, 0, 0);
                return None;
            }
            Observation::Bad { gateway } => (true, gateway, false),
            Observation::Local => (!split, !split, split),
        };
        // A row of errors of one kind ends with an outcome of another kind.
        record.bad = if bad { record.bad + 1 } else { record.bad };
        record.gateway = if gateway {
            record.gateway + 1
        } else if bad {
            0
        } else {
            record.gateway
        };
        record.local = if local { record.local + 1 } else { 0 };
        let record = *record;
        let config = &self.config;
        let rows = [
            (
                gateway && record.gateway == config.consecutive_gateway_failure,
                config.enforcing_consecutive_gateway_failure,
                Reason::EjectedGatewayFailure,
            ),
            (
                bad && record.bad == config.consecutive_5xx,
                config.enforcing_consecutive_5xx,
                Reason::EjectedConsecutive5xx,
            ),
            (
                local && record.local == config.consecutive_local_origin_failure,
                config.enforcing_consecutive_local_origin_failure,
                Reason::EjectedLocalOrigin,
            ),
        ];
        for (full, enforcing, reason) in rows {
            if !full {
                continue;
            }
            let record = &mut self.records[target.index()];
            match reason {
                Reason::EjectedGatewayFailure => record.gateway = 0,
                Reason::EjectedLocalOrigin => record.local = 0,
                _ => record.bad = 0,
            }
            if self.eject(now_ns, target, enforcing) {
                return Some(reason);
            }
        }
        None
    }

    fn targets(&self) -> u32 {
        self.records.iter().filter(|r| r.exists).count() as u32
    }

    /// Ejects a target unless it is out, enforcement spares it, or too many are out.
    fn eject(&mut self, now_ns: u64, target: TargetId, enforcing: f64) -> bool {
        if self.records[target.index()].ejected_at.is_some() || self.unit() * 100.0 >= enforcing {
            return false;
        }
        let n = f64::from(self.targets());
        let within = 100.0 * f64::from(self.out + 1) <= self.config.max_ejection_percent * n;
        let allowed = within || self.config.always_eject_one_host && self.out == 0;
        if !allowed {
            return false;
        }
        let jitter = match self.config.max_ejection_time_jitter_ns {
            0 => 0,
            most => (self.unit() * (most as f64 + 1.0)) as u64,
        };
        let (base, max) = (self.config.base_ejection_time_ns, self.config.max_ejection_time_ns);
        let max = max.max(base);
        let record = &mut self.records[target.index()];
        // The multiplier grows while that may still lengthen an ejection.
        if base.saturating_mul(u64::from(record.ejections)) < max.saturating_add(base) {
            record.ejections += 1;
        }
        let lasts = base.saturating_mul(u64::from(record.ejections)).min(max);
        (record.ejected_at, record.until) =
            (Some(now_ns), now_ns.saturating_add(lasts).saturating_add(jitter));
        self.out += 1;
        true
    }

    /// Sweeps if a sweep is due; calls back with a reason for each target that comes back or goes.
    pub fn tick(&mut self, now_ns: u64, mut changed: impl FnMut(TargetId, Reason)) {
        if now_ns < self.next_sweep {
            return;
        }
        let interval = self.config.interval_ns.max(1);
        self.next_sweep = now_ns.saturating_add(interval);
        for (target, record) in (0..).map(TargetId).zip(&mut self.records) {
            if record.ejected_at.is_some() && record.until <= now_ns {
                (record.ejected_at, record.back_at) = (None, Some(now_ns));
                (record.bad, record.gateway, record.local) = (0, 0, 0);
                self.out -= 1;
                changed(target, Reason::Readmitted);
            } else if record.ejected_at.is_none()
                && record.back_at.is_some_and(|at| now_ns.saturating_sub(at) >= interval)
            {
                record.ejections = record.ejections.saturating_sub(1);
            }
        }
        self.sweep_rates(now_ns, &mut changed);
        self.sweep_percentages(now_ns, &mut changed);
        self.records.iter_mut().for_each(|r| r.bucket = Bucket::default());
    }

    /// Targets with enough requests in the interval, if there are enough of them.
    fn with_volume(&self, requests: u32, hosts: u32) -> Vec<(TargetId, f64)> {
        let rate = |b: &Bucket| 100.0 * f64::from(b.good) / f64::from(b.requests);
        let enough = |(t, r): (TargetId, &Record)| {
            let counts = r.exists && r.bucket.requests >= requests.max(1) && r.ejected_at.is_none();
            counts.then(|| (t, rate(&r.bucket)))
        };
        let all: Vec<_> = (0..).map(TargetId).zip(&self.records).filter_map(enough).collect();
        if all.len() >= hosts as usize { all } else { Vec::new() }
    }

    fn sweep_rates(&mut self, now_ns: u64, changed: &mut impl FnMut(TargetId, Reason)) {
        let config = &self.config;
        let rates = self.with_volume(config.success_rate_request_volume, config.success_rate_minimum_hosts);
        let (enforcing, factor) =
            (config.enforcing_success_rate, f64::from(config.success_rate_stdev_factor));
        let least = threshold(&rates, factor / 1000.0);
        for (target, rate) in rates {
            if rate < least && self.eject(now_ns, target, enforcing) {
                changed(target, Reason::EjectedSuccessRate);
            }
        }
    }

    fn sweep_percentages(&mut self, now_ns: u64, changed: &mut impl FnMut(TargetId, Reason)) {
        let config = &self.config;
        let rates = self
            .with_volume(config.failure_percentage_request_volume, config.failure_percentage_minimum_hosts);
        let (enforcing, most) = (config.enforcing_failure_percentage, config.failure_percentage_threshold);
        for (target, rate) in rates {
            if 100.0 - rate >= most && self.eject(now_ns, target, enforcing) {
                changed(target, Reason::EjectedFailurePercentage);
            }
        }
    }
}

/// The success rate below which a target is an outlier.
fn threshold(rates: &[(TargetId, f64)], deviations: f64) -> f64 {
    let n = rates.len().max(1) as f64;
    let mean = rates.iter().map(|r| r.1).sum::<f64>() / n;
    let variance = rates.iter().map(|r| (r.1 - mean) * (r.1 - mean)).sum::<f64>() / n;
    mean - deviations * math::sqrt(variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const BAD: Observation = Observation::Bad { gateway: false };

    fn outliers(n: u32, change: impl FnOnce(&mut Outlier)) -> Outliers {
        let mut config = Outlier { max_ejection_percent: 100.0, ..Outlier::default() };
        change(&mut config);
        Outliers::new(config, n, 0, Key::new(1))
    }

    fn row(all: &mut Outliers, now_ns: u64, target: TargetId, seen: Observation, times: u32) -> Vec<Reason> {
        (0..times).filter_map(|_| all.outcome(now_ns, target, seen)).collect()
    }

    fn sweep(all: &mut Outliers, now_ns: u64) -> Vec<(TargetId, Reason)> {
        let mut changes = Vec::new();
        all.tick(now_ns, |t, reason| changes.push((t, reason)));
        changes
    }

    fn traffic(all: &mut Outliers, target: TargetId, good: u32, bad: u32) {
        // Never five in a row.
        let mut left = bad;
        for _ in 0..good {
            if left > 0 {
                all.outcome(0, target, BAD);
                left -= 1;
            }
            all.outcome(0, target, Observation::Good);
        }
    }

    /// The arithmetic of the notes: 50, 100, 100, 100, 100 have mean 90, deviation 20 and the threshold 52.
    #[test]
    fn success_rates_are_compared_with_the_mean() {
        let rates = [50.0, 100.0, 100.0, 100.0, 100.0].map(|r| (TargetId(0), r));
        assert!((threshold(&rates, 1.9) - 52.0).abs() < 1e-9);
        let mut five = outliers(5, |_| {});
        traffic(&mut five, TargetId(0), 100, 100);
        (1..5).for_each(|t| traffic(&mut five, TargetId(t), 200, 0));
        assert_eq!(sweep(&mut five, 9 * S), []);
        assert_eq!(sweep(&mut five, 10 * S), [(TargetId(0), Reason::EjectedSuccessRate)]);
        assert_eq!(sweep(&mut five, 20 * S), [], "a new interval begins empty");
        // Among four an outlier is only 1.73 deviations away, and four are too few anyway.
        let mut four = outliers(4, |c| c.success_rate_minimum_hosts = 4);
        traffic(&mut four, TargetId(0), 100, 100);
        (1..4).for_each(|t| traffic(&mut four, TargetId(t), 200, 0));
        assert_eq!(sweep(&mut four, 10 * S), []);
        let mut quiet = outliers(5, |_| {});
        traffic(&mut quiet, TargetId(0), 49, 49);
        (1..5).for_each(|t| traffic(&mut quiet, TargetId(t), 200, 0));
        assert_eq!(sweep(&mut quiet, 10 * S), [], "too few requests to compare");
    }

    /// Below ten targets the default share ejects none.
    #[test]
    fn the_default_share_needs_ten_targets() {
        for (n, always, want) in [(9, false, 0), (10, false, 1), (19, false, 1), (20, false, 2), (9, true, 1)]
        {
            let mut all = outliers(n, |c| (c.max_ejection_percent, c.always_eject_one_host) = (10.0, always));
            (0..n).for_each(|t| _ = row(&mut all, 0, TargetId(t), BAD, 5));
            assert_eq!(all.out(), want, "{n} targets");
        }
    }

    #[test]
    fn rows_of_each_kind() {
        let mut all = outliers(3, |c| c.enforcing_consecutive_gateway_failure = 100.0);
        assert_eq!(row(&mut all, 0, TargetId(0), BAD, 4), []);
        all.outcome(0, TargetId(0), Observation::Good);
        assert_eq!(row(&mut all, 0, TargetId(0), BAD, 5), [Reason::EjectedConsecutive5xx]);
        assert_eq!(
            row(&mut all, 0, TargetId(1), Observation::Bad { gateway: true }, 5),
            [Reason::EjectedGatewayFailure]
        );
        assert_eq!(row(&mut all, 0, TargetId(2), Observation::Nothing, 50), []);
        let mut split = outliers(2, |c| c.split_external_local_origin_errors = true);
        assert_eq!(row(&mut split, 0, TargetId(0), Observation::Local, 5), [Reason::EjectedLocalOrigin]);
        let mut whole = outliers(2, |_| {});
        assert_eq!(row(&mut whole, 0, TargetId(0), Observation::Local, 5), [Reason::EjectedConsecutive5xx]);
    }

    /// The k-th ejection lasts min(30 k, 300) s; an interval in peace forgives one.
    #[test]
    fn ejections_last_longer_each_time_and_are_forgiven() {
        let mut all = outliers(2, |_| {});
        let mut now = 0;
        for k in 1..=12u64 {
            assert_eq!(row(&mut all, now, TargetId(0), BAD, 5).len(), 1);
            let until = now + (30 * k).min(300) * S;
            while now < until {
                now += 10 * S;
                let back = sweep(&mut all, now);
                assert_eq!(!back.is_empty(), now >= until, "ejection {k}");
            }
        }
        // In peace for 20 s after it came back: two forgiven (it had 11).
        for _ in 0..2 {
            now += 10 * S;
            sweep(&mut all, now);
        }
        assert_eq!(all.records[0].ejections, 9);
    }

    #[test]
    fn failure_percentages_eject_where_they_are_enforced() {
        for (enforcing, want) in [(0.0, 0), (100.0, 1)] {
            let mut all = outliers(5, |c| {
                (c.enforcing_failure_percentage, c.enforcing_success_rate) = (enforcing, 0.0);
                c.consecutive_5xx = 1000;
            });
            (0..5).for_each(|t| traffic(&mut all, TargetId(t), 60, if t == 3 { 0 } else { 5 }));
            row(&mut all, 0, TargetId(2), BAD, 400);
            let got = sweep(&mut all, 10 * S);
            assert_eq!(got.len(), want);
            assert!(got.iter().all(|g| *g == (TargetId(2), Reason::EjectedFailurePercentage)));
        }
    }

    #[test]
    fn a_share_of_detections_is_enforced() {
        let mut out = 0;
        for seed in 0..4000 {
            let config = Outlier {
                max_ejection_percent: 100.0,
                enforcing_consecutive_5xx: 30.0,
                ..Outlier::default()
            };
            let mut all = Outliers::new(config, 2, 0, Key::new(seed));
            row(&mut all, 0, TargetId(0), BAD, 5);
            out += all.out();
        }
        assert!((1100..1300).contains(&out), "{out}");
    }
}
