//! What a simulation found out: one entry per scenario and sweep point, as the contract's JSON has it.

use weir_policy::Kind;
use weir_stats::{Estimate, Latency};
use weir_topology::plan::Value;

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
    /// Latencies of all selected requests.
    pub latency_all: Latency,
    /// Latencies of the selected requests that succeeded.
    pub latency_ok: Latency,
    /// One entry per site (or member), in order of the request's way.
    pub nodes: Vec<NodeResult>,
    /// What would mislead, in words.
    pub warnings: Vec<String>,
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
}
