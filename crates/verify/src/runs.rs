//! The finished runs of a scenario in both worlds, and what is reported of them.

use crate::connections;
use crate::figures::Figures;
use crate::hops::CalibratedPoint;
use crate::omissions::{find_omissions, omit_undecided, warn_of_latencies};
use crate::options::Options;
use crate::outcome::{Connections, ScenarioVerified};
use crate::pairs::{Pair, both_worlds, curve, ejections, mean_ms, statistics, targets};
use crate::prepare::Arrangement;
use crate::schedule::Schedule;
use crate::statistics::Verdict;
use crate::trial::{RouterConnections, RunOutcome};
use weir_plan::{Scenario, Spec};

/// What is predicted for a run.
pub(crate) struct Prediction {
    pub figures: Figures,
    /// The connections that its selected requests open.
    pub opened: u64,
}

/// A run in both worlds.
pub(crate) struct RunPair {
    pub run: u32,
    pub simulated: Prediction,
    pub real: RunOutcome,
}

/// The finished runs of a scenario.
pub(crate) struct Runs<'a> {
    slowed: &'a CalibratedPoint,
    scenario: &'a Scenario,
    prepared: &'a Arrangement,
    schedule: &'a Schedule,
    /// The runs that count.
    pairs: Vec<Pair>,
    /// The others, each with why it is void.
    void: Vec<String>,
    warnings: Vec<String>,
    late_ns: Vec<f64>,
    /// Predicted connections of clients that requests which count open, and these requests.
    opened: u64,
    selected: u64,
    /// Connections of routers, and how long they took to open them, s.
    connections: u64,
    connecting_s: f64,
    /// When the last request of a run was sent, ns.
    last_ns: u64,
    /// The most requests of a run.
    sent: u64,
}

impl<'a> Runs<'a> {
    /// None yet.
    pub fn new(
        slowed: &'a CalibratedPoint,
        scenario: &'a Scenario,
        prepared: &'a Arrangement,
        schedule: &'a Schedule,
    ) -> Runs<'a> {
        Runs {
            slowed,
            scenario,
            prepared,
            schedule,
            pairs: Vec::new(),
            void: Vec::new(),
            warnings: Vec::new(),
            late_ns: Vec::new(),
            opened: 0,
            selected: 0,
            connections: 0,
            connecting_s: 0.0,
            last_ns: 0,
            sent: 0,
        }
    }

    /// How many of them count.
    pub fn count(&self) -> u32 {
        self.pairs.len() as u32
    }

    /// Adds a run.
    pub fn add(&mut self, pair: RunPair) {
        let RunPair { simulated, real, .. } = pair;
        let instants = real.load.rows.iter().map(|row| row.intended_ns);
        self.last_ns = instants.fold(self.last_ns, u64::max);
        self.sent = self.sent.max(real.load.requests.total);
        for warning in &real.load.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        if let Some(why) = real.void(self.schedule.late_ns) {
            self.void.push(why);
            return;
        }
        self.opened += simulated.opened;
        self.selected += real.load.requests.selected;
        let RouterConnections { opened, connecting_s, .. } = real.connections.unwrap_or_default();
        self.connections += opened;
        self.connecting_s += connecting_s;
        self.late_ns.extend(real.late_ns);
        let real = Figures::real(&real, self.prepared, self.scenario.patience_ns.is_some());
        self.pairs.push(Pair { simulated: simulated.figures, real });
    }

    /// Compares both worlds. `options`: those of the verification; `interrupted`: more runs were to be made.
    pub fn report(self, options: &Options, interrupted: bool) -> ScenarioVerified {
        let connections = self.connections();
        let statistics = statistics(&self.pairs, &self.prepared.newcomers(), &options.tolerances);
        let of_all = Verdict::of_all(statistics.iter().map(|s| s.verdict));
        let advice = self.schedule.advise_longer(self.scenario, options, self.sent);
        let (runs, takes_ms) = (self.count(), connections.server_takes_ms);
        let matter = connections::matter(self.opened, self.selected, takes_ms, mean_ms(&self.pairs));
        let counted = self.pairs.iter().map(|pair| pair.real.requests).min().unwrap_or_default();
        let omissions = find_omissions(&statistics, counted, self.prepared);
        let missing = warn_of_latencies(&omissions, &advice);
        let unreached = self.prepared.describe_unreached(self.last_ns, &advice);
        let mut warnings = self.warnings;
        warnings.extend(matter.into_iter().chain(missing).chain(unreached));
        let point = &self.slowed.point;
        ScenarioVerified {
            name: self.scenario.name.clone(),
            params: point.params.clone(),
            runs,
            asked_runs: self.schedule.runs,
            interrupted,
            void: self.void,
            curve: curve(&self.pairs),
            ejections: point.specs.iter().any(ejects).then(|| ejections(&self.pairs)),
            targets: targets(&self.pairs, self.prepared),
            omissions: omit_undecided(omissions, &statistics),
            verdict: if statistics.is_empty() { Verdict::Undecided } else { of_all },
            statistics,
            connections,
            timers_late_ns: self.late_ns.into_iter().reduce(f64::max),
            warnings,
        }
    }

    fn connections(&self) -> Connections {
        let n = self.connections;
        Connections {
            client: both_worlds(&self.pairs, |figures| figures.from_clients),
            server: both_worlds(&self.pairs, |figures| figures.to_servers.map(|[opened, _]| opened)),
            server_takes_ms: (n > 0).then(|| self.connecting_s * 1e3 / n as f64),
        }
    }
}

/// Whether a balancer can eject its targets.
fn ejects(spec: &Spec) -> bool {
    matches!(spec, Spec::Lb(lb) if lb.eject.is_some() || lb.outlier.is_some())
}
