//! The outcome of a verification: each scenario in simulation and in reality.

use crate::calibrate::Calibration;
use crate::router::Router;
use crate::statistics::{Statistic, Verdict};
use std::fmt;
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
    /// What this machine adds, which was simulated too; `None`: interrupted before that was measured.
    pub calibration: Option<Calibration>,
    /// Each scenario of which a run counts, in the order of the file; all, unless it was interrupted.
    pub scenarios: Vec<ScenarioVerified>,
    /// The scenarios that an interrupt kept from being verified.
    pub missing: Vec<MissingScenario>,
}

impl Verification {
    /// What follows from all of them. Where some are missing, or some of their runs, they do not agree yet.
    pub fn verdict(&self) -> Verdict {
        let rest = self.is_interrupted().then_some(Verdict::Undecided);
        Verdict::of_all(self.scenarios.iter().map(|s| s.verdict).chain(rest))
    }

    /// Whether an interrupt ended it before all runs were made.
    pub fn is_interrupted(&self) -> bool {
        !self.missing.is_empty() || self.scenarios.iter().any(|s| s.interrupted)
    }
}

/// A scenario of which no run counts, since the verification was interrupted.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingScenario {
    /// Its name.
    pub name: String,
    /// The parameters that it would have run with.
    pub params: Vec<(String, Value)>,
    /// Runs that were to count.
    pub runs: u32,
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
    /// Whether an interrupt kept it from more runs.
    pub interrupted: bool,
    /// Runs that the machine was too busy for, each with why.
    pub void: Vec<String>,
    /// What was compared.
    pub statistics: Vec<Statistic>,
    /// What was not.
    pub omissions: Vec<Omission>,
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

/// Statistics of a scenario that were not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// Their names; none: all.
    pub names: Vec<&'static str>,
    /// Why.
    pub why: OmissionCause,
}

/// Why statistics were not compared; in words, a clause behind "since".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OmissionCause {
    /// Too few requests of a run count. Longer runs have more.
    FewRequests {
        /// Those of the run that has the fewest.
        counted: u64,
        /// How many a statistic needs.
        needed: u64,
    },
    /// Enough of them count, but too few have a latency, as where clients give up most. Longer runs need not help.
    FewLatencies,
    /// Another cause, in words.
    Other(String),
}

impl fmt::Display for OmissionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OmissionCause::FewRequests { counted: 1, needed } => {
                write!(f, "1 request of a run counts, and it needs {needed}")
            }
            OmissionCause::FewRequests { counted, needed } => {
                write!(f, "{counted} requests of a run count, and it needs {needed}")
            }
            OmissionCause::FewLatencies => f.write_str("too few requests of a run have a latency"),
            OmissionCause::Other(why) => f.write_str(why),
        }
    }
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
