//! The results of a simulation: one entry per scenario and sweep point, as the JSON of
//! `docs/spec/language.md#sim-json` has it.

use crate::record::Series;
use crate::record::Typical;
use crate::results::connections::Connections;
use crate::results::over_time::OverTime;
use std::collections::BTreeMap;
use weir_plan::{Metric, Value};
use weir_policy::Kind;
use weir_stats::{Estimate, Latency};

/// The values of single replications, in order, by the estimate's path in the JSON (`success`, `latency_ms.all.p99`);
/// for quantiles, each replication's own. Empty unless requested; estimates that cannot be computed are missing.
pub type ReplicationValues = BTreeMap<&'static str, Vec<f64>>;

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
    /// The number of requests that overrode those of the scenarios.
    pub requests: Option<u64>,
    /// How many times as many requests as the file says each replication had, because `--precision` needed longer ones:
    /// 1 without it, or where the file's were long enough.
    pub stretch: u64,
    /// In the order of the file, then sweep point.
    pub scenarios: Vec<ScenarioResult>,
    /// Events that the finished scenarios processed, in all replications.
    pub events: u64,
    /// Figures that are less precise than requested; empty where no precision was requested.
    pub shortfalls: Vec<Shortfall>,
    /// Whether the run was stopped; then `scenarios` has those of which at least one replication was finished.
    pub interrupted: bool,
}

/// How precise one figure must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The figure.
    pub metric: Metric,
    /// Half of its interval over its value, at most.
    pub share: f64,
}

/// A figure that is less precise than requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    /// The scenario.
    pub scenario: String,
    /// Its parameters.
    pub params: Vec<(String, Value)>,
    /// What was requested.
    pub goal: Goal,
    /// Its precision; `None`: it has no interval.
    pub share: Option<f64>,
}

/// One scenario at one sweep point.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// How many replications it has, where the run was stopped before all of them were finished: the first ones.
    pub finished: Option<u32>,
    /// All parameters of the file at this point.
    pub params: Vec<(String, Value)>,
    /// The hash of what its requests are ([`weir_plan::hash::requests_hash`]).
    pub requests_hash: String,
    /// Counts, summed over replications.
    pub requests: Requests,
    /// Share of selected requests that succeeded.
    pub success: Estimate,
    /// Ends of requests that succeeded within the deadline, between the first and the last arrival, over that time.
    pub goodput_per_s: Estimate,
    /// Selected requests over last less first arrival.
    pub request_rate_per_s: Estimate,
    /// Ends of any requests in that time, over that time.
    pub response_rate_per_s: Estimate,
    /// 1, plus every attempt beyond the first.
    pub attempts_per_request: Estimate,
    /// How often balancers ejected a target, summed over replications, from the start to the last end: the window
    /// does not matter.
    pub ejections: u64,
    /// Latencies of all selected requests.
    pub latency_all: Latency,
    /// Latencies of the selected requests that succeeded.
    pub latency_ok: Latency,
    /// Latencies of all selected requests at more quantiles, for drawing a curve.
    pub curve_all: Vec<AtQuantile>,
    /// The same of those that succeeded.
    pub curve_ok: Vec<AtQuantile>,
    /// Connections to all servers, where they are simulated.
    pub connections: Option<Connections>,
    /// One entry per site (or member), in order of the request's path.
    pub nodes: Vec<NodeResult>,
    /// Warnings about figures that would mislead, in words.
    pub warnings: Vec<String>,
    /// The quantiles for which single replications have too few samples: one of the warnings lists them
    /// ([`too_short`](crate::too_short)), if a longer run would help.
    pub too_short: Vec<&'static str>,
    /// How many times as long a replication would have to be for its slowest station to settle; `None`: it is long
    /// enough.
    pub needs_times: Option<f64>,
    /// The file's expectations about it, and whether they hold.
    pub expectations: Vec<ExpectationResult>,
    /// The values of single replications.
    pub each: ReplicationValues,
    /// The scenario over time, where it has `every`.
    pub over_time: Option<OverTime>,
    /// What typical requests consist of, and how the run went over time; only on request.
    pub explained: Option<Explanation>,
}

/// What a second run of the first replication found.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// By quantile; quantiles with too few requests are missing.
    pub typical: Vec<Typical>,
    /// How the replication went over time.
    pub series: Series,
}

/// A condition of `expect(...)`, and whether it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectationResult {
    /// The condition: `p99<300ms`.
    pub expect: String,
    /// The value, in the unit of the JSON.
    pub value: Estimate,
    /// The metric, which implies the unit.
    pub metric: Metric,
    /// Whether the whole interval meets the condition, or none of it does; `None`: that cannot be decided.
    pub holds: Option<bool>,
    /// Where the file states it, `file:line:column`.
    pub span: String,
}

impl ScenarioResult {
    /// The greatest of a part, of that figure among [`FIGURES`](crate::FIGURES).
    fn peak(&self, figure: usize) -> Estimate {
        self.over_time.as_ref().map_or_else(Estimate::default, |of| of.peak[figure])
    }

    /// The estimate of a metric that needs nothing but its name; empty for others.
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
            Metric::Connections => self.connections.as_ref().map_or_else(Estimate::default, |c| c.open),
            Metric::OpenedPerS => {
                self.connections.as_ref().map_or_else(Estimate::default, |c| c.opened_per_s)
            }
            Metric::PeakP50 => self.peak(0),
            Metric::PeakP95 => self.peak(1),
            Metric::PeakP99 => self.peak(2),
            Metric::PeakP999 => self.peak(3),
            Metric::PeakMax => self.peak(4),
            Metric::Errors(_) | Metric::Utilisation | Metric::WaitMs | Metric::Regained => {
                Estimate::default()
            }
        }
    }
}

/// A point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtQuantile {
    /// The quantile: 0.5 is the median.
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
    /// The failed by kind, in the order of [`Kind::ALL`]; only kinds that occurred.
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
    /// The longest line at any one member.
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
    /// Connections to its servers, or from its listeners; `None`: it has none, or is neither.
    pub connections: Option<Connections>,
    /// The values of single replications.
    pub each: ReplicationValues,
}
