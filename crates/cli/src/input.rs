//! From FILE to a plan: the only place that knows how the front end evaluates a topology.

use crate::args::File;
use crate::failure::{Failure, reason};
use std::io::{Read, Write};
use std::process::ExitCode;
use weir_topology::Plan;

/// The hidden first argument that makes this binary the child in which a topology is evaluated.
pub(crate) const CHILD: &str = "__evaluate";

/// The child's side of an evaluation.
pub(crate) fn child() -> ExitCode {
    ExitCode::from(4)
}

/// The plan of a topology file, or of a file that is a plan already.
pub(crate) fn load(args: &File) -> Result<Plan, Failure> {
    for (i, (name, _)) in args.sweeps.iter().enumerate() {
        if args.params.iter().any(|(n, _)| n == name) {
            return Err(Failure::Usage(format!(
                "`{name}` is set by -p and swept by --sweep; leave one of them out"
            )));
        }
        if args.sweeps[..i].iter().any(|(n, _)| n == name) {
            return Err(Failure::Usage(format!("--sweep names `{name}` twice")));
        }
    }
    let bytes = read(args)?;
    if looks_like_plan(&bytes) {
        if !args.params.is_empty() || !args.sweeps.is_empty() {
            return Err(Failure::Usage(format!(
                "`{}` is a plan: it is evaluated already, so -p and --sweep are refused",
                args.file.display()
            )));
        }
        return serde_json::from_slice(&bytes).map_err(|e| {
            Failure::Usage(format!("`{}` is not a plan of this version: {e}", args.file.display()))
        });
    }
    Err(Failure::Usage("evaluation is not wired".into()))
}

/// Says what is surely a mistake though it can be run.
pub(crate) fn warn(plan: &Plan, quiet: bool) {
    if quiet {
        return;
    }
    let mut said: Vec<&str> = Vec::new();
    for warning in plan.points.iter().flat_map(|p| &p.warnings) {
        if !said.contains(&warning.as_str()) {
            said.push(warning);
            let _ = writeln!(std::io::stderr(), "warning: {warning}");
        }
    }
}

/// A topology file may be this long; so may not what was given by mistake (a log, a device).
const LONGEST_FILE: u64 = 16 << 20;
/// A plan may be this long: a million nodes take a tenth of it.
const LONGEST_PLAN: u64 = 2 << 30;

fn read(args: &File) -> Result<Vec<u8>, Failure> {
    let cannot =
        |e: &std::io::Error| Failure::Usage(format!("cannot read `{}`: {}", args.file.display(), reason(e)));
    let mut from: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(&args.file).map_err(|e| cannot(&e))?)
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
        up_to(LONGEST_FILE, &mut bytes)? || (looks_like_plan(&bytes) && up_to(LONGEST_PLAN, &mut bytes)?);
    if whole {
        Ok(bytes)
    } else {
        Err(Failure::Usage(format!("`{}` is too long for a topology", args.file.display())))
    }
}

/// A plan is one JSON object; no topology file begins with a brace.
fn looks_like_plan(bytes: &[u8]) -> bool {
    bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}
