//! `weir compare`: two results, two files or two scenarios of one, and which of their figures differ by more than
//! chance.

mod args;

pub(crate) use args::Compare;

use super::sim;
use crate::args::ReportFormat;
use crate::failure::Failure;
use crate::output::{self, Outputs, Written};
use crate::{input, interrupt};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_report::{Comparison, Design, NotAResult, Pairing, SavedResult};
use weir_sim::{Extras, Options, Results};

/// A result, and the plan that it was simulated from, where that was done now.
pub(crate) struct Side {
    saved: SavedResult,
    plan: Option<Plan>,
    /// What was finished of it, where it was interrupted.
    interrupted: Option<String>,
}

pub(crate) fn run(args: &Compare) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    if let (Some(b), false) = (&args.b, args.more.is_empty()) {
        return Err(Failure::Usage(format!(
            "compare takes two files, or one and its scenarios: weir compare {} --scenarios {},{}",
            args.a.display(),
            b.display(),
            args.more.join(",")
        )));
    }
    if args.scenarios.is_empty() && args.b.is_none() {
        return Err(Failure::Usage(format!(
            "say what to compare `{}` with: another result or file, or two of its scenarios (--scenarios x,y)",
            args.a.display()
        )));
    }
    if args.scenarios.len() == 1 {
        return Err(Failure::Usage(
            "--scenarios names one scenario; name two, as in --scenarios x,y".to_owned(),
        ));
    }
    if let Some(b) =
        args.b.as_deref().filter(|b| b.extension().is_none() && !b.exists() && b.as_os_str() != "-")
    {
        return Err(Failure::Usage(format!(
            "cannot read `{0}`: no such file; scenarios of one file are named with --scenarios x,{0}",
            b.display()
        )));
    }
    let mut files = Vec::new();
    let a = read(args, &args.a, &mut files)?;
    let b = args.b.as_deref().map(|path| read(args, path, &mut files)).transpose()?;
    let is_saved = matches!((&a, &b), (Input::SavedResult(_), None | Some(Input::SavedResult(_))));
    if let Some(option) = args.how().filter(|_| is_saved) {
        return Err(Failure::Usage(format!(
            "{option} does nothing here: a saved result cannot be changed, and nothing is simulated"
        )));
    }
    let html = Outputs::beside_result(&files).open("--html", args.html.as_deref())?;
    let stop = interrupt::stop_flag(&at_once);
    let a = side(args, a, &stop)?;
    let b = b.map(|b| side(args, b, &stop)).transpose()?;
    let interrupted = [Some(&a), b.as_ref()].into_iter().flatten().find_map(|side| side.interrupted.clone());
    let pairings = match &b {
        Some(b) => across(&a, b, args.verbosity.quiet),
        None => within(&a, &args.scenarios),
    };
    let pairings = match pairings {
        // What it lacks was not finished.
        Err(_) if interrupted.is_some() => return Err(Failure::Interrupted),
        pairings => pairings?,
    };
    let comparison = Comparison::new(&pairings);
    let mut written = Written::result(|out| match args.output {
        ReportFormat::Text => weir_report::compare_text(&comparison, output::width(), out),
        ReportFormat::Json => weir_report::compare_json(&comparison, out),
    });
    if interrupted.is_none() {
        written.file(html.as_ref(), |out| weir_report::compare_html(&comparison, out));
    }
    written.end(interrupted.map_or(Ok(()), |what| Err(Failure::InterruptedAfter(what))))
}

/// The contents of a path.
enum Input {
    SavedResult(SavedResult),
    Plan(Plan),
}

/// Reads it; adds the files that it consists of to `files`.
fn read(args: &Compare, path: &Path, files: &mut Vec<PathBuf>) -> Result<Input, Failure> {
    // Standard input is read once, where it is evaluated.
    if path.as_os_str() != "-" {
        let bytes = input::read_saved(path)?;
        if SavedResult::is_saved(&bytes) {
            files.push(path.to_owned());
            let wrong = |e: NotAResult| Failure::Usage(format!("`{}`: {e}", path.display()));
            return SavedResult::read(&bytes).map(Input::SavedResult).map_err(wrong);
        }
    }
    let (plan, read) = input::load_with_files(&args.file(path))?;
    files.extend(read);
    sim::require_scenario(&plan)?;
    Ok(Input::Plan(plan))
}

fn side(args: &Compare, known: Input, stop: &AtomicBool) -> Result<Side, Failure> {
    let plan = match known {
        Input::SavedResult(saved) => return Ok(Side { saved, plan: None, interrupted: None }),
        Input::Plan(plan) => plan,
    };
    let options = Options {
        seed: args.seed.unwrap_or(1),
        first: 0,
        replications: args.replications.unwrap_or(10),
        settled_over: None,
        stretch: 1,
        requests: args.requests,
        threads: args.threads.map_or_else(sim::cores, usize::from),
        members: false,
        connections: false,
        scenarios: args.scenarios.clone(),
    };
    let wants = Extras { each: true, precision: None };
    // What is finished of one side alone cannot be compared.
    let overdue = |_: Option<&Results>| Failure::Interrupted.exit();
    let results = sim::run_plan(&plan, &options, &wants, args.verbosity.quiet, stop, &overdue)?;
    if results.interrupted && results.scenarios.is_empty() {
        return Err(Failure::Interrupted);
    }
    Side::new(&results, plan)
}

