//! Evaluates a request (a file and its parameters) to a plan, in this process.

use crate::language::context::{Context, Findings, State};
use crate::load::{Runner, Source};
use crate::nodes::check_expectations;
use crate::own_time::OwnTime;
use crate::params::Params;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_plan::diagnostic::{Diagnostic, Location, Severity};
use weir_plan::fleets::{self, check};
use weir_plan::hash;
use weir_plan::ranges::MOST_POINTS;
use weir_plan::warn;
use weir_plan::{DataFile, NodeId, Plan, Point, Spec};

/// The stack size of an evaluation: the parser and the interpreter are recursive.
const STACK_BYTES: usize = 64 << 20;

/// A file to evaluate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The file's name for messages and for the plan: as the user wrote it, or `<stdin>`.
    pub name: String,
    /// Where it lies, so that `load` and data files are found beside it; `None`: the working directory.
    #[serde(with = "crate::path_bytes::optional")]
    pub path: Option<PathBuf>,
    /// Its bytes.
    pub source: Vec<u8>,
    /// Parameters that are set (`-p name=value`).
    pub params: Vec<(String, String)>,
    /// Parameters that are swept (`--sweep name=a,b`), in place of the file's own list.
    pub sweeps: Vec<(String, Vec<String>)>,
}

/// The result of evaluating a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The plan.
    pub plan: Plan,
    /// Findings that are not errors.
    pub warnings: Vec<Diagnostic>,
    /// The files that were read besides the file itself: those that it loads, and those of data.
    pub files: Vec<PathBuf>,
}

/// Evaluates a file in this process, on a separate thread.
///
/// # Errors
/// Every error that can be known, and the warnings beside them, in the order of the text. Nothing limits memory here:
/// for files that are not trusted use [`crate::sandbox::evaluate_in_child`].
pub fn evaluate(request: &Request) -> Result<Evaluated, Vec<Diagnostic>> {
    let evaluated = evaluate_or_panic(request, &Arc::default()).unwrap_or_else(|| {
        let message = "weir failed while it evaluated the file (a bug in weir)";
        Err(vec![Diagnostic::error(message).in_file(&request.name)])
    });
    evaluated.map(|mut evaluated| {
        evaluated.plan.expand();
        evaluated
    })
}

/// The same; `None` where the evaluation panicked (the message went to standard error). `own_time`: what the file's own
/// code takes.
pub(crate) fn evaluate_or_panic(
    request: &Request,
    own_time: &Arc<OwnTime>,
) -> Option<Result<Evaluated, Vec<Diagnostic>>> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, || evaluate_here(request, own_time)) {
            Ok(thread) => thread.join().ok(),
            Err(e) => {
                let message = format!("cannot start a thread to evaluate the file: {e}");
                Some(Err(vec![Diagnostic::error(message).in_file(&request.name)]))
            }
        }
    })
}

/// The same on this thread.
fn evaluate_here(request: &Request, own_time: &Arc<OwnTime>) -> Result<Evaluated, Vec<Diagnostic>> {
    let mut params = Params::new(&request.params, &request.sweeps)?;
    let source =
        Source { name: request.name.clone(), path: request.path.clone(), bytes: request.source.clone() };
    let mut points: Vec<Point> = Vec::new();
    let mut data_files: Vec<DataFile> = Vec::new();
    let mut warnings: Vec<Diagnostic> = Vec::new();
    let mut known: HashSet<Diagnostic> = HashSet::new();
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    loop {
        let context = Context { own_time: own_time.clone(), ..Context::default() };
        context.state.borrow_mut().params = params;
        Runner::new(&context).main(&source);
        let mut state: State = context.state.take();
        params = std::mem::take(&mut state.params);
        files.append(&mut state.files_read);
        if !state.findings.failed() {
            check_expectations(&mut state);
        }
        if state.findings.failed() {
            return Err(state.findings.into_sorted());
        }
        if points.len() >= MOST_POINTS {
            return Err(vec![
                Diagnostic::error(format!("the sweeps have more than {MOST_POINTS} combinations"))
                    .in_file(&request.name),
            ]);
        }
        let standing = state.graph.standing();
        let located = std::mem::take(&mut state.located);
        let mut compact = finish(&mut state, &mut params, &mut data_files);
        let findings = std::mem::take(&mut state.findings);
        let found = look(&compact, &standing, &located, findings)?;
        compact.warnings =
            found.iter().filter(|f| f.severity == Severity::Warning).map(in_one_line).collect();
        for finding in found {
            if known.insert(finding.clone()) {
                warnings.push(finding);
            }
        }
        points.push(compact);
        if !params.advance() {
            break;
        }
    }
    let unknown = params.unknown();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let plan = plan_of(request, data_files, points);
    Ok(Evaluated { plan, warnings, files: files.into_iter().collect() })
}

