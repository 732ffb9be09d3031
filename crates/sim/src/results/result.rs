//! What a simulation found out: one entry per scenario and sweep point, as the JSON of `docs/spec/language.md#sim-json` has it.

use crate::record::Series;
use crate::record::Typical;
use crate::results::precision::Shortfall;
use std::collections::BTreeMap;
use weir_plan::{Metric, Value};
use weir_policy::Kind;
use weir_stats::{Estimate, Latency};

/// What single replications say of estimates, in the replications' order, by the estimate's path in the JSON (`success`,
/// `latency_ms.all.p99`); of quantiles each replication's own. Empty unless it was asked for; estimates of which nothing can
/// be said are missing.
pub type Each = BTreeMap<&'static str, Vec<f64>>;

/// A finished simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The version of weir.
    pub version: String,
    /// The topology file's name.
    pub file: String,
    /// The plan's hash.
    pub plan: String,
    /// The seed.
    pub seed: u64,
    /// Replications of each scenario.
    pub replications: u32,
    /// In the order of the file, then sweep point.
    pub scenarios: Vec<ScenarioResult>,
    /// Events that the finished scenarios took, all replications.
    pub events: u64,
    /// Where figures are not known as well as was wanted; always empty where nothing was.
    pub shortfalls: Vec<Shortfall>,
    /// Whether it was stopped; then `scenarios` has only what was finished.
    pub interrupted: bool,
}

/// One scenario at one sweep point.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// All parameters of the file at this point.
    pub params: Vec<(String, Value)>,
    /// Counts, summed over replications.
    pub requests: Requests,
    /// Share of selected requests that succeeded.
    pub success: Estimate,
    /// Successes within the deadline per second.
    pub goodput_per_s: Estimate,
    /// Selected requests over last less first arrival.
    pub request_rate_per_s: Estimate,
    /// Selected requests over last less first end.
    pub response_rate_per_s: Estimate,
    /// 1 and every attempt beyond the first.
    pub attempts_per_request: Estimate,
    /// How often balancers ejected a target, summed over replications; from the start to the last end, whatever the window.
    pub ejections: u64,
    /// Latencies of all selected requests.
    pub latency_all: Latency,
    /// Latencies of the selected requests that succeeded.
    pub latency_ok: Latency,
    /// Latencies of all selected requests by quantile, more finely: what a curve is drawn from.
    pub curve_all: Vec<AtQuantile>,
    /// The same of those that succeeded.
    pub curve_ok: Vec<AtQuantile>,
    /// One entry per site (or member), in order of the request's way.
    pub nodes: Vec<NodeResult>,
    /// What would mislead, in words.
    pub warnings: Vec<String>,
    /// What the file expects of it, and whether that holds.
    pub expectations: Vec<Expected>,
    /// What single replications say.
    pub each: Each,
    /// What typical requests consist of, and how the run went over time; only where somebody asked for it.
    pub explained: Option<Explained>,
}

/// What only a second look at the first replication tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// By quantile; those of which something can be said.
    pub typical: Vec<Typical>,
    /// How the replication went over time.
    pub series: Series,
}

/// A condition of `expect(...)`, and whether it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The condition: `p99<300ms`.
    pub expect: String,
    /// What came out, in the unit of the JSON.
    pub value: Estimate,
    /// Of what, which tells its unit.
    pub metric: Metric,
    /// Whether the whole interval meets the condition (or none of it does); `None`: that cannot be decided.
    pub holds: Option<bool>,
    /// Where the file says so, `file:line:column`.
    pub span: String,
}

impl ScenarioResult {
    /// The estimate of a figure that needs no more than its name; others are empty.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        let (all, ok) = (&self.latency_all, &self.latency_ok);
        match metric {
            Metric::Mean => all.mean,
            Metric::P50 => all.p50,
            Metric::P90 => all.p90,
            Metric::P95 => all.p95,
            Metric::P99 => all.p99,
            Metric::P999 => all.p999,
            Metric::OkMean => ok.mean,
            Metric::OkP50 => ok.p50,
            Metric::OkP90 => ok.p90,
            Metric::OkP95 => ok.p95,
            Metric::OkP99 => ok.p99,
            Metric::OkP999 => ok.p999,
            Metric::Success => self.success,
            Metric::GoodputPerS => self.goodput_per_s,
            Metric::AttemptsPerRequest => self.attempts_per_request,
            Metric::Errors(_) | Metric::Utilisation | Metric::WaitMs => Estimate::default(),
        }
    }
}

/// A point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtQuantile {
    /// Which: 0.5 is the median.
    pub q: f64,
    /// The latency, ms.
    pub ms: Estimate,
}

/// Counts of requests, summed over replications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All that were issued.
    pub total: u64,
    /// Those that the window selects.
    pub selected: u64,
    /// Selected and succeeded.
    pub ok: u64,
    /// Selected and failed.
    pub failed: u64,
    /// The failed by kind; kinds that occurred only, in the order of [`Kind::ALL`].
    pub errors: Vec<(Kind, u64)>,
}

/// What happened at one site (or at one member of it).
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The node's id in the plan; `None` where `count` is above 1.
    pub id: Option<u32>,
    /// Its name, or its kind's.
    pub name: String,
    /// The function's name: `server`, `lb.least_conn`.
    pub kind: String,
    /// The site in words.
    pub place: String,
    /// How many members.
    pub count: u64,
    /// Entries of selected requests, each attempt.
    pub requests: u64,
    /// Entries that ended in an error, by kind.
    pub errors: Vec<(Kind, u64)>,
    /// Slots or cores busy, averaged over members and time; queues only.
    pub utilisation: Estimate,
    /// Mean number waiting at a member.
    pub queue_mean: Estimate,
    /// The most that ever waited at one member.
    pub queue_max: Option<u64>,
    /// Mean wait per entry, ms; queues only.
    pub wait_ms: Estimate,
    /// Mean time in service per entry, ms: in a slot of a queue, or the work of a delay.
    pub service_ms: Estimate,
    /// Its part of the mean latency of all requests, ms; the parts of all sites add up to it.
    pub latency_part_ms: Estimate,
    /// Requests per member: least, most (over all replications), coefficient of variation.
    pub spread_min: Option<f64>,
    /// See `spread_min`.
    pub spread_max: Option<f64>,
    /// See `spread_min`.
    pub spread_cv: Estimate,
    /// What single replications say.
    pub each: Each,
}
