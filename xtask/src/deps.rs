//! Dependencies point downwards only, between crates and between rooms; a library that belongs to one crate stays there, but for tests.

use crate::command::cargo_path;
use crate::rooms;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The crates by level, the lowest first: each may depend on levels below its own. `sim` and `serve` will share one, so
/// that they never depend on each other.
const LEVELS: &[&[&str]] = &[
    &["weir-stats"],
    &["weir-policy"],
    &["weir-model", "weir-http1"],
    &["weir-topology"],
    &["weir-workload", "weir-net"],
    &["weir-sim", "weir-serve", "weir-load"],
    &["weir-verify"],
    &["weir-report"],
    &["weir-admin"],
    &["weir"],
];

/// Crates beside the product.
const BESIDE: &[&str] = &["xtask"];

/// Libraries that only one crate may name, by the beginning of their name, and why.
const ONLY_IN: &[(&str, &str, &str)] = &[
    ("starlark", "weir-topology", "everything downstream sees only the plan"),
    ("allocative", "weir-topology", "starlark's values need it, nothing else does"),
    ("httparse", "weir-http1", "what a message is, is said in one place"),
    ("clap", "weir", "arguments are the command line's"),
    ("hyper", "weir-admin", "what carries users' requests is weir's own"),
    ("hickory", "weir-serve", "the simulator knows no names"),
    ("rustls", "weir-net", "others see a connection's bytes, and whether a file can be used"),
    ("signal-hook", "weir", "signals belong to the process"),
];

/// All that the sans-I/O crates may use outside tests: no clock, no socket, no thread comes in by a library.
const SANS_IO: (&[&str], &[&str]) =
    (&["weir-stats", "weir-policy", "weir-model", "weir-http1"], &["libm", "serde", "smallvec"]);

/// Libraries that a crate must do without, and why.
const NEVER: &[(&str, &str, &str)] = &[(
    "weir-sim",
    "libm",
    "samplers and their mathematics live in stats and model; the simulator only drives them",
)];

/// What is wrong with the workspace at `root`, one sentence each.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems = match metadata(root) {
        Ok(metadata) => judge(&metadata),
        Err(e) => vec![format!("cargo metadata: {e}")],
    };
    problems.extend(rooms::check(root));
    problems
}

fn metadata(root: &Path) -> Result<Value, String> {
    let output = Command::new(cargo_path())
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())
}

fn judge(metadata: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let none = Vec::new();
    for package in metadata["packages"].as_array().unwrap_or(&none) {
        let name = package["name"].as_str().unwrap_or_default();
        if level(name).is_none() && !BESIDE.contains(&name) {
            problems.push(format!("{name}: has no level; say where it stands in xtask/src/deps.rs"));
        }
        for dependency in package["dependencies"].as_array().unwrap_or(&none) {
            let on = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            problems.extend(edge(name, on, for_tests));
        }
    }
    problems
}

/// What is wrong with `name` depending on `on`.
fn edge(name: &str, on: &str, for_tests: bool) -> Option<String> {
    if let Some(below) = level(on) {
        let own = level(name)?;
        return (below >= own).then(|| format!("{name} -> {on}: dependencies point downwards only"));
    }
    let elsewhere = |(l, home, _): &&(&str, &str, &str)| on.starts_with(l) && *home != name && !for_tests;
    if let Some((_, home, why)) = ONLY_IN.iter().find(elsewhere) {
        return Some(format!("{name} -> {on}: belongs to {home} only ({why})"));
    }
    if let Some((_, _, why)) = NEVER.iter().find(|(n, l, _)| (*n, *l) == (name, on)) {
        return Some(format!("{name} -> {on}: {why}"));
    }
    let (sans_io, allowed) = SANS_IO;
    (sans_io.contains(&name) && !for_tests && !allowed.contains(&on))
        .then(|| format!("{name} -> {on}: a sans-I/O crate uses only {}", allowed.join(", ")))
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|crates| crates.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_belong_is_found() {
        for (name, on, for_tests, found) in [
            ("weir-sim", "weir-policy", false, false),
            ("weir-policy", "weir-sim", false, true),
            ("weir-policy", "weir-sim", true, true),
            ("weir-sim", "weir-sim", false, true),
            ("weir-sim", "starlark_syntax", false, true),
            ("weir-topology", "starlark", false, false),
            ("weir-report", "clap", false, true),
            ("weir-policy", "tokio", false, true),
            ("weir-policy", "proptest", true, false),
            ("weir-sim", "libm", false, true),
        ] {
            assert_eq!(edge(name, on, for_tests).is_some(), found, "{name} -> {on}");
        }
        let metadata = serde_json::json!({"packages": [{"name": "weir-new", "dependencies": []}]});
        assert_eq!(judge(&metadata).len(), 1);
    }
}