/// The plan of a file with these points.
fn plan_of(request: &Request, data_files: Vec<DataFile>, points: Vec<Point>) -> Plan {
    let file = Path::new(&request.name)
        .file_name()
        .map_or_else(|| request.name.clone(), |n| n.to_string_lossy().into_owned());
    let mut plan = Plan {
        schema: Plan::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        file,
        hash: String::new(),
        data_files,
        points,
    };
    plan.hash = hash::plan_hash(&plan);
    plan
}

/// What is found in a finished point, beside what was found while the file ran; an error where it cannot be used.
fn look(
    compact: &Point,
    standing: &[Option<Location>],
    located: &HashMap<String, Location>,
    mut findings: Findings,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let wrong = wrong_fleets(compact, standing, located);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let point = &*fleets::expanded(compact);
    let overlapping = weir_plan::processes::overlaps(point, standing);
    if !overlapping.is_empty() {
        return Err(overlapping);
    }
    warn::graph(point, standing).into_iter().for_each(|finding| findings.add(finding));
    let mut found = findings.into_sorted();
    found.extend(warn::overloaded(point));
    found.extend(warn::heavy_tails(point));
    found.extend(warn::cut_off(point));
    found.extend(warn::late_traces(point));
    found.extend(warn::instant_loops(point));
    found.extend(warn::asked(point, standing));
    found.extend(warn::certificates(point, standing));
    found.extend(warn::changes(compact, located));
    Ok(found)
}

/// What is wrong with fleets and their changes, each at its place.
fn wrong_fleets(
    point: &Point,
    standing: &[Option<Location>],
    located: &HashMap<String, Location>,
) -> Vec<Diagnostic> {
    let at = |finding: Diagnostic, at: Option<&Location>| match at {
        Some(at) => finding.with_location(at),
        None => finding,
    };
    let place = |id: NodeId| {
        if let Some(Spec::Fleet(fleet)) = point.spec(id)
            && let Some(at) = located.get(&fleet.span)
        {
            return Some(at);
        }
        let site = point.nodes.get(id as usize).and_then(|node| standing.get(node.site as usize));
        site.and_then(Option::as_ref)
    };
    if let Some((id, why)) = check::misplaced(point) {
        let help = "make it outside of the fleet's function to share it, or use it inside only";
        return vec![at(Diagnostic::error(why).help(help), place(id))];
    }
    let mut wrong = Vec::new();
    if let Some(id) = check::doubled(point) {
        let why = "a fleet is twice among the targets of this balancer";
        wrong.push(at(Diagnostic::error(why).help("name it once, with a `weight`"), place(id)));
    }
    if let Some(why) = check::too_many(point, &[]) {
        let place = check::largest(point).and_then(place);
        wrong.push(at(Diagnostic::error(why).help("begin with fewer members"), place));
    }
    for scenario in point.scenarios.iter().filter(|s| !s.events.is_empty()) {
        for (change, why) in check::changes(point, scenario).err().into_iter().flatten() {
            let place = scenario.events.get(change).and_then(|change| located.get(&change.span));
            let message = format!("in scenario \"{}\": {why}", scenario.name);
            let help = "look at the changes before it: each counts from the start of the run";
            wrong.push(at(Diagnostic::error(message).help(help), place));
        }
    }
    wrong
}

fn finish(state: &mut State, params: &mut Params, data_files: &mut Vec<DataFile>) -> Point {
    for file in std::mem::take(&mut state.data_files) {
        if !data_files.contains(&file) {
            data_files.push(file);
        }
    }
    let parts = std::mem::take(&mut state.graph).finish();
    Point {
        params: params.take_asked(),
        places: parts.places,
        sites: parts.sites,
        specs: parts.specs,
        lists: parts.lists,
        nodes: parts.nodes,
        scenarios: std::mem::take(&mut state.scenarios),
        expectations: std::mem::take(&mut state.expectations).into_iter().map(|e| e.expectation).collect(),
        warnings: Vec::new(),
        fleets: None,
        connected: weir_plan::Connected::default(),
    }
}

/// A warning as a plan keeps it: one sentence with its place.
fn in_one_line(finding: &Diagnostic) -> String {
    match &finding.file {
        Some(file) if finding.line > 0 => {
            format!("{} ({file}:{}:{})", finding.message, finding.line, finding.column)
        }
        _ => finding.message.clone(),
    }
}
