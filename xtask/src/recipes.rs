//! What each recipe runs. A recipe ends well, fails, or is skipped with a reason.

use crate::command::{Outcome, Stop, answers, cargo, cargo_path, run, run_and_read};
use crate::{deps, rooms, tidy};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of cargo-deny that `deny.toml` is written for.
const CARGO_DENY: &str = "0.20.2";

/// All suites, also behind one that fails; those that failed are named.
pub(crate) fn test(root: &Path) -> Outcome {
    match tests_failed(root, &[])? {
        None => Ok(()),
        Some(failures) => Err(Stop::Failed(named("test", &failures.suites))),
    }
}

/// What failed: suites as cargo names them (`-p weir --test serve`), and tests. Both are empty where something did
/// not compile, `tests` also where a suite does not say which.
struct Failures {
    suites: Vec<String>,
    tests: Vec<String>,
}

/// All suites, and then the tests that failed once more, one after another. A test that passes only then depends on
/// time: the host took the cores away. It is named beside what was skipped.
fn test_and_again(root: &Path, leaning: &mut Vec<String>) -> Outcome {
    let Some(failures) = tests_failed(root, &[])? else { return Ok(()) };
    if failures.suites.is_empty() {
        return Err(Stop::Failed(named("test", &[])));
    }
    let mut twice = Vec::new();
    for suite in failures.suites {
        let mut words: Vec<&str> = suite.split(' ').chain(["--", "--test-threads", "1"]).collect();
        if !failures.tests.is_empty() {
            words.push("--exact");
            words.extend(failures.tests.iter().map(String::as_str));
        }
        match tests_failed(root, &words)? {
            None => leaning.push(suite),
            Some(_) => twice.push(suite),
        }
    }
    if twice.is_empty() { Ok(()) } else { Err(Stop::Failed(named("test", &twice))) }
}

/// What failed of all suites, or of those that the words choose; `None` where all passed.
fn tests_failed(root: &Path, which: &[&str]) -> Result<Option<Failures>, Stop> {
    let mut command = Command::new(cargo_path());
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(which).current_dir(root);
    if std::io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let output = run_and_read(&mut command)?;
    if output.is_success {
        return Ok(None);
    }
    let mut failures =
        Failures { suites: failed_suites(&output.stderr), tests: failed_tests(&output.stdout) };
    // A suite that ended early does not name its tests: then all suites that failed are repeated as a whole.
    if output.stdout.matches("test result: FAILED").count() < failures.suites.len() {
        failures.tests.clear();
    }
    Ok(Some(failures))
}

/// The ignored tests of a module of the suite `slow`, which take long or need the machine for themselves.
fn alone(root: &Path, step: &str, module: &str) -> Outcome {
    match tests_failed(root, &["--test", "slow", "--", module, "--ignored", "--test-threads", "1"])? {
        None => Ok(()),
        Some(failures) => Err(Stop::Failed(named(step, &failures.suites))),
    }
}

fn named(step: &str, suites: &[String]) -> String {
    if suites.is_empty() { format!("{step}: cargo test") } else { format!("{step}: {}", suites.join(", ")) }
}

/// The suites that cargo names at the end, as `-p weir --test serve`; none where something did not compile.
fn failed_suites(said: &str) -> Vec<String> {
    let mut lines =
        said.lines().skip_while(|l| !(l.contains("target failed:") || l.contains("targets failed:")));
    lines.next();
    lines.map_while(|l| l.trim().strip_prefix('`')?.strip_suffix('`')).map(str::to_owned).collect()
}

