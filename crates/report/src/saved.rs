//! Results as they were saved, read back for a comparison: the statistics of each scenario, and their values in single
//! replications.

use crate::json;
use serde_json::Value;
use std::fmt;
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

/// The statistics of a scenario that are compared, with their place in the JSON.
const STATISTICS: [(&str, &str); 15] = [
    ("mean", "/latency_ms/all/mean"),
    ("p50", "/latency_ms/all/p50"),
    ("p90", "/latency_ms/all/p90"),
    ("p95", "/latency_ms/all/p95"),
    ("p99", "/latency_ms/all/p99"),
    ("p999", "/latency_ms/all/p999"),
    ("ok_mean", "/latency_ms/ok/mean"),
    ("ok_p50", "/latency_ms/ok/p50"),
    ("ok_p90", "/latency_ms/ok/p90"),
    ("ok_p95", "/latency_ms/ok/p95"),
    ("ok_p99", "/latency_ms/ok/p99"),
    ("ok_p999", "/latency_ms/ok/p999"),
    ("success", "/success"),
    ("goodput_per_s", "/goodput_per_s"),
    ("attempts_per_request", "/attempts_per_request"),
];

/// A result of `weir sim`.
#[derive(Clone, Debug)]
pub struct SavedResult {
    /// The topology's name.
    pub file: String,
    /// The seed.
    pub seed: u64,
    /// Its scenarios, in its order.
    pub designs: Vec<Design>,
}

/// A scenario at one point of the sweep.
#[derive(Clone, Debug)]
pub struct Design {
    /// Its name.
    pub name: String,
    /// The number of replications: of a run that was interrupted, those that it has.
    pub replications: u64,
    /// All parameters.
    pub params: Vec<(String, Value)>,
    /// The hash of what its requests are; `None`: it was saved before there was one.
    pub requests_hash: Option<String>,
    /// What weir warned of.
    pub(crate) warnings: Vec<String>,
    /// How many of its requests count, in all replications.
    pub(crate) selected: u64,
    /// Whether some of its requests failed.
    pub(crate) failed: bool,
    pub(crate) statistics: Vec<Statistic>,
}

/// A statistic of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Statistic {
    pub name: &'static str,
    pub estimate: Estimate,
    /// The value of each replication; empty if there are none.
    pub each: Vec<f64>,
}

/// Why a file is not a comparable result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAResult(String);

impl fmt::Display for NotAResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SavedResult {
    /// Whether bytes look like a result, and not like a topology or a plan.
    pub fn is_saved(bytes: &[u8]) -> bool {
        let head: String = String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        head.trim_start_matches('\u{feff}').starts_with("{\"schema\":\"weir.sim/1\"")
    }

    /// Reads a result.
    ///
    /// # Errors
    /// The text is not JSON, or lacks a statistic that is compared.
    pub fn read(bytes: &[u8]) -> Result<SavedResult, NotAResult> {
        let document: Value =
            serde_json::from_slice(bytes).map_err(|e| NotAResult(format!("it is not JSON: {e}")))?;
        let lacks = |what: &str| NotAResult(format!("it lacks `{what}`, which every result has"));
        let scenarios = document["scenarios"].as_array().ok_or_else(|| lacks("scenarios"))?;
        let replications = document["replications"].as_u64().ok_or_else(|| lacks("replications"))?;
        Ok(SavedResult {
            file: document["file"].as_str().ok_or_else(|| lacks("file"))?.to_owned(),
            seed: document["seed"].as_u64().ok_or_else(|| lacks("seed"))?,
            designs: scenarios.iter().map(|s| design(s, replications)).collect::<Result<_, _>>()?,
        })
    }

    /// Converts a result in memory, which has the values by replication.
    ///
    /// # Errors
    /// As [`SavedResult::read`].
    pub fn new(results: &Results) -> Result<SavedResult, NotAResult> {
        let mut bytes = Vec::new();
        // What explains a scenario is large, and is not compared.
        let bare = |s: &ScenarioResult| ScenarioResult { explained: None, ..s.clone() };
        let results = Results { scenarios: results.scenarios.iter().map(bare).collect(), ..results.clone() };
        json::write(&results, true, &mut bytes).map_err(|e| NotAResult(e.to_string()))?;
        SavedResult::read(&bytes)
    }
}

fn design(scenario: &Value, replications: u64) -> Result<Design, NotAResult> {
    let name = scenario["name"].as_str().ok_or_else(|| NotAResult("a scenario has no name".to_owned()))?;
    let params = scenario["params"].as_object().into_iter().flatten();
    let statistics = STATISTICS.iter().map(|(statistic, path)| {
        let found = scenario.pointer(path);
        let e = found.ok_or_else(|| NotAResult(format!("`{name}` lacks `{}`", path.trim_start_matches('/'))))?;
        let each = e["each"].as_array().ok_or_else(|| {
            NotAResult(
                "it has no values by replication, without which nothing can be compared: save it with `--save x.json`, or \
                 with `--output json --each`"
                    .to_owned(),
            )
        })?;
        let number = |key: &str| e[key].as_f64();
        Ok(Statistic {
            name: statistic,
            estimate: Estimate { value: number("value"), low: number("low"), high: number("high") },
            each: each.iter().filter_map(Value::as_f64).collect(),
        })
    });
    Ok(Design {
        name: name.to_owned(),
        replications: scenario["replications"].as_u64().unwrap_or(replications),
        params: params.map(|(name, value)| (name.clone(), value.clone())).collect(),
        requests_hash: scenario["requests_hash"].as_str().map(str::to_owned),
        warnings: scenario["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|w| w.as_str().map(str::to_owned))
            .collect(),
        selected: scenario["requests"]["selected"].as_u64().unwrap_or_default(),
        failed: scenario["requests"]["failed"].as_u64().is_some_and(|n| n > 0),
        statistics: statistics.collect::<Result<_, _>>()?,
    })
}
