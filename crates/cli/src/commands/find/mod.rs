//! `weir find FILE [FLEET]`: asks the sources of a file's fleets which members they list now. With `--watch`
//! it goes on and prints what changes. Serves nothing.

mod answers;
mod watch;

use super::serve;
use crate::args::{File, ReportFormat, Settings, Verbosity};
use crate::failure::{Failure, reason};
use crate::{input, interrupt, output};
use answers::Answers;
use clap::Args;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_discovery::{FollowedSource, News, Readers, Unwatched};
use weir_plan::suggest::did_you_mean;
use weir_plan::{Plan, Point, SourceKind};
use weir_report::ListedFleet;
use weir_stats::Key;

/// How long each source is asked (`docs/spec/serving.md#find`).
const PATIENCE: Duration = Duration::from_secs(3);

/// `weir find`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir find edge.star                    the members of each fleet
  weir find edge.star api --watch        of one fleet, and each change
  weir find edge.star --output json

The sources are those of `find.file`, `find.dns`, `find.eureka`, `find.consul`
and `find.kubernetes`. Each is asked for 3 s; exit code 3: one gave no list. A
service that a source does not know is an empty list, and a line on standard
error. A running weir may still have members that its source lacks: what it
makes of a list is in `weir admin status`.

With --watch a line follows for each change, with the time in UTC: + came,
- went, ~ changed. With --output json each line is a whole document.")]
pub(crate) struct Find {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only this fleet
    #[arg(value_name = "FLEET")]
    pub(crate) fleet: Option<String>,
    /// Go on, and print what changes
    #[arg(long)]
    pub(crate) watch: bool,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

impl Find {
    /// The file with its parameters.
    fn file(&self) -> File {
        File::unswept(&self.file, &self.settings, self.verbosity)
    }
}

pub(crate) fn run(args: &Find) -> Result<(), Failure> {
    // There is nothing to hand over.
    interrupt::at_once();
    let file = args.file();
    let plan = input::load(&file)?;
    let point = serve::only_point(&plan, "asked about")?;
    let mut answers = Answers::new(&choose(&plan, point, args.fleet.as_deref())?);
    let (out, news) = channel();
    let deliver = move |one: News| drop(out.send(one));
    let sources: Vec<FollowedSource> = answers.sources().into_iter().map(FollowedSource::from).collect();
    let _discovery = weir_discovery::run(&sources, &Readers::default(), draw(), deliver)
        .map_err(|e| Failure::Environment(format!("cannot ask for members: {}", reason(&e))))?;
    ask(&mut answers, &news, &|unwatched| {
        if args.watch {
            input::tell(&file, &format!("warning: {unwatched}"));
        }
    });
    if args.watch {
        return watch::run(answers, &news, args);
    }
    answers.all_notes().iter().for_each(|note| input::tell(&file, note));
    let fleets = answers.listed(false);
    output::to_stdout(|out| match args.output {
        ReportFormat::Text => weir_report::find_text(&fleets, out),
        ReportFormat::Json => weir_report::find_json(&fleets, out),
    })?;
    require_lists(&fleets)
}

/// What pauses after failures depend on: another key for each run, so that many do not ask at one instant.
fn draw() -> Key {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Key::new(since.as_secs()).with(u64::from(since.subsec_nanos())).with(u64::from(std::process::id()))
}

/// Waits until every source has given a list, for [`PATIENCE`] at most.
fn ask(answers: &mut Answers, news: &Receiver<News>, note: &dyn Fn(Unwatched)) {
    let end = Instant::now() + PATIENCE;
    while !answers.is_whole() {
        match news.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(News::Update(update)) => drop(answers.take(update)),
            Ok(News::Failure(_)) => {}
            Ok(News::Unwatched(unwatched)) => note(unwatched),
            Err(_) => return,
        }
    }
}

/// The fleets of this name whose members a source lists, all if there is no name, each with its source.
fn choose<'a>(
    plan: &Plan,
    point: &'a Point,
    wanted: Option<&str>,
) -> Result<Vec<(&'a str, &'a SourceKind)>, Failure> {
    let sourced = point.sourced().filter_map(|(_, fleet)| {
        let source = fleet.source.as_ref()?;
        Some((fleet.label.as_str(), &source.from))
    });
    let all: Vec<(&str, &SourceKind)> = sourced.collect();
    if all.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no fleet whose members a source lists; `weir help find` shows how to write one: \
             api = find.dns(\"api.example\", lambda: server(\"api\"), port = 80)",
            plan.file
        )));
    }
    let Some(wanted) = wanted else { return Ok(all) };
    let chosen: Vec<(&str, &SourceKind)> = all.iter().filter(|(name, _)| *name == wanted).copied().collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in &all {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let near = did_you_mean(wanted, names.iter().copied());
    let near = near.map(|near| format!("; {near}")).unwrap_or_default();
    Err(Failure::Usage(format!(
        "{} has no fleet `{wanted}` whose members a source lists{near}\n  It has {}",
        plan.file,
        names.join(", ")
    )))
}

/// The exit code: 3 where there is no list.
fn require_lists(fleets: &[ListedFleet<'_>]) -> Result<(), Failure> {
    let without: Vec<&str> =
        fleets.iter().filter(|listed| listed.error.is_some()).map(|listed| listed.fleet).collect();
    if without.is_empty() {
        return Ok(());
    }
    Err(Failure::Environment(format!("no list of members for {}", without.join(", "))))
}
