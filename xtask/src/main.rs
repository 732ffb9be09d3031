//! The project's recipes, `cargo xtask RECIPE`: one command per task, the same here and in CI.
#![forbid(unsafe_code)]

mod command;
mod deps;
mod dist;
mod pgo;
mod recipes;
mod rooms;
mod tidy;

use command::Stop;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask RECIPE

  test    all tests, optimised; a suite that fails stops no other
  lint    formatting, and clippy without warnings
  deps    dependencies point downwards only, between crates and between the rooms of a crate
  rooms   [CRATE]: the rooms inside a crate, which others each uses, and the largest knot of files
  tidy    the lints of the tree: headers, sizes, bans, words that do not belong
  words   [CRATE]: names and words of comments that break the rules of CONTRIBUTING.md, and their counts
  deny    licences, bans and sources of all dependencies (cargo-deny)
  bench   the benchmarks of bench/
  dist    the release binary, stripped, its debug lines, completions and man pages beside it (target/dist)
  static  the same without libraries of the system (target/static; x86-64, musl)
  pgo     the counts by which a release is laid out, from a training run (bench/train)
  ci      all of these but rooms, words, bench, dist, static and pgo, and what was skipped and why
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let done = match args.first().map(String::as_str) {
        Some("test") => recipes::test(&root),
        Some("lint") => recipes::lint(&root),
        Some("deps") => recipes::report("deps", &deps::check(&root)),
        Some("rooms") => recipes::rooms(&root, args.get(1).map(String::as_str)),
        Some("words") => recipes::words(&root, args.get(1).map(String::as_str)),
        Some("tidy") => recipes::report("tidy", &tidy::check(&root)),
        Some("deny") => recipes::deny(&root),
        Some("bench") => recipes::bench(&root),
        Some("dist") => dist::dist(&root),
        Some("static") => dist::static_binary(&root),
        Some("pgo") => pgo::pgo(&root),
        Some("ci") => recipes::ci(&root),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Failed(what)) => {
            eprintln!("{what} failed");
            ExitCode::from(1)
        }
        Err(Stop::Skipped(what, why)) => {
            eprintln!("{what} skipped: {why}");
            ExitCode::from(3)
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_point_downwards() {
        let problems = deps::check(&root());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn the_tree_is_tidy() {
        let problems = tidy::check(&root());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