/// What changed from one run of a file to the next; `None`: no scenario is the same.
pub(crate) fn against<'a>(before: &'a Side, now: &'a Side) -> Option<Comparison<'a>> {
    across(before, now, true).ok().map(|pairings| Comparison::new(&pairings))
}

impl Side {
    /// A result that is at hand, with its plan.
    pub(crate) fn new(results: &Results, plan: Plan) -> Result<Side, Failure> {
        let saved = SavedResult::new(results).map_err(|e| Failure::Fault(e.to_string()))?;
        let interrupted = results.interrupted.then(|| weir_report::interrupted(results));
        Ok(Side { saved, plan: Some(plan), interrupted })
    }

    /// Whether both are of one plan.
    pub(crate) fn is_the_same(&self, other: &Side) -> bool {
        let hash = |side: &Side| side.plan.as_ref().map(|p| p.hash.clone());
        hash(self).is_some() && hash(self) == hash(other)
    }
}

/// Whether replication r of both had the same requests.
fn same_requests(a: (&Side, usize), b: (&Side, usize)) -> bool {
    let requests = |(side, index): (&Side, usize)| {
        let design = &side.saved.designs[index];
        design.requests_hash.clone().map(|hash| (hash, design.replications))
    };
    requests(a).is_some() && requests(a) == requests(b)
}

fn pairing<'a>(a: (&'a Side, usize), b: (&'a Side, usize)) -> Pairing<'a> {
    let of = |(side, index): (&'a Side, usize)| (&side.saved, &side.saved.designs[index]);
    Pairing { a: of(a), b: of(b), paired: same_requests(a, b) }
}

/// The first scenario with each of the others, at each point of the sweep.
fn within<'a>(side: &'a Side, names: &[String]) -> Result<Vec<Pairing<'a>>, Failure> {
    let designs = &side.saved.designs;
    let of = |name: &str| -> Vec<usize> { (0..designs.len()).filter(|i| designs[*i].name == name).collect() };
    for name in names {
        if of(name).is_empty() {
            let mut known: Vec<&str> = designs.iter().map(|d| d.name.as_str()).collect();
            known.dedup();
            let known = known.join(", ");
            return Err(Failure::Usage(format!(
                "{} has no scenario `{name}`; it has {known}",
                side.saved.file
            )));
        }
    }
    let Some((first, others)) = names.split_first() else { return Ok(Vec::new()) };
    let mut pairings = Vec::new();
    for other in others {
        for a in of(first) {
            let b = of(other).into_iter().find(|b| designs[*b].params == designs[a].params);
            pairings.extend(b.map(|b| pairing((side, a), (side, b))));
        }
    }
    Ok(pairings)
}

/// Scenarios of one name, at the same parameters or else in the order of the sweep; where each side has one only,
/// these.
fn across<'a>(a: &'a Side, b: &'a Side, quiet: bool) -> Result<Vec<Pairing<'a>>, Failure> {
    let (first, second) = (&a.saved.designs, &b.saved.designs);
    if let ([_], [_]) = (&first[..], &second[..]) {
        return Ok(vec![pairing((a, 0), (b, 0))]);
    }
    let named = |all: &[Design], name: &str| -> Vec<usize> {
        (0..all.len()).filter(|i| all[*i].name == name).collect()
    };
    let mut pairings = Vec::new();
    let mut alone = Vec::new();
    for (i, design) in first.iter().enumerate() {
        let (ours, theirs) = (named(first, &design.name), named(second, &design.name));
        let equal = theirs.iter().copied().find(|j| second[*j].params == design.params);
        let nth = ours.iter().position(|o| *o == i).filter(|_| ours.len() == theirs.len());
        match equal.or_else(|| nth.and_then(|n| theirs.get(n).copied())) {
            Some(j) => pairings.push(pairing((a, i), (b, j))),
            None => alone.push(design.name.as_str()),
        }
    }
    let unmatched = second.iter().map(|d| d.name.as_str()).filter(|name| named(first, name).is_empty());
    alone.extend(unmatched);
    alone.dedup();
    if pairings.is_empty() {
        return Err(Failure::Usage(format!(
            "{} and {} have no scenario in common: {} occur in only one of them",
            a.saved.file,
            b.saved.file,
            alone.join(", ")
        )));
    }
    if !alone.is_empty() && !quiet {
        let _ =
            writeln!(std::io::stderr(), "not compared, since only one side has them: {}", alone.join(", "));
    }
    Ok(pairings)
}
