//! One scenario in both worlds, run by run: predicted, then served for real.

use crate::connections::{self, ClientConnections};
use crate::figures::{self, Figures};
use crate::hops::{CalibratedPoint, turned};
use crate::options::{Error, Options};
use crate::outcome::ScenarioVerified;
use crate::prepare::Arrangement;
use crate::runs::{Prediction, RunPair, Runs};
use crate::schedule::Schedule;
use crate::trial::{RunOutcome, trial};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_plan::{Plan, Scenario, Window};
use weir_sim::{Observer, RecordOptions, ScenarioResult, Selection};
use weir_stats::Key;

/// How often each replication is simulated, with other times of the machine's own.
const TURNS: u32 = 8;

/// A scenario, as it is simulated and as it is served.
pub(crate) struct World<'a> {
    pub plan: &'a Plan,
    pub slowed: &'a CalibratedPoint,
    pub scenario: &'a Scenario,
    pub prepared: &'a Arrangement,
}

impl World<'_> {
    /// Runs the scenario in both worlds, and compares; `None`: stopped before a run counted. `tell`: how many runs are
    /// finished as others begin.
    pub(crate) fn verify(
        &self,
        options: &Options,
        schedule: &Schedule,
        tell: &dyn Fn(u32),
        hear: &mut dyn FnMut(u32, &RunOutcome) -> Result<(), Error>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<ScenarioVerified>, Error> {
        let World { slowed, scenario, prepared, .. } = *self;
        let mut runs = Runs::new(slowed, scenario, prepared, schedule);
        let of_runs = &Options { requests: schedule.requests.or(options.requests), ..options.clone() };
        let (mut next, mut interrupted) = (0, false);
        while runs.count() < schedule.runs && next < schedule.most_runs && !interrupted {
            let done = runs.count();
            tell(done);
            let wave = next..schedule.most_runs.min(next + schedule.at_once.min(schedule.runs - done));
            next = wave.end;
            let wanted = wave.len();
            let finished = self.wave(of_runs, wave, stop)?;
            interrupted = finished.len() < wanted;
            for pair in finished {
                hear(pair.run, &pair.real)?;
                runs.add(pair);
            }
        }
        let is_empty = interrupted && runs.count() == 0;
        Ok((!is_empty).then(|| runs.report(options, interrupted)))
    }

    /// Some runs beside each other, each in both worlds; where they are stopped, those before the first that is not
    /// finished.
    fn wave(
        &self,
        options: &Options,
        runs: Range<u32>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<RunPair>, Error> {
        let simulated = runs.clone().map(|run| self.predict(options, run, stop));
        let simulated: Result<Vec<Prediction>, Error> = simulated.collect();
        let simulated = match simulated {
            Err(Error::Interrupted) => return Ok(Vec::new()),
            simulated => simulated?,
        };
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
        let real: Vec<Option<RunOutcome>> = real.into_iter().collect::<Result<_, _>>()?;
        let finished = real.into_iter().map_while(|real| real);
        let of_run = |((run, simulated), real)| RunPair { run, simulated, real };
        Ok(runs.zip(simulated).zip(finished).map(of_run).collect())
    }

    /// The prediction for a run: the mean over a replication's turns, and the clients' connections of the first turn.
    fn predict(&self, options: &Options, replication: u32, stop: &AtomicBool) -> Result<Prediction, Error> {
        let turn = |turn| {
            let result = self.simulate(options, replication, turn, stop)?;
            Ok(Figures::simulated(&result, &self.slowed.nodes))
        };
        let turns = (0..TURNS).map(turn).collect::<Result<Vec<Figures>, Error>>()?;
        let clients = self.clients(options, replication, stop);
        let figures = figures::mean(&turns);
        let is_known = self.prepared.explain_unknown_openings().is_none();
        let servers = figures.to_servers.filter(|_| is_known);
        let figures = Figures { from_clients: clients.all.map(|n| n as f64), to_servers: servers, ..figures };
        Ok(Prediction { figures, opened: clients.selected })
    }

    /// The connections that the clients of a replication need; nothing is known of too large ones.
    fn clients(&self, options: &Options, replication: u32, stop: &AtomicBool) -> ClientConnections {
        let (plan, asked) = self.asked(options, replication, 0);
        let looks = RecordOptions { trace: Some(Selection::All), explain: false };
        let recordings = weir_sim::record(&plan, &asked, &looks, &Observer::new(&|_, _| {}, stop));
        let recording = recordings.ok().flatten().and_then(|all| all.into_iter().next());
        let key = Key::new(options.seed).with(u64::from(replication));
        recording.map_or_else(ClientConnections::default, |recording| {
            connections::predicted(self.scenario, self.prepared, key, &recording.histories)
        })
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
            settled_over: None,
            stretch: 1,
            requests: options.requests,
            threads: 1,
            members: true,
            connections: true,
            scenarios: vec![self.scenario.name.clone()],
        };
        (of_scenario, asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Calibration;
    use crate::hops::with_hops;
    use crate::pairs::{Pair, statistics};
    use crate::statistics::{Statistic, Verdict};
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
    fn told(simulated: &str, reality: &str, runs: u32) -> (Verdict, Vec<Statistic>) {
        let options = Options { runs, ..Options::new(Path::new("")) };
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
        let simulated = run(simulated, &|world, run| world.predict(&options, run, &stop).unwrap().figures);
        let reality = run(reality, &|world, run| {
            let result = world.simulate(&options, run, TURNS, &stop).unwrap();
            Figures::simulated(&result, &world.slowed.nodes)
        });
        let pairs: Vec<Pair> =
            simulated.into_iter().zip(reality).map(|(simulated, real)| Pair { simulated, real }).collect();
        let statistics = statistics(&pairs, &[], &options.tolerances);
        (Verdict::of_all(statistics.iter().map(|s| s.verdict)), statistics)
    }

    /// Verification can fail: a topology other than the simulated one is recognised at a utilisation of 0.8.
    #[test]
    fn openings_are_not_predicted_where_answers_cross_a_cable_of_the_router() {
        for (node, has_cables) in [
            ("lb.random(dynos)", false),
            ("lb.random(pool(2, lambda: cable(5*ms, lb.least_conn(dynos))))", true),
            ("cable(5*ms, lb.random(dynos))", true),
        ] {
            let plan = plan(&format!(
                "dynos = pool(9, lambda: cable(2*ms, queue(delay(9*ms, server()))))\n\
                 scenario(\"one\", {node}, traffic.poisson(rate = 99), requests = 999)\n"
            ));
            let scenario = &plan.points[0].scenarios[0];
            let prepared = Arrangement::new(&plan.points[0], scenario, false).unwrap();
            assert_eq!(prepared.has_cables_back(), has_cables, "{node}");
        }
    }

    #[test]
    fn a_wrong_pairing_is_told_apart() {
        let least = |more: &str| format!("lb.least_conn(apps{more})");
        let right = source(&least(", error_hold = 1*s"), "50*ms", 4);
        // Openings are few, and vary.
        let (verdict, statistics) = told(&right, &right, 24);
        assert_eq!(verdict, Verdict::Agrees, "{statistics:#?}");
        for (what, wrong) in [
            ("other ties", source(&least(", error_hold = 1*s, ties = \"first\""), "50*ms", 4)),
            ("other loops", source(&least(", error_hold = 1*s"), "50*ms", 1)),
            ("another policy", source("lb.p2c(apps)", "50*ms", 4)),
            ("no error hold", source(&least(""), "50*ms", 4)),
            ("ten per cent longer", source(&least(", error_hold = 1*s"), "55*ms", 4)),
        ] {
            let (verdict, statistics) = told(&right, &wrong, 6);
            assert_eq!(verdict, Verdict::Differs, "{what}: {statistics:#?}");
        }
    }
}
