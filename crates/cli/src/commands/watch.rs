//! `weir sim FILE --watch`: simulates again whenever the file, or what it loads, is saved, and says what changed
//! against the run before. Files are looked at five times a second: that works on every file system.

use super::sim::Sim;
use super::{compare, sim};
use crate::args::SimFormat;
use crate::failure::Failure;
use crate::{input, interrupt, output};
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use weir_plan::Plan;

/// The interval at which files are examined.
const PERIOD: Duration = Duration::from_millis(200);

/// When each file was last written, and its length; `None`: it does not exist.
type FileStamps = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

pub(crate) fn run(args: &Sim) -> Result<(), Failure> {
    if args.file.file.as_os_str() == "-" {
        return Err(Failure::Usage("--watch needs a file that can be saved, not standard input".to_owned()));
    }
    if args.output != SimFormat::Text {
        return Err(Failure::Usage("--watch prints text; leave --output out".to_owned()));
    }
    // Ctrl-C ends it at once: there is nothing to hand over.
    interrupt::at_once();
    let stop = AtomicBool::new(false);
    let mut before: Option<compare::Side> = None;
    loop {
        let mut files = files(&args.file.file, None);
        let seen = look(&files);
        match once(args, &before, &stop) {
            Ok((side, plan)) => {
                files = self::files(&args.file.file, Some(&plan));
                before = Some(side);
            }
            Err(failure @ (Failure::Fault(_) | Failure::Environment(_) | Failure::Interrupted)) => {
                return Err(failure);
            }
            Err(failure) => failure.tell(),
        }
        if !args.file.verbosity.quiet {
            let _ = writeln!(stderr(), "watching {}", args.file.file.display());
        }
        wait(&files, seen);
    }
}

/// Simulates once, and prints the result, or what has changed.
fn once(
    args: &Sim,
    before: &Option<compare::Side>,
    stop: &AtomicBool,
) -> Result<(compare::Side, Plan), Failure> {
    let plan = input::load(&args.file)?;
    sim::require_scenario(&plan)?;
    let results = sim::simulate(&plan, args, stop, &|_| {})?;
    let side = compare::Side::new(&results, plan.clone())?;
    match before {
        Some(before) if before.is_the_same(&side) => {
            output::to_stdout(|out| {
                writeln!(out, "nothing changed: the plan is the same ({})\n", plan.hash)
            })?;
        }
        Some(before) => match compare::against(before, &side) {
            Some(comparison) => output::to_stdout(|out| {
                weir_report::compare_text(&comparison, output::width(), out)?;
                writeln!(out)
            })?,
            None => output::to_stdout(|out| {
                sim::formed(SimFormat::Text, &args.view.to_view(), false, &results, out)
            })?,
        },
        None => {
            output::to_stdout(|out| sim::formed(SimFormat::Text, &args.view.to_view(), false, &results, out))?
        }
    }
    if let Err(unmet) = sim::met(&results) {
        unmet.tell();
    }
    Ok((side, plan))
}

/// Waits until one of the files has changed.
fn wait(files: &[PathBuf], mut seen: FileStamps) {
    // A file that was not watched before the run counts from now on.
    for (path, state) in look(files) {
        seen.entry(path).or_insert(state);
    }
    let paths: Vec<PathBuf> = seen.keys().cloned().collect();
    while look(&paths) == seen {
        #[expect(clippy::disallowed_methods, reason = "not every file system reports when a file is saved")]
        std::thread::sleep(PERIOD);
    }
}

fn look(files: &[PathBuf]) -> FileStamps {
    let state = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(|path| (path.clone(), state(path))).collect()
}

/// The file, those that it loads, and the data that they read.
fn files(main: &Path, plan: Option<&Plan>) -> Vec<PathBuf> {
    let mut files = vec![main.to_owned()];
    let mut next = 0;
    while let Some(file) = files.get(next).cloned() {
        next += 1;
        let folder = file.parent().unwrap_or(Path::new(""));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for loaded in loaded(&text).map(|name| folder.join(name)) {
            if !files.contains(&loaded) {
                files.push(loaded);
            }
        }
    }
    let folders: Vec<PathBuf> = files.iter().filter_map(|f| f.parent().map(Path::to_owned)).collect();
    for data in plan.iter().flat_map(|p| &p.data_files) {
        // Its path is relative to the file that names it: whichever that is.
        let found = folders.iter().map(|folder| folder.join(&data.path)).find(|path| path.exists());
        files.extend(found);
    }
    files
}

/// The first argument of each `load("...")` in a text. One in a comment is watched in vain, which does no harm.
fn loaded(text: &str) -> impl Iterator<Item = &str> {
    text.split("load(").skip(1).filter_map(|rest| {
        let rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest[1..].split(quote).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_loads_is_found() {
        let text = "load(\"a.star\", \"x\")\nload( 'b/c.star', y='z')\nupload(3)\n";
        assert_eq!(loaded(text).collect::<Vec<_>>(), ["a.star", "b/c.star"]);
    }
}
