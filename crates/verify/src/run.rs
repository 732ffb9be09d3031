//! A verification: the scenarios that are asked for, one after another.

use crate::calibrate::{Calibration, calibrate};
use crate::hops::with_hops;
use crate::options::{Error, Options};
use crate::outcome::{MissingScenario, Progress, Verification};
use crate::prepare::{self, Arrangement, CannotVerify};
use crate::record;
use crate::schedule::{Schedule, measure_progress, schedules};
use crate::trial::RunOutcome;
use crate::world::World;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_plan::Plan;
use weir_plan::{Point, Scenario};

/// Verifies scenarios of a plan. What happens is written to `record`. When `stop` becomes true, the result has what was
/// finished, and says what is missing.
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
    check_listening(&all)?;
    let mut found = make_verification(plan, options);
    let (calibration, schedules) = match make_schedules(&all, options, stop) {
        Err(Error::Interrupted) => {
            found.missing = all.iter().map(|chosen| chosen.to_missing(options.runs)).collect();
            return Ok(found);
        }
        made => made?,
    };
    found.calibration = Some(calibration);
    let mut recorded = 0;
    for (at, (chosen, schedule)) in all.iter().zip(&schedules).enumerate() {
        let ChosenScenario { point, scenario, prepared } = chosen;
        if stop.load(Ordering::Relaxed) {
            found.missing.push(chosen.to_missing(schedule.runs));
            continue;
        }
        let slowed = with_hops(point, scenario, prepared, &calibration);
        let mut hear = |run: u32, real: &RunOutcome| match &mut record {
            Some(out) => {
                recorded += 1;
                record::write_run(&scenario.name, run, real, out).map_err(Error::Record)
            }
            None => Ok(()),
        };
        let world = World { plan, slowed: &slowed, scenario, prepared };
        let tell_done = |done: u32| tell(measure_progress(&schedules, at, &scenario.name, done));
        match world.verify(options, schedule, &tell_done, &mut hear, stop)? {
            Some(verified) => found.scenarios.push(verified),
            None => found.missing.push(chosen.to_missing(schedule.runs)),
        }
    }
    if let (Some(out), false) = (&mut record, found.is_interrupted()) {
        record::write_last(recorded, out).map_err(Error::Record)?;
    }
    Ok(found)
}

/// A verification of which nothing is finished.
fn make_verification(plan: &Plan, options: &Options) -> Verification {
    Verification {
        against: options.against,
        file: plan.file.clone(),
        plan: plan.hash.clone(),
        seed: options.seed,
        calibration: None,
        scenarios: Vec::new(),
        missing: Vec::new(),
    }
}

/// Checks that servers which are not weir's own accept connections.
fn check_listening(all: &[ChosenScenario<'_>]) -> Result<(), Error> {
    let mut addresses = all.iter().flat_map(|chosen| chosen.prepared.addresses());
    addresses.try_for_each(prepare::listens).map_err(|e| Error::System(e.0))
}

/// Measures what this machine adds, and makes the schedule of each scenario.
fn make_schedules(
    all: &[ChosenScenario<'_>],
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> Result<(Calibration, Vec<Schedule>), Error> {
    let calibration = calibrate(&options.exe, stop)?;
    let scenarios = all.iter().map(|chosen| chosen.scenario);
    let schedules = schedules(scenarios, options, &calibration, stop)?;
    Ok((calibration, schedules))
}

/// A scenario to verify, and the part of it that is served.
struct ChosenScenario<'a> {
    /// With every member that ever is.
    point: &'a Point,
    scenario: &'a Scenario,
    prepared: Arrangement,
}

impl ChosenScenario<'_> {
    /// The same as one that was not verified; this number of runs were to count.
    fn to_missing(&self, runs: u32) -> MissingScenario {
        MissingScenario { name: self.scenario.name.clone(), params: self.point.params.clone(), runs }
    }
}

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
    let (mut all, mut unplayed) = (Vec::new(), Vec::new());
    for (at, point) in plan.points.iter().enumerate() {
        for scenario in &point.scenarios {
            if options.scenarios.is_empty() || options.scenarios.contains(&scenario.name) {
                let (point_served, scenario_served) = match &options.reality {
                    None => (point, scenario),
                    Some(reality) => served_instead(reality, at, &scenario.name)?,
                };
                let (grown, of_grown) = point_served.grown(scenario_served);
                if let Some(found) = prepare::find_unplayed(grown, of_grown) {
                    unplayed.push(found);
                    continue;
                }
                let prepared = Arrangement::new(point_served, scenario_served, options.real)
                    .and_then(|p| p.against(options.against));
                let prepared = prepared.map_err(Error::Cannot)?;
                let (point, scenario) = point.grown(scenario);
                all.push(ChosenScenario { point, scenario, prepared });
            }
        }
    }
    if !unplayed.is_empty() {
        let others = name_others(&all);
        return Err(Error::Cannot(prepare::refuse_unplayed(&keep_first(unplayed), others.as_deref())));
    }
    if all.is_empty() {
        return Err(Error::Cannot(CannotVerify(format!(
            "{} has no scenario, so its load is not known",
            plan.file
        ))));
    }
    Ok(all)
}

/// The names of these scenarios as a shell takes them; `None`: there are none.
fn name_others(all: &[ChosenScenario<'_>]) -> Option<String> {
    let is_plain = |name: &str| {
        let has_plain_signs = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        has_plain_signs && !name.is_empty() && !name.starts_with('-')
    };
    let quoted = |name: &str| format!("'{}'", name.replace('\'', r"'\''"));
    let word = |name: &str| if is_plain(name) { name.to_owned() } else { quoted(name) };
    let names = keep_first(all.iter().map(|chosen| word(&chosen.scenario.name)).collect());
    (!names.is_empty()).then(|| names.join(" "))
}

/// Each of these once: the points of a sweep have the same scenarios.
fn keep_first(mut all: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(one.clone()));
    all
}

/// The scenario of another plan that is served in place of one.
fn served_instead<'a>(reality: &'a Plan, at: usize, name: &str) -> Result<(&'a Point, &'a Scenario), Error> {
    let found = reality.points.get(at).and_then(|p| Some((p, p.scenarios.iter().find(|s| s.name == name)?)));
    found.ok_or_else(|| Error::Cannot(CannotVerify(format!("{} has no scenario `{name}`", reality.file))))
}
