//! A verification: scenarios one after another, run by run.

use crate::figures::{Figures, QUANTILES};
use crate::prepare::{CannotVerify, Prepared};
use crate::statistics::{Compared, Statistic, Tolerances, Unit, Verdict, compare};
use crate::trial::{Real, trial};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_sim::ScenarioResult;
use weir_stats::Estimate;
use weir_topology::Plan;
use weir_topology::plan::{NodeId, Point, Scenario, Value};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all draws.
    pub seed: u64,
    /// Runs of each scenario, at least 1; with one nothing can be decided.
    pub runs: u32,
    /// Requests of each run, instead of what the file says.
    pub requests: Option<u64>,
    /// The scenarios to run; all if empty.
    pub scenarios: Vec<String>,
    /// What may differ.
    pub tolerances: Tolerances,
    /// This program: its copies are the processes of a run.
    pub exe: PathBuf,
}

/// Why there is no verification.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The scenarios cannot be verified, in words.
    Cannot(CannotVerify),
    /// They cannot be simulated.
    Simulated(weir_sim::Error),
    /// The machine failed, in words.
    System(String),
    /// It was told to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cannot(why) => why.fmt(f),
            Error::Simulated(e) => write!(f, "{e:?}"),
            Error::System(why) => f.write_str(why),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// How far a verification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The scenario that runs.
    pub scenario: &'a str,
    /// Which of its runs, from 1.
    pub run: u32,
    /// How many it has.
    pub runs: u32,
}

/// What a verification found.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The topology file's name.
    pub file: String,
    /// The plan's hash.
    pub plan: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Each scenario.
    pub scenarios: Vec<ScenarioVerified>,
}

impl Verification {
    /// What follows from all of them.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_all(self.scenarios.iter().map(|s| s.verdict))
    }
}

