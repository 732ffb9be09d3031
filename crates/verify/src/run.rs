//! A verification: scenarios one after another, run by run.

use crate::calibrate::calibrate;
use crate::connections::{self, ConnectionCounts};
use crate::figures::{self, Figures, QUANTILES};
use crate::hops::{CalibratedPoint, turned, with_hops};
use crate::options::{Error, Options};
use crate::outcome::{
    AtQuantile, BothWorlds, Connections, Progress, ScenarioVerified, TargetShares, Verification,
};
use crate::prepare::{self, Arrangement, CannotVerify};
use crate::record;
use crate::schedule::{Schedule, schedules};
use crate::statistics::{Compared, Statistic, Tolerances, Unit, Verdict, compare, unsaid};
use crate::trial::{RunOutcome, trial};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_plan::Plan;
use weir_plan::{NodeId, Point, Scenario, Spec, Window};
use weir_sim::{RecordOptions, ScenarioResult, Selection};
use weir_stats::{Estimate, Key};

/// How often each replication is simulated, with other times of the machine's own.
const TURNS: u32 = 8;

/// Verifies scenarios of a plan. What happens is written to `record`.
///
/// # Errors
/// [`Error`]; a run that the machine was too busy for is none.
pub fn verify(
    plan: &Plan,
    options: &Options,
    mut record: Option<&mut dyn Write>,
    tell: &dyn Fn(Progress<'_>),
    stop: &Arc<AtomicBool>,
) -> Result<Verification, Error> {
    let options = &Options { records: record.is_some(), ..options.clone() };
    if let Some(out) = &mut record {
        record::write_first(&plan.file, out).map_err(Error::Record)?;
    }
    let all = chosen(plan, options)?;
    for (_, _, prepared) in &all {
        prepared.addresses().into_iter().try_for_each(prepare::listens).map_err(|e| Error::System(e.0))?;
    }
    let calibration = calibrate(&options.exe, stop)?;
    let schedules = schedules(all.iter().map(|(_, scenario, _)| *scenario), options, &calibration, stop)?;
    let (mut scenarios, mut recorded) = (Vec::new(), 0);
    for ((point, scenario, prepared), schedule) in all.into_iter().zip(schedules) {
        let slowed = with_hops(point, scenario, &prepared, &calibration);
        let mut hear = |run: u32, real: &RunOutcome| match &mut record {
            Some(out) => {
                recorded += 1;
                record::write_run(&scenario.name, run, real, out).map_err(Error::Record)
            }
            None => Ok(()),
        };
        let world = World { plan, slowed: &slowed, scenario, prepared: &prepared };
        scenarios.push(world.verify(options, &schedule, tell, &mut hear, stop)?);
    }
    if let Some(out) = &mut record {
        record::write_last(recorded, out).map_err(Error::Record)?;
    }
    Ok(Verification {
        against: options.against,
        file: plan.file.clone(),
        plan: plan.hash.clone(),
        seed: options.seed,
        calibration,
        scenarios,
    })
}

/// A scenario to verify, and the part of it that is served.
type ChosenScenario<'a> = (&'a Point, &'a Scenario, Arrangement);

/// The scenarios that are asked for. All are looked at before the first one runs.
fn chosen<'a>(plan: &'a Plan, options: &Options) -> Result<Vec<ChosenScenario<'a>>, Error> {
    let scenarios = || plan.points.iter().flat_map(|p| p.scenarios.iter().map(move |s| (p, s)));
    for name in &options.scenarios {
        if !scenarios().any(|(_, s)| s.name == *name) {
            let mut known: Vec<String> = scenarios().map(|(_, s)| s.name.clone()).collect();
            known.dedup();
            return Err(Error::Simulated(weir_sim::Error::UnknownScenario(name.clone(), known)));
        }
    }
    let mut all = Vec::new();
    for (at, point) in plan.points.iter().enumerate() {
        for scenario in &point.scenarios {
            if options.scenarios.is_empty() || options.scenarios.contains(&scenario.name) {
                let (point_served, scenario_served) = match &options.reality {
                    None => (point, scenario),
                    Some(reality) => served_instead(reality, at, &scenario.name)?,
                };
                let prepared = Arrangement::new(point_served, scenario_served, options.real)
                    .and_then(|p| p.against(options.against));
                let prepared = prepared.map_err(Error::Cannot)?;
                all.push((point, scenario, prepared));
            }
        }
    }
    if all.is_empty() {
        return Err(Error::Cannot(CannotVerify(format!(
            "{} has no scenario: nothing says what load it gets",
            plan.file
        ))));
    }
    Ok(all)
}

