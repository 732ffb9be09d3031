//! What each recipe runs. A recipe ends well, fails, or is skipped with a reason.

use crate::{deps, tidy};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a recipe did not end well.
pub(crate) enum Stop {
    /// It found something.
    Failed(String),
    /// It could not be done here: what, and why.
    Skipped(String, String),
}

/// The outcome of a recipe.
pub(crate) type Done = Result<(), Stop>;

/// The version of cargo-deny that `deny.toml` is written for.
const CARGO_DENY: &str = "0.20.2";

pub(crate) fn test(root: &Path) -> Done {
    cargo(root, &["test", "--workspace", "--locked"])
}

pub(crate) fn lint(root: &Path) -> Done {
    fmt(root)?;
    clippy(root)
}

pub(crate) fn bench(root: &Path) -> Done {
    let run = root.join("bench/run");
    if !run.exists() {
        return Err(Stop::Skipped("bench".into(), "there is no bench/run".into()));
    }
    command(root, &run, &[])
}

/// Licences, bans and sources; advisories need a database from the network and are left to whoever has it.
pub(crate) fn deny(root: &Path) -> Done {
    let binary = cargo_deny(root)?;
    // The three that need nothing but the lock file and the sources that cargo has fetched anyway.
    command(root, &binary, &["--locked", "check", "licenses", "bans", "sources"])
}

/// All that must hold before a change lands. The tests come last, so that their own summary is what one sees.
pub(crate) fn ci(root: &Path) -> Done {
    let steps: [(&str, &dyn Fn() -> Done); 6] = [
        ("fmt", &|| fmt(root)),
        ("deps", &|| report("deps", &deps::check(root))),
        ("tidy", &|| report("tidy", &tidy::check(root))),
        ("clippy", &|| clippy(root)),
        ("deny", &|| deny(root)),
        ("test", &|| test(root)),
    ];
    let (mut ran, mut failed, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (name, step) in steps {
        eprintln!("== {name}");
        match step() {
            Ok(()) => ran.push(name),
            Err(Stop::Failed(_)) => failed.push(name),
            Err(Stop::Skipped(_, why)) => skipped.push(format!("{name} ({why})")),
        }
    }
    skipped.push(
        "advisories (their database is not part of the clone; `cargo deny check advisories` fetches it)"
            .into(),
    );
    eprintln!("\nran: {}\nskipped: {}", ran.join(", "), skipped.join("; "));
    if failed.is_empty() { Ok(()) } else { Err(Stop::Failed(failed.join(", "))) }
}

/// Prints the problems of a check.
pub(crate) fn report(name: &str, problems: &[String]) -> Done {
    for p in problems {
        eprintln!("{p}");
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(format!("{name}: {} problems", problems.len())))
    }
}

fn fmt(root: &Path) -> Done {
    component(root, "fmt", "rustfmt")?;
    cargo(root, &["fmt", "--all", "--check"])
}

fn clippy(root: &Path) -> Done {
    component(root, "clippy", "clippy")?;
    cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

/// Skips what a toolchain without that component cannot do.
fn component(root: &Path, subcommand: &str, name: &str) -> Done {
    if says_version(root, &cargo_path(), &[subcommand, "--version"]) {
        return Ok(());
    }
    Err(Stop::Skipped(subcommand.into(), format!("the toolchain has no {name}")))
}

/// cargo-deny from the path, or from an earlier installation under `target`, or installed there now.
fn cargo_deny(root: &Path) -> Result<PathBuf, Stop> {
    let found = PathBuf::from("cargo-deny");
    if says_version(root, &found, &["--version"]) {
        return Ok(found);
    }
    let tools = root.join("target/tools");
    let ours = tools.join("bin/cargo-deny");
    if !says_version(root, &ours, &["--version"]) {
        eprintln!("installing cargo-deny {CARGO_DENY} into target/tools (a few minutes, once)");
        let tools = tools.to_string_lossy();
        let install =
            ["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--quiet", "--root", &tools];
        cargo(root, &install).map_err(|_| {
            Stop::Skipped("deny".into(), "cargo-deny is missing and could not be installed".into())
        })?;
    }
    Ok(ours)
}

fn says_version(root: &Path, program: &Path, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn cargo(root: &Path, args: &[&str]) -> Done {
    command(root, &cargo_path(), args)
}

fn command(root: &Path, program: &Path, args: &[&str]) -> Done {
    let shown = format!("{} {}", program.file_stem().unwrap_or_default().to_string_lossy(), args.join(" "));
    eprintln!("$ {shown}");
    match Command::new(program).args(args).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Stop::Failed(shown)),
        Err(e) => Err(Stop::Failed(format!("{shown}: {e}"))),
    }
}

/// The cargo that runs this.
pub(crate) fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}