/// A scenario in both worlds.
#[derive(Clone, Debug)]
pub struct ScenarioVerified {
    /// Its name.
    pub name: String,
    /// The parameters that it ran with.
    pub params: Vec<(String, Value)>,
    /// Runs that count.
    pub runs: u32,
    /// Runs that the machine was too busy for, each with why.
    pub void: Vec<String>,
    /// What was compared.
    pub statistics: Vec<Statistic>,
    /// The servers' shares of the requests.
    pub targets: Vec<TargetShares>,
    /// What follows.
    pub verdict: Verdict,
    /// Connections that clients made, mean over runs.
    pub connections: f64,
    /// What to know when reading this.
    pub warnings: Vec<String>,
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

/// Verifies scenarios of a plan.
///
/// # Errors
/// [`Error`]; a run that the machine was too busy for is none.
pub fn verify(
    plan: &Plan,
    options: &Options,
    tell: &dyn Fn(Progress<'_>),
    stop: &Arc<AtomicBool>,
) -> Result<Verification, Error> {
    let mut scenarios = Vec::new();
    // All are looked at before the first one runs.
    let mut all = Vec::new();
    for point in &plan.points {
        for scenario in &point.scenarios {
            if options.scenarios.is_empty() || options.scenarios.contains(&scenario.name) {
                all.push((point, scenario, Prepared::new(point, scenario).map_err(Error::Cannot)?));
            }
        }
    }
    for (point, scenario, prepared) in all {
        scenarios.push(of_scenario((plan, point, scenario), &prepared, options, tell, stop)?);
    }
    Ok(Verification { file: plan.file.clone(), plan: plan.hash.clone(), seed: options.seed, scenarios })
}

fn of_scenario(
    (plan, point, scenario): (&Plan, &Point, &Scenario),
    prepared: &Prepared,
    options: &Options,
    tell: &dyn Fn(Progress<'_>),
    stop: &Arc<AtomicBool>,
) -> Result<ScenarioVerified, Error> {
    let (mut pairs, mut void, mut connections) = (Vec::new(), Vec::new(), 0);
    let mut warnings = Vec::new();
    for run in 0..options.runs {
        tell(Progress { scenario: &scenario.name, run: run + 1, runs: options.runs });
        let result = simulate(plan, point, scenario, options, run, stop)?;
        let Some(real) = trial(prepared, scenario, options, run, stop)? else {
            return Err(Error::Interrupted);
        };
        for warning in
            real.load.warnings.iter().filter(|w| !warnings.contains(*w)).cloned().collect::<Vec<_>>()
        {
            warnings.push(warning);
        }
        if let Some(why) = &real.load.void {
            void.push(why.clone());
            continue;
        }
        connections += real.load.connections;
        pairs.push(figures(&result, &real, prepared, scenario));
    }
    let runs = pairs.len() as u32;
    let statistics = statistics(&pairs, &options.tolerances);
    let mut verdict = Verdict::of_all(statistics.iter().map(|s| s.verdict));
    if statistics.is_empty() {
        verdict = Verdict::Undecided;
    }
    Ok(ScenarioVerified {
        name: scenario.name.clone(),
        params: point.params.clone(),
        runs,
        void,
        targets: targets(&pairs, prepared),
        statistics,
        verdict,
        connections: connections as f64 / f64::from(runs.max(1)),
        warnings,
    })
}

/// Figures of both worlds, of one run.
type Pair = (Figures, Figures);

fn figures(simulated: &ScenarioResult, real: &Real, prepared: &Prepared, scenario: &Scenario) -> Pair {
    let patience = scenario.patience_ns.is_some();
    (Figures::simulated(simulated, prepared), Figures::real(real, prepared, patience))
}

/// One replication.
fn simulate(
    plan: &Plan,
    point: &Point,
    scenario: &Scenario,
    options: &Options,
    replication: u32,
    stop: &AtomicBool,
) -> Result<ScenarioResult, Error> {
    let of_scenario = Plan { points: vec![point.clone()], ..plan.clone() };
    let asked = weir_sim::Options {
        seed: options.seed,
        first: replication,
        replications: 1,
        requests: options.requests,
        threads: 1,
        members: true,
        scenarios: vec![scenario.name.clone()],
    };
    let results = weir_sim::run(&of_scenario, &asked, &|_, _| {}, stop).map_err(Error::Simulated)?;
    results.scenarios.into_iter().next().ok_or(Error::Interrupted)
}

fn statistics(pairs: &[Pair], tolerances: &Tolerances) -> Vec<Statistic> {
    type Pick = fn(&Figures) -> Option<f64>;
    let latency = |name| Compared { name, unit: Unit::Ratio, is_ms: true };
    let plain = |name, unit| Compared { name, unit, is_ms: false };
    let picks: [(Compared, Pick); 6] = [
        (latency("mean"), |f| f.mean),
        (latency(QUANTILES[0].0), |f| f.quantiles[0]),
        (latency(QUANTILES[1].0), |f| f.quantiles[1]),
        (latency(QUANTILES[2].0), |f| f.quantiles[2]),
        (plain("success", Unit::Points), |f| f.success),
        (plain("attempts", Unit::Ratio), |f| f.attempts),
    ];
    let of = |(compared, pick): (Compared, Pick)| {
        let values: Vec<_> = pairs.iter().map(|(simulated, real)| (pick(simulated), pick(real))).collect();
        compare(compared, &values, tolerances.of(compared.name))
    };
    let mut all: Vec<Statistic> = picks.into_iter().filter_map(of).collect();
    all.extend(farthest(pairs).and_then(|server| {
        let share = |f: &Figures| f.shares.get(&server).copied();
        let values: Vec<_> = pairs.iter().map(|(simulated, real)| (share(simulated), share(real))).collect();
        compare(plain("share", Unit::Points), &values, tolerances.of("share"))
    }));
    all
}

/// The server whose share differs most.
fn farthest(pairs: &[Pair]) -> Option<NodeId> {
    let off = |server: NodeId| {
        let of = |f: &Figures| f.shares.get(&server).copied().unwrap_or_default();
        pairs.iter().map(|(simulated, real)| of(real) - of(simulated)).sum::<f64>().abs()
    };
    let servers = pairs.first()?.0.shares.keys().copied();
    servers.max_by(|a, b| off(*a).total_cmp(&off(*b)).then(b.cmp(a)))
}

fn targets(pairs: &[Pair], prepared: &Prepared) -> Vec<TargetShares> {
    let of = |server: &NodeId| {
        let share = |f: &Figures| f.shares.get(server).copied();
        TargetShares {
            name: prepared.name(*server),
            simulated: Estimate::of(pairs.iter().map(|(simulated, _)| share(simulated))),
            real: Estimate::of(pairs.iter().map(|(_, real)| share(real))),
        }
    };
    prepared.servers.iter().map(of).collect()
}