/// The scenario of another plan that is served in place of one.
fn served_instead<'a>(reality: &'a Plan, at: usize, name: &str) -> Result<(&'a Point, &'a Scenario), Error> {
    let found = reality.points.get(at).and_then(|p| Some((p, p.scenarios.iter().find(|s| s.name == name)?)));
    found.ok_or_else(|| Error::Cannot(CannotVerify(format!("{} has no scenario `{name}`", reality.file))))
}

/// A scenario, as it is simulated and as it is served.
struct World<'a> {
    plan: &'a Plan,
    slowed: &'a CalibratedPoint,
    scenario: &'a Scenario,
    prepared: &'a Arrangement,
}

impl World<'_> {
    fn verify(
        &self,
        options: &Options,
        schedule: &Schedule,
        tell: &dyn Fn(Progress<'_>),
        hear: &mut dyn FnMut(u32, &RunOutcome) -> Result<(), Error>,
        stop: &Arc<AtomicBool>,
    ) -> Result<ScenarioVerified, Error> {
        let World { slowed, scenario, prepared, .. } = *self;
        let (mut pairs, mut void, mut late) = (Vec::new(), Vec::new(), Vec::new());
        let (mut selected, mut connecting) = ((0, 0), (0, 0.0));
        let mut warnings: Vec<String> = Vec::new();
        let options = &Options { requests: schedule.requests.or(options.requests), ..options.clone() };
        let mut next = 0;
        while (pairs.len() as u32) < schedule.runs && next < schedule.most_runs {
            let done = pairs.len() as u32;
            tell(Progress { scenario: &scenario.name, run: done + 1, runs: schedule.runs });
            let wave = next..schedule.most_runs.min(next + schedule.at_once.min(schedule.runs - done));
            next = wave.end;
            for (run, (simulated, opened), real) in self.wave(options, wave, stop)? {
                hear(run, &real)?;
                let new = |w: &&String| !warnings.contains(*w);
                warnings.extend(real.load.warnings.iter().filter(new).cloned().collect::<Vec<_>>());
                if let Some(why) = real.void(schedule.late_ns) {
                    void.push(why);
                    continue;
                }
                selected = (selected.0 + opened, selected.1 + real.load.requests.selected);
                let (n, took_s) = real.opened.unwrap_or_default();
                connecting = (connecting.0 + n, connecting.1 + took_s);
                late.extend(real.late_ns);
                pairs.push((simulated, Figures::real(&real, prepared, scenario.patience_ns.is_some())));
            }
        }
        let runs = pairs.len() as u32;
        let connections = self.connections(&pairs, connecting.0, connecting.1);
        warnings.extend(connections::matter(
            selected.0,
            selected.1,
            connections.server_takes_ms,
            mean_ms(&pairs),
        ));
        let statistics = statistics(&pairs, &options.tolerances);
        warnings.extend(too_few(&statistics, selected.1 / u64::from(runs.max(1))));
        let of_all = Verdict::of_all(statistics.iter().map(|s| s.verdict));
        Ok(ScenarioVerified {
            name: scenario.name.clone(),
            params: slowed.point.params.clone(),
            runs,
            asked_runs: schedule.runs,
            void,
            curve: curve(&pairs),
            ejections: slowed.point.specs.iter().any(ejects).then(|| ejections(&pairs)),
            targets: targets(&pairs, prepared),
            verdict: if statistics.is_empty() { Verdict::Undecided } else { of_all },
            statistics,
            connections,
            timers_late_ns: late.into_iter().reduce(f64::max),
            warnings,
        })
    }

    /// Some runs beside each other, each in both worlds.
    fn wave(
        &self,
        options: &Options,
        runs: Range<u32>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<(u32, Predicted, RunOutcome)>, Error> {
        let simulated = runs.clone().map(|run| self.predict(options, run, stop));
        let simulated: Vec<Predicted> = simulated.collect::<Result<_, _>>()?;
        let World { prepared, scenario, .. } = *self;
        // One that fails ends those beside it.
        let failed: &Arc<AtomicBool> = &Arc::default();
        let real: Vec<Result<Option<RunOutcome>, Error>> = thread::scope(|scope| {
            let one = move |run| {
                let ended = trial(prepared, scenario, options, run, stop, failed);
                ended.inspect_err(|_| failed.store(true, Ordering::Relaxed))
            };
            let begin = |run| scope.spawn(move || one(run));
            let begun: Vec<_> = runs.clone().map(begin).collect();
            let broke = |_| Err(Error::System("a run has panicked".to_owned()));
            begun.into_iter().map(|run| run.join().unwrap_or_else(broke)).collect()
        });
        if let Some(at) = real.iter().position(Result::is_err) {
            return Err(real.into_iter().nth(at).and_then(Result::err).unwrap_or(Error::Interrupted));
        }
        let of_run = |((run, simulated), real): ((u32, _), Result<Option<RunOutcome>, Error>)| {
            Ok((run, simulated, real?.ok_or(Error::Interrupted)?))
        };
        runs.zip(simulated).zip(real).map(of_run).collect()
    }

    /// The prediction for a run: the mean over a replication's turns, and the connections of the first turn.
    fn predict(&self, options: &Options, replication: u32, stop: &AtomicBool) -> Result<Predicted, Error> {
        let turn = |turn| {
            let result = self.simulate(options, replication, turn, stop)?;
            Ok(Figures::simulated(&result, &self.slowed.nodes))
        };
        let turns = (0..TURNS).map(turn).collect::<Result<Vec<Figures>, Error>>()?;
        let opened = self.opened(options, replication, stop);
        let connections = [opened.client, opened.server].map(|n| n.map(|n| n as f64));
        Ok((Figures { connections, ..figures::mean(&turns) }, opened.selected))
    }

    /// The connections that a replication needs; nothing is known of too large ones.
    fn opened(&self, options: &Options, replication: u32, stop: &AtomicBool) -> ConnectionCounts {
        let (plan, asked) = self.asked(options, replication, 0);
        let looks = RecordOptions { trace: Some(Selection::All), explain: false };
        let recordings = weir_sim::record(&plan, &asked, &looks, &|_, _| {}, stop);
        let recording = recordings.ok().flatten().and_then(|all| all.into_iter().next());
        let key = Key::new(options.seed).with(u64::from(replication));
        recording.map_or_else(ConnectionCounts::default, |recording| {
            connections::predicted(
                recording.point,
                self.scenario,
                self.prepared,
                self.slowed,
                key,
                &recording.histories,
            )
        })
    }

    fn connections(&self, pairs: &[Pair], n: u64, took_s: f64) -> Connections {
        let both = |which: usize| BothWorlds {
            simulated: Estimate::new(pairs.iter().map(|(simulated, _)| simulated.connections[which])),
            real: Estimate::new(pairs.iter().map(|(_, real)| real.connections[which])),
        };
        let server_takes_ms = (n > 0).then(|| took_s * 1e3 / n as f64);
        Connections { client: both(0), server: both(1), server_takes_ms }
    }

    /// One turn of a replication.
    fn simulate(
        &self,
        options: &Options,
        replication: u32,
        turn: u32,
        stop: &AtomicBool,
    ) -> Result<ScenarioResult, Error> {
        let (of_scenario, asked) = self.asked(options, replication, turn);
        let results = weir_sim::run(&of_scenario, &asked, &|_, _| {}, stop).map_err(Error::Simulated)?;
        results.scenarios.into_iter().next().ok_or(Error::Interrupted)
    }

    /// What the simulator is asked for one turn of a replication.
    fn asked(&self, options: &Options, replication: u32, turn: u32) -> (Plan, weir_sim::Options) {
        let mut point = turned(self.slowed.point.clone(), turn);
        // The load finds no window by itself: it takes the middle half (and warns).
        let autos = point.scenarios.iter_mut().filter(|s| s.window == Window::Auto);
        autos.for_each(|s| s.window = Window::Middle);
        let of_scenario = Plan { points: vec![point], ..self.plan.clone() };
        let asked = weir_sim::Options {
            seed: options.seed,
            first: replication,
            replications: 1,
            requests: options.requests,
            threads: 1,
            members: true,
            scenarios: vec![self.scenario.name.clone()],
        };
        (of_scenario, asked)
    }
}

/// Figures of both worlds, of one run.
type Pair = (Figures, Figures);

/// The prediction for a run, and the connections that its selected requests open.
type Predicted = (Figures, u64);

fn statistics(pairs: &[Pair], tolerances: &Tolerances) -> Vec<Statistic> {
    type Pick = fn(&Figures) -> Option<f64>;
    let latency = |name| Compared { name, unit: Unit::Ratio, is_ms: true };
    let plain = |name, unit| Compared { name, unit, is_ms: false };
    let picks: [(Compared, Pick); 6] = [
        (latency("mean"), |f| f.mean),
        (latency("p50"), |f| f.quantiles[0]),
        (latency("p95"), |f| f.quantiles[2]),
        (latency("p99"), |f| f.quantiles[3]),
        (plain("success", Unit::Points), |f| f.success),
        (plain("attempts", Unit::Ratio), |f| f.attempts),
    ];
    let of = |(compared, pick): (Compared, Pick)| {
        let values: Vec<_> = pairs.iter().map(|(simulated, real)| (pick(simulated), pick(real))).collect();
        let (name, tolerance) = (compared.name, tolerances.tolerance(compared.name));
        let unsaid = || (!values.is_empty() && tolerances.is_set(name)).then(|| unsaid(compared, tolerance));
        compare(compared, &values, tolerance).or_else(unsaid)
    };
    let mut all: Vec<Statistic> = picks.into_iter().filter_map(of).collect();
    all.extend(farthest(pairs).and_then(|server| {
        let share = |f: &Figures| f.shares.get(&server).copied();
        let values: Vec<_> = pairs.iter().map(|(simulated, real)| (share(simulated), share(real))).collect();
        compare(plain("share", Unit::Points), &values, tolerances.tolerance("share"))
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

fn curve(pairs: &[Pair]) -> Vec<AtQuantile> {
    let at = |(i, q): (usize, f64)| AtQuantile {
        q,
        simulated: Estimate::new(pairs.iter().map(|(simulated, _)| simulated.quantiles[i])),
        real: Estimate::new(pairs.iter().map(|(_, real)| real.quantiles[i])),
    };
    QUANTILES.into_iter().enumerate().map(at).collect()
}

/// Whether a balancer can eject its targets.
fn ejects(spec: &Spec) -> bool {
    matches!(spec, Spec::Lb(lb) if lb.eject.is_some() || lb.outlier.is_some())
}

fn ejections(pairs: &[Pair]) -> BothWorlds {
    BothWorlds {
        simulated: Estimate::new(pairs.iter().map(|(simulated, _)| Some(simulated.ejections))),
        real: Estimate::new(pairs.iter().map(|(_, real)| Some(real.ejections))),
    }
}

/// Quantiles that are not compared, since a run has too few requests for them, in words.
fn too_few(statistics: &[Statistic], selected: u64) -> Option<String> {
    let said = |name: &str| statistics.iter().any(|s| s.name == name && s.simulated.value.is_some());
    let wanted = [("p95", 200), ("p99", 1000)].into_iter().filter(|(name, _)| !said(name));
    let names: Vec<String> = wanted.map(|(name, n)| format!("{name} ({n})")).collect();
    (!names.is_empty() && !statistics.is_empty()).then(|| {
        format!(
            "not compared, since only {selected} requests of a run count and more are needed: {}; send more (--requests)",
            names.join(", ")
        )
    })
}

/// The mean latency as it was, ms.
fn mean_ms(pairs: &[Pair]) -> Option<f64> {
    Estimate::new(pairs.iter().map(|(_, real)| real.mean)).value
}

fn targets(pairs: &[Pair], prepared: &Arrangement) -> Vec<TargetShares> {
    let of = |server: NodeId| {
        let share = |f: &Figures| f.shares.get(&server).copied();
        TargetShares {
            name: prepared.name(server),
            simulated: Estimate::new(pairs.iter().map(|(simulated, _)| share(simulated))),
            real: Estimate::new(pairs.iter().map(|(_, real)| share(real))),
        }
    };
    prepared.compared().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Calibration;
    use std::path::Path;
    use weir_topology::{Request, evaluate};

    /// Four routers over forty servers at a utilisation of 0.8.
    fn source(lb: &str, service: &str, loops: u32) -> String {
        format!(
            "def app():\n    return faulty(5*s, 500*ms, queue(delay(dist.exponential({service}), server(\"app\"))))\n\n\
             apps = pool(40, app)\n\
             web = listen(\"127.0.0.1:0\", {lb}, loops = {loops}, name = \"web\")\n\
             scenario(\"one\", web, traffic.poisson(rate = 640), requests = 20000)\n"
        )
    }

    fn plan(source: &str) -> Plan {
        let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
        evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan
    }

    /// What would be said if this were reality: the same comparison, with another turn of the simulator for reality.
    fn told(simulated: &str, reality: &str) -> (Verdict, Vec<Statistic>) {
        let options = Options { runs: 6, ..Options::new(Path::new("")) };
        let calibration = Calibration {
            client_hop_ns: 1e5,
            client_deciles_ns: std::array::from_fn(|i| 6e4 + 1e4 * i as f64),
            server_hop_ns: 3e4,
            ..Calibration::default()
        };
        let run = |source: &str, of: &dyn Fn(&World<'_>, u32) -> Figures| {
            let plan = plan(source);
            let (point, scenario) = (plan.points[0].clone(), plan.points[0].scenarios[0].clone());
            let prepared = Arrangement::new(&point, &scenario, false).unwrap();
            let slowed = with_hops(&point, &scenario, &prepared, &calibration);
            let world = World { plan: &plan, slowed: &slowed, scenario: &scenario, prepared: &prepared };
            (0..options.runs).map(|run| of(&world, run)).collect::<Vec<_>>()
        };
        let stop = AtomicBool::new(false);
        let simulated = run(simulated, &|world, run| world.predict(&options, run, &stop).unwrap().0);
        let reality = run(reality, &|world, run| {
            let result = world.simulate(&options, run, TURNS, &stop).unwrap();
            Figures::simulated(&result, &world.slowed.nodes)
        });
        let pairs: Vec<Pair> = simulated.into_iter().zip(reality).collect();
        let statistics = statistics(&pairs, &options.tolerances);
        (Verdict::of_all(statistics.iter().map(|s| s.verdict)), statistics)
    }

    /// Verification can fail: a topology other than the simulated one is recognised at a utilisation of 0.8.
    #[test]
    fn a_wrong_pairing_is_told_apart() {
        let least = |more: &str| format!("lb.least_conn(apps{more})");
        let right = source(&least(", error_hold = 1*s"), "50*ms", 4);
        assert_eq!(told(&right, &right).0, Verdict::Agrees);
        for (what, wrong) in [
            ("other ties", source(&least(", error_hold = 1*s, ties = \"first\""), "50*ms", 4)),
            ("other loops", source(&least(", error_hold = 1*s"), "50*ms", 1)),
            ("another policy", source("lb.p2c(apps)", "50*ms", 4)),
            ("no error hold", source(&least(""), "50*ms", 4)),
            ("ten per cent longer", source(&least(", error_hold = 1*s"), "55*ms", 4)),
        ] {
            let (verdict, statistics) = told(&right, &wrong);
            assert_eq!(verdict, Verdict::Differs, "{what}: {statistics:#?}");
        }
    }
}
