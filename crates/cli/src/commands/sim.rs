//! `weir sim FILE`: simulates its scenarios and writes what came out.

use super::later;
use crate::args::{Form, Nodes, Sim};
use crate::failure::Failure;
use crate::output::{self, Target};
use crate::progress::Progress;
use crate::{input, interrupt};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_report::Sites;
use weir_sim::{Error, Results};
use weir_topology::Plan;

pub(crate) fn run(args: &Sim) -> Result<(), Failure> {
    if let Some(option) = args.not_built() {
        later::option(option)?;
    }
    let save_form = args.save.as_deref().map(form_of).transpose()?;
    let at_once = interrupt::at_once();
    let plan = input::load(&args.file)?;
    let stop = interrupt::stop_flag(&at_once);
    require_scenario(&plan)?;
    let html = args.html.as_deref().map(Target::open).transpose()?;
    let save = args.save.as_deref().map(Target::open).transpose()?;

    let results = simulate(&plan, args, &stop)?;
    if results.interrupted {
        output::to_stdout(|out| render(args, args.output, &results, out))?;
        for path in [&args.html, &args.save].into_iter().flatten() {
            let _ = writeln!(io::stderr(), "`{}` is left as it was", path.display());
        }
        return Err(Failure::Interrupted);
    }
    if let Some(html) = html {
        html.write(|out| weir_report::html(&results, out))?;
    }
    if let (Some(save), Some(form)) = (save, save_form) {
        save.write(|out| render(args, form, &results, out))?;
    }
    output::to_stdout(|out| render(args, args.output, &results, out))
}

fn simulate(plan: &Plan, args: &Sim, stop: &AtomicBool) -> Result<Results, Failure> {
    let options = weir_sim::Options {
        seed: args.seed,
        first: 0,
        replications: args.replications,
        requests: args.requests,
        threads: args.threads.map_or_else(cores, usize::from),
        members: args.nodes == Some(Nodes::All),
        scenarios: args.scenarios.clone(),
    };
    let progress = Progress::new(args.file.quiet);
    let start = Instant::now();
    let outcome = weir_sim::run(plan, &options, &|done, all| progress.tell(done, all), stop);
    progress.end();
    if let (Ok(results), false) = (&outcome, args.file.quiet) {
        tell_effort(results, start.elapsed());
    }
    outcome.map_err(|error| failure(plan, error))
}

/// Why there is no result.
pub(crate) fn failure(plan: &Plan, error: Error) -> Failure {
    match error {
        Error::UnknownScenario(name, known) => {
            Failure::Usage(format!("{} has no scenario `{name}`; it has {}", plan.file, known.join(", ")))
        }
        Error::Plan(sentence) => Failure::Usage(sentence),
        Error::SelfCheck(sentences) => Failure::Fault(sentences.join("\n  ")),
    }
}

/// What the run took, on standard error: it differs from run to run, so it is no result.
fn tell_effort(results: &Results, took: Duration) {
    let requests: u64 = results.scenarios.iter().map(|s| s.requests.total).sum();
    let (requests, events) = (thousands(requests), thousands(results.events));
    let _ = writeln!(io::stderr(), "{requests} requests, {events} events in {:.2} s", took.as_secs_f64());
}

/// A number with its digits in groups of three.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn render(args: &Sim, form: Form, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let sites = if args.nodes.is_some() { Sites::Always } else { Sites::Few };
    match form {
        Form::Text => weir_report::text(results, sites, out),
        Form::Json => weir_report::json(results, out),
        Form::Csv => weir_report::csv(results, out),
    }
}

/// The form that a saved file's ending names.
fn form_of(path: &Path) -> Result<Form, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("json") => Ok(Form::Json),
        Some("csv") => Ok(Form::Csv),
        _ => Err(Failure::Usage(format!(
            "--save `{}`: the ending says the form; write .json or .csv",
            path.display()
        ))),
    }
}

fn require_scenario(plan: &Plan) -> Result<(), Failure> {
    if plan.points.iter().any(|p| !p.scenarios.is_empty()) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} has no scenario; add one: scenario(\"main\", node, traffic.poisson(every = 1*ms), requests = 100000)",
        plan.file
    )))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
