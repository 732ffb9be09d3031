//! The work of a run: the selected scenarios, at each point of the sweep.

use crate::account::settle::SettlingPoint;
use crate::results::replicate::{Program, program};
use crate::results::run::{Error, Options};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_model::Traffic;
use weir_plan::{Plan, Point, Scenario, Window};
use weir_stats::Key;

/// One scenario at one sweep point, with its code once a thread has compiled it.
pub(crate) struct Job<'a> {
    pub point: &'a Point,
    pub scenario: &'a Scenario,
    pub requests: Option<u64>,
    /// How many times as many they are as the file says.
    pub stretch: u64,
    /// The key of the run's first replication.
    first: Key,
    /// While it is needed: that of a large topology takes tens of MiB.
    compiled: Mutex<Option<Arc<Program>>>,
    /// Where it settles; empty without `window="auto"`, and until that is known.
    pub settled: OnceLock<SettlingPoint>,
}

/// The requested number of requests.
#[derive(Clone, Copy)]
pub(crate) struct JobOptions {
    pub requests: Option<u64>,
    /// Whether the command line said so.
    pub overridden: bool,
    /// How many times as many they are as the file says.
    pub stretch: u64,
    /// The seed of their draws.
    pub seed: u64,
}

impl Job<'_> {
    /// Whether it must be known where it settles, and is not yet.
    pub fn has_to_settle(&self) -> bool {
        self.scenario.window == Window::Auto && self.settled.get().is_none()
    }

    /// Its code.
    pub fn program(&self, members: bool, fast: bool) -> Result<Arc<Program>, String> {
        self.compiled_by(|| program(self.point, self.scenario, members, fast, self.first))
    }

    /// The same for the reference, which notes the request to which each time belongs.
    pub fn noted_program(&self) -> Result<Arc<Program>, String> {
        self.compiled_by(|| {
            let mut program = program(self.point, self.scenario, false, false, self.first)?;
            program.tables.iter_mut().for_each(|tables| tables.notes = true);
            Ok(program)
        })
    }

    /// Frees its code, which is compiled again if it is needed again.
    pub fn forget_program(&self) {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The code; meanwhile other threads wait for it.
    fn compiled_by(&self, compile: impl FnOnce() -> Result<Program, String>) -> Result<Arc<Program>, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*compiled {
            return Ok(known.clone());
        }
        let program = compile().map_err(|e| format!("scenario \"{}\": {e}", self.scenario.name))?;
        Ok(compiled.insert(Arc::new(program)).clone())
    }
}

/// Whether more requests of a scenario are more of the same: its traffic goes on alike, and no duration ends it.
pub(crate) fn can_stretch(scenario: &Scenario) -> bool {
    let goes_on = matches!(
        scenario.traffic,
        Traffic::Poisson { .. } | Traffic::Constant { .. } | Traffic::Renewal { .. } | Traffic::Mmpp { .. }
    );
    goes_on && scenario.duration_ns.is_none() && scenario.requests.is_some()
}

/// The jobs of a run, in the order of the file, then sweep point.
pub(crate) fn jobs<'a>(plan: &'a Plan, options: &Options) -> Result<Vec<Job<'a>>, Error> {
    let known = |name: &String| plan.points.iter().any(|p| p.scenarios.iter().any(|s| s.name == *name));
    if let Some(unknown) = options.scenarios.iter().find(|n| !known(n)) {
        let mut names: Vec<String> =
            plan.points.iter().flat_map(|p| p.scenarios.iter().map(|s| s.name.clone())).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|n| seen.insert(n.clone()));
        return Err(Error::UnknownScenario(unknown.clone(), names));
    }
    let longest = plan.points.iter().map(|p| p.scenarios.len()).max().unwrap_or(0);
    let (mut names, mut seen): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for i in 0..longest {
        for point in &plan.points {
            if let Some(s) = point.scenarios.get(i)
                && seen.insert(&s.name)
            {
                names.push(&s.name);
            }
        }
    }
    names.retain(|n| options.scenarios.is_empty() || options.scenarios.iter().any(|s| s == n));
    let by_name = |point: &'a Point| {
        let named = point.scenarios.iter().map(|s| (s.name.as_str(), s));
        (point, named.collect::<HashMap<&str, &Scenario>>())
    };
    let points: Vec<_> = plan.points.iter().map(by_name).collect();
    let mut jobs = Vec::new();
    for name in names {
        for (point, scenarios) in &points {
            let Some(&scenario) = scenarios.get(name) else { continue };
            let (point, scenario) = point.grown(scenario);
            let (point, scenario) = point.connected(scenario, options.connections);
            let stretch = if can_stretch(scenario) { options.stretch } else { 1 };
            let requests = options.requests.or(scenario.requests).map(|n| n.saturating_mul(stretch));
            if requests.is_none() && scenario.duration_ns.is_none() {
                return Err(Error::Plan(format!(
                    "scenario \"{name}\" has neither requests= nor duration=: set one of them"
                )));
            }
            jobs.push(Job {
                point,
                scenario,
                requests,
                stretch,
                first: Key::new(options.seed).with(u64::from(options.first)),
                compiled: Mutex::default(),
                settled: OnceLock::new(),
            });
        }
    }
    Ok(jobs)
}