/// The tests that failed, as the suites name them.
fn failed_tests(stdout: &str) -> Vec<String> {
    let mut names: Vec<String> = stdout
        .lines()
        .filter_map(|l| l.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(|name| name.trim_end_matches(" - should panic").to_owned())
        .collect();
    names.dedup();
    names
}

pub(crate) fn lint(root: &Path) -> Outcome {
    fmt(root)?;
    clippy(root)
}

pub(crate) fn bench(root: &Path) -> Outcome {
    let run_all = root.join("bench/run");
    if !run_all.exists() {
        return Err(Stop::Skipped("bench".into(), "there is no bench/run".into()));
    }
    run(Command::new(run_all).current_dir(root))
}

/// Prints the rooms of a crate, or of all.
pub(crate) fn rooms(root: &Path, wanted: Option<&str>) -> Outcome {
    print!("{}", rooms::show(root, wanted).map_err(|why| Stop::Failed(format!("rooms: {why}")))?);
    Ok(())
}

/// Prints the names and the words of comments that break a rule, in a crate or in all.
pub(crate) fn words(root: &Path, wanted: Option<&str>) -> Outcome {
    print!("{}", tidy::words(root, wanted).map_err(|why| Stop::Failed(format!("words: {why}")))?);
    Ok(())
}

/// Licences, bans and sources; advisories need a database from the network, which is not part of the clone.
pub(crate) fn deny(root: &Path) -> Outcome {
    let binary = cargo_deny(root)?;
    // The three that need nothing but the lock file and the sources that cargo has fetched anyway.
    run(Command::new(binary).args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(root))
}

/// The short rows of bench/applications, with what they need installed under `target/applications`. Once more where one
/// fails, since real clients have deadlines of their own.
fn applications(root: &Path) -> Outcome {
    let script = root.join("bench/applications");
    let install = run(Command::new(&script).arg("--install").current_dir(root));
    install.map_err(|_| Stop::Skipped("applications".into(), "their packages are not to be had".into()))?;
    let weir = build_weir(root)?;
    let mut last = Ok(());
    for _ in 0..2 {
        last = run(Command::new(&script).args(["--ci", "--weir"]).arg(&weir).current_dir(root));
        if last.is_ok() {
            break;
        }
    }
    last.map_err(|_| Stop::Failed("applications".into()))
}

/// A short run of bench/registries: real registries change, stop and lose everything, and weir may lose no request and no
/// member. It takes six minutes at most; sources that this machine lacks are left out, and named in `left_out`.
fn registries(root: &Path, left_out: &mut Vec<String>) -> Outcome {
    if !answers(root, Path::new("python3"), &["--version"]) {
        return Err(Stop::Skipped("registries".into(), "there is no python3".into()));
    }
    let weir = build_weir(root)?;
    let mut command = Command::new(root.join("bench/registries/run"));
    command.args(["--ci", "--build", "--weir"]).arg(&weir).current_dir(root);
    let output = run_and_read(&mut command)?;
    left_out.extend(sources_left_out(&output.stdout));
    if output.is_success { Ok(()) } else { Err(Stop::Failed("registries".into())) }
}

/// The sources that bench/registries names as left out, each with the reason.
fn sources_left_out(stdout: &str) -> Vec<String> {
    let named = stdout.lines().filter_map(|line| line.split_once(": left out: "));
    named.map(|(source, why)| format!("registry {source} ({why})")).collect()
}

/// Builds weir as the tests do, so that nothing is compiled twice.
fn build_weir(root: &Path) -> Result<PathBuf, Stop> {
    cargo(root, &["test", "--workspace", "--locked", "--test", "slow", "--no-run"])?;
    Ok(target_directory(root).join("debug/weir"))
}

/// Where cargo builds.
fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// All that must hold before a change lands: every step, also behind one that fails; what failed is said last, with its
/// suites. The tests come last, so that their own summary is what one sees.
pub(crate) fn ci(root: &Path) -> Outcome {
    let (leaning, left_out) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let steps: [(&str, &dyn Fn() -> Outcome); 10] = [
        ("fmt", &|| fmt(root)),
        ("deps", &|| report("deps", &deps::check(root))),
        ("tidy", &|| report("tidy", &tidy::check(root))),
        ("clippy", &|| clippy(root)),
        ("deny", &|| deny(root)),
        // The posts' questions are answered anew, and the answers are those on their page.
        ("answers", &|| alone(root, "answers", "questions::")),
        // What is predicted happens: a part of the table of docs/fidelity.md.
        ("fidelity", &|| alone(root, "fidelity", "fidelity::")),
        // Real servers and clients of gRPC, WebSocket, git and others work through weir as they do directly.
        ("applications", &|| applications(root)),
        // Members that real registries list come and go without a lost request.
        ("registries", &|| registries(root, &mut left_out.borrow_mut())),
        ("test", &|| test_and_again(root, &mut leaning.borrow_mut())),
    ];
    let (mut ran, mut failed, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (name, step) in steps {
        eprintln!("== {name}");
        match step() {
            Ok(()) => ran.push(name),
            Err(Stop::Failed(what)) => failed.push(what),
            Err(Stop::Skipped(_, why)) => skipped.push(format!("{name} ({why})")),
        }
    }
    skipped.extend(left_out.into_inner());
    skipped.push(
        "advisories (their database is not part of the clone; `cargo deny check advisories` fetches it)"
            .into(),
    );
    eprintln!("\nran: {}\nskipped: {}", ran.join(", "), skipped.join("; "));
    let leaning = leaning.into_inner();
    if !leaning.is_empty() {
        eprintln!("failed at first and passed alone (they lean on time; mend them): {}", leaning.join(", "));
    }
    if failed.is_empty() { Ok(()) } else { Err(Stop::Failed(failed.join("; "))) }
}

/// Prints the problems of a check.
pub(crate) fn report(name: &str, problems: &[String]) -> Outcome {
    for p in problems {
        eprintln!("{p}");
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(format!("{name}: {} problems", problems.len())))
    }
}

fn fmt(root: &Path) -> Outcome {
    component(root, "fmt", "rustfmt")?;
    cargo(root, &["fmt", "--all", "--check"])
}

fn clippy(root: &Path) -> Outcome {
    component(root, "clippy", "clippy")?;
    cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

/// Skips what a toolchain without that component cannot do.
fn component(root: &Path, subcommand: &str, name: &str) -> Outcome {
    if answers(root, &cargo_path(), &[subcommand, "--version"]) {
        return Ok(());
    }
    Err(Stop::Skipped(subcommand.into(), format!("the toolchain has no {name}")))
}

/// cargo-deny from the path, or from an earlier installation under `target`, or installed there now.
fn cargo_deny(root: &Path) -> Result<PathBuf, Stop> {
    let found = PathBuf::from("cargo-deny");
    if answers(root, &found, &["--version"]) {
        return Ok(found);
    }
    let tools = root.join("target/tools");
    let ours = tools.join("bin/cargo-deny");
    if !answers(root, &ours, &["--version"]) {
        eprintln!("installing cargo-deny {CARGO_DENY} into target/tools (a few minutes, once)");
        let tools = tools.to_string_lossy();
        // Not optimized: it is built in half the time, and runs for a second.
        let install = [
            "install",
            "cargo-deny",
            "--version",
            CARGO_DENY,
            "--locked",
            "--debug",
            "--quiet",
            "--root",
            &tools,
        ];
        cargo(root, &install).map_err(|_| {
            Stop::Skipped("deny".into(), "cargo-deny is missing and could not be installed".into())
        })?;
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_that_failed_are_named() {
        let said = "error: test failed, to rerun pass `-p weir --test serve`\n\
                    error: 2 targets failed:\n    `-p weir --test serve`\n    `-p weir-serve --lib`\n";
        assert_eq!(failed_suites(said), ["-p weir --test serve", "-p weir-serve --lib"]);
        assert_eq!(failed_suites("error: 1 target failed:\n    `--doc`\nwarning: other\n"), ["--doc"]);
        assert!(failed_suites("error: could not compile `weir` (lib)\n").is_empty());
        let output =
            "running 2 tests\ntest life::ends ... FAILED\ntest log::a ... ok\n\nfailures:\n    life::ends\n";
        assert_eq!(failed_tests(output), ["life::ends"]);
    }

    #[test]
    fn sources_that_are_left_out_are_named() {
        let said = "source part requests\nknot: left out: knotd is missing: apt install knot\n\
                    dns (pdns_server)    rollout    310    0    ok\n\
                    eureka (two peers): left out: eureka0 does not serve:\njava: no such option\n";
        let named = [
            "registry knot (knotd is missing: apt install knot)",
            "registry eureka (two peers) (eureka0 does not serve:)",
        ];
        assert_eq!(sources_left_out(said), named);
    }
}
