//! The outcome of a verification: each scenario in simulation and in reality.

use crate::calibrate::Calibration;
use crate::router::Router;
use crate::statistics::{Statistic, Verdict};
use weir_plan::Value;
use weir_stats::Estimate;

/// Progress of a verification, as a run begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The scenario that runs.
    pub scenario: &'a str,
    /// Which of its runs, from 1.
    pub run: u32,
    /// Their number.
    pub runs: u32,
    /// Finished runs of all scenarios.
    pub done: u32,
    /// The number of runs of all scenarios.
    pub all: u32,
    /// How long requests arrive in the finished runs, and what starting those takes, s; `None`: answers decide it.
    pub done_s: Option<f64>,
    /// The same of the other runs, with this one.
    pub left_s: Option<f64>,
}

/// The outcome of a verification.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The load balancer that routed.
    pub against: Router,
    /// The topology file's name.
    pub file: String,
    /// The plan's hash.
    pub plan: String,
    /// Seed of all draws.
    pub seed: u64,
    /// What this machine adds, which was simulated too.
    pub calibration: Calibration,
    /// Each scenario.
    pub scenarios: Vec<ScenarioVerified>,
}

impl Verification {
    /// What follows from all of them.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_all(self.scenarios.iter().map(|s| s.verdict))
    }
}

/// A scenario in simulation and in reality.
#[derive(Clone, Debug)]
pub struct ScenarioVerified {
    /// Its name.
    pub name: String,
    /// The parameters that it ran with.
    pub params: Vec<(String, Value)>,
    /// Runs that count.
    pub runs: u32,
    /// Runs that were to count.
    pub asked_runs: u32,
    /// Runs that the machine was too busy for, each with why.
    pub void: Vec<String>,
    /// What was compared.
    pub statistics: Vec<Statistic>,
    /// Latencies by quantile.
    pub curve: Vec<AtQuantile>,
    /// The servers' shares of the requests.
    pub targets: Vec<TargetShares>,
    /// What follows.
    pub verdict: Verdict,
    /// How often balancers ejected a target in a run; `None` where none of them can.
    pub ejections: Option<BothWorlds>,
    /// Connections that were opened in a run.
    pub connections: Connections,
    /// One timer of ten of the servers rang later than this, ns, in the worst run.
    pub timers_late_ns: Option<f64>,
    /// What to know when reading this.
    pub warnings: Vec<String>,
}

/// Connections that were opened in a run; what cannot be said has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connections {
    /// By clients.
    pub client: BothWorlds,
    /// By routers, to servers and to routers behind them.
    pub server: BothWorlds,
    /// How long a router took for one, ms.
    pub server_takes_ms: Option<f64>,
}

/// A figure of simulation and reality that is reported without a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BothWorlds {
    /// As simulated.
    pub simulated: Estimate,
    /// As it was.
    pub real: Estimate,
}

/// A quantile of the latency, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtQuantile {
    /// Which: 0.5 is the median.
    pub q: f64,
    /// As simulated.
    pub simulated: Estimate,
    /// As it was.
    pub real: Estimate,
}

/// A server's share of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetShares {
    /// Its name.
    pub name: String,
    /// As simulated.
    pub simulated: Estimate,
    /// As it was.
    pub real: Estimate,
}
