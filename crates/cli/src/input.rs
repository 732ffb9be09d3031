//! From FILE to a plan: the only place that knows how the front end evaluates a topology.

use crate::args::File;
use crate::failure::{Failure, reason};
use crate::mistaken;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_plan::named_files::named_files;
use weir_plan::{Plan, Severity};
use weir_topology::sandbox::{self, child_main, evaluate_in_child};
use weir_topology::{Evaluated, Request};

/// The hidden first argument that makes this binary the child in which a topology is evaluated.
pub(crate) const CHILD: &str = sandbox::CHILD;

/// The child's side of an evaluation.
pub(crate) fn child() -> ExitCode {
    child_main()
}

/// The plan of a topology file, or of a file that is a plan already. Warnings go to standard error, unless `quiet`.
pub(crate) fn load(args: &File) -> Result<Plan, Failure> {
    load_and(args, Printed::Dropped)
}

/// The same with the files that it is made of: the file itself, what it loads, and what it names.
pub(crate) fn load_with_files(args: &File) -> Result<(Plan, Vec<PathBuf>), Failure> {
    check_sweeps(args)?;
    let Evaluated { plan, files: mut read, .. } =
        evaluated(args, read(&args.file)?, Printed::Dropped, &mut |sentence| tell(args, &sentence))?;
    read.push(args.file.clone());
    read.extend(plan.points.iter().flat_map(named_files).map(PathBuf::from));
    // A plan has its data already; their paths are from the file that named them on, which lay here, if anywhere.
    let folder = args.file.parent().unwrap_or(Path::new(""));
    read.extend(plan.data_files.iter().map(|data| folder.join(&data.path)));
    Ok((plan, read))
}

/// What becomes of the lines that a file prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// They are discarded.
    Dropped,
    /// They go to standard error.
    Told,
}

/// The same; prints what the file prints, or discards it.
pub(crate) fn load_and(args: &File, printed: Printed) -> Result<Plan, Failure> {
    check_sweeps(args)?;
    plan(args, read(&args.file)?, printed, &mut |sentence| tell(args, &sentence))
}

/// Whether each parameter is set once; known without the file.
fn check_sweeps(args: &File) -> Result<(), Failure> {
    for (i, (name, _)) in args.sweeps.iter().enumerate() {
        if args.settings.params.iter().any(|(n, _)| n == name) {
            return Err(Failure::Usage(format!(
                "`{name}` is set by -p and swept by --sweep; leave one of them out"
            )));
        }
        if args.sweeps[..i].iter().any(|(n, _)| n == name) {
            return Err(Failure::Usage(format!("--sweep names `{name}` twice")));
        }
    }
    Ok(())
}

/// The plan of these bytes of the file; what is surely a mistake though it can be run is given to `note`.
pub(crate) fn plan(
    args: &File,
    source: Vec<u8>,
    printed: Printed,
    note: &mut dyn FnMut(String),
) -> Result<Plan, Failure> {
    evaluated(args, source, printed, note).map(|done| done.plan)
}

/// The same with the files that were read for it.
fn evaluated(
    args: &File,
    source: Vec<u8>,
    printed: Printed,
    note: &mut dyn FnMut(String),
) -> Result<Evaluated, Failure> {
    if !Plan::is_json(&source) {
        return match mistaken::sentence(&args.file, &source) {
            Some(what) => Err(Failure::Usage(what)),
            None => evaluate(args, source, printed, note),
        };
    }
    if let Some(what) = mistaken::sentence(&args.file, &source) {
        return Err(Failure::Usage(what));
    }
    if !args.settings.params.is_empty() || !args.sweeps.is_empty() {
        return Err(Failure::Usage(format!(
            "`{}` is a plan: it is already evaluated, so -p and --sweep cannot be used",
            args.file.display()
        )));
    }
    let plan =
        Plan::from_json(&source).map_err(|e| Failure::Usage(format!("`{}`: {e}", args.file.display())))?;
    let mut said: Vec<&str> = Vec::new();
    for warning in plan.points.iter().flat_map(|p| &p.warnings) {
        if !said.contains(&warning.as_str()) {
            said.push(warning);
        }
    }
    said.iter().for_each(|w| note(format!("warning: {w}")));
    Ok(Evaluated { plan, warnings: Vec::new(), files: Vec::new() })
}

fn evaluate(
    args: &File,
    source: Vec<u8>,
    printed: Printed,
    note: &mut dyn FnMut(String),
) -> Result<Evaluated, Failure> {
    let piped = args.file.as_os_str() == "-";
    let request = Request {
        name: if piped { "<stdin>".into() } else { args.file.display().to_string() },
        path: (!piped).then(|| args.file.clone()),
        source,
        params: args.settings.params.clone(),
        sweeps: args.sweeps.clone(),
    };
    let exe = std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("cannot find the weir binary itself: {}", reason(&e))))?;
    match evaluate_in_child(&request, &exe) {
        Ok(done) => {
            let said =
                done.warnings.iter().filter(|w| printed == Printed::Told || w.severity != Severity::Printed);
            said.for_each(|w| note(w.to_string()));
            Ok(done)
        }
        // Its output may say why.
        Err(wrong @ sandbox::Failure::Wrong(_)) => Err(Failure::Worded(wrong.to_string())),
        Err(sandbox::Failure::Environment(why)) => Err(Failure::Environment(why)),
    }
}

/// Prints a hint or a warning on standard error, unless told to be quiet.
pub(crate) fn tell(args: &File, sentence: &str) {
    if !args.verbosity.quiet {
        let _ = writeln!(std::io::stderr(), "{sentence}");
    }
}

/// The greatest length of a topology file: what was given by mistake (a log, a device) may be longer.
const LONGEST_FILE: u64 = 16 << 20;
/// A plan may be this long: a million nodes take a tenth of it.
const LONGEST_PLAN: u64 = 2 << 30;

/// The bytes of a saved result or a part of one, which may be as long as a plan.
pub(crate) fn read_saved(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST_PLAN + 1).read_to_end(&mut bytes));
    match read {
        Err(e) => Err(Failure::Usage(format!("cannot read `{}`: {}", path.display(), reason(&e)))),
        Ok(_) if bytes.len() as u64 > LONGEST_PLAN => {
            Err(Failure::Usage(format!("`{}` is too long for a result", path.display())))
        }
        Ok(_) => Ok(bytes),
    }
}

/// The bytes of the file, or of standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot =
        |e: &std::io::Error| Failure::Usage(format!("cannot read `{}`: {}", path.display(), reason(e)));
    let mut from: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(|e| cannot(&e))?)
    };
    let mut bytes = Vec::new();
    let mut up_to = |limit: u64, bytes: &mut Vec<u8>| {
        let left = limit + 1 - bytes.len() as u64;
        from.by_ref()
            .take(left)
            .read_to_end(bytes)
            .map_err(|e| cannot(&e))
            .map(|_| bytes.len() as u64 <= limit)
    };
    let whole =
        up_to(LONGEST_FILE, &mut bytes)? || (Plan::is_json(&bytes) && up_to(LONGEST_PLAN, &mut bytes)?);
    if whole {
        Ok(bytes)
    } else {
        Err(Failure::Usage(format!("`{}` is too long for a topology", path.display())))
    }
}
