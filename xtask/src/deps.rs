//! Dependencies point downwards only, between crates and between rooms; a library that belongs to one crate stays
//! there, but for tests.

use crate::command::cargo_path;
use crate::rooms;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The crates by level, the lowest first: each may depend on levels below its own. `sim` and `serve` share one, so
/// that they never depend on each other.
const LEVELS: &[&[&str]] = &[
    &["weir-stats", "weir-memory"],
    &["weir-policy"],
    &["weir-model", "weir-http1", "weir-net"],
    &["weir-plan", "weir-http2"],
    &["weir-topology", "weir-workload", "weir-discovery"],
    &["weir-sim", "weir-serve", "weir-load", "weir-gate"],
    &["weir-verify"],
    &["weir-report"],
    &["weir-admin"],
    &["weir"],
];

/// Crates beside the product.
const BESIDE: &[&str] = &["weir-testkit", "xtask"];

/// Libraries that only these crates may name, by the beginning of their name, and why.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    ("starlark", &["weir-topology"], "everything else sees only the plan"),
    ("allocative", &["weir-topology"], "starlark's values need it, nothing else does"),
    ("httparse", &["weir-http1"], "what a message is, is said in one place"),
    ("clap", &["weir"], "arguments are the command line's"),
    ("hyper", &["weir-admin", "weir-discovery", "weir-gate"], "what carries users' requests is weir's own"),
    ("hickory", &["weir-discovery", "weir-serve"], "the simulator knows no names"),
    ("rustls", &["weir-net"], "others see a connection's bytes, and whether a file can be used"),
    ("signal-hook", &["weir"], "signals belong to the process"),
];

/// All that the sans-I/O crates may use outside tests: no clock, no socket, no thread comes in by a library.
const SANS_IO: (&[&str], &[&str]) = (
    &["weir-stats", "weir-policy", "weir-model", "weir-http1", "weir-http2"],
    &["libm", "serde", "siphasher", "smallvec", "twox-hash"],
);

/// Libraries and crates that a crate must do without, and why. Its tests may use weir's own crates.
const NEVER: &[(&str, &str, &str)] = &[
    (
        "weir-sim",
        "libm",
        "samplers and their mathematics live in stats and model; the simulator only drives them",
    ),
    (
        "weir-net",
        "weir-policy",
        "connections are streams of bytes; what balances requests over them, serve knows",
    ),
    ("weir-load", "weir-topology", NO_LANGUAGE),
    ("weir-sim", "weir-topology", NO_LANGUAGE),
    ("weir-serve", "weir-topology", NO_LANGUAGE),
    ("weir-report", "weir-topology", NO_LANGUAGE),
    ("weir-admin", "weir-topology", NO_LANGUAGE),
];

const NO_LANGUAGE: &str =
    "what runs or reports a plan takes it from weir-plan; the language is for who has a file";

/// Crates that must build without the language, and so without what is below: nothing that they use, however
/// indirectly, may bring in a package whose name begins so.
const WITHOUT: (&[&str], &str) = (
    &["weir-plan", "weir-net", "weir-workload", "weir-discovery", "weir-load", "weir-sim", "weir-serve"],
    "starlark",
);

/// What is wrong with the workspace at `root`, one sentence each.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems = match metadata(root) {
        Ok(metadata) => judge(&metadata),
        Err(e) => vec![format!("cargo metadata: {e}")],
    };
    problems.extend(without_starlark(root));
    problems.extend(rooms::check(root));
    problems
}

/// What `cargo tree` shows of Starlark under the crates that must build without it.
fn without_starlark(root: &Path) -> Vec<String> {
    let (crates, library) = WITHOUT;
    crates
        .iter()
        .flat_map(|name| match tree(root, name) {
            Ok(tree) => brought_in(name, library, &tree),
            Err(e) => vec![format!("cargo tree -p {name}: {e}")],
        })
        .collect()
}

/// All packages that a crate is built from, one a line, without what its tests need.
fn tree(root: &Path, name: &str) -> Result<String, String> {
    let output = Command::new(cargo_path())
        .args(["tree", "--edges", "normal,build", "--prefix", "none", "--offline", "--package", name])
        .current_dir(root)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is wrong with a crate's tree if it holds packages of a library that it must do without.
fn brought_in(name: &str, library: &str, tree: &str) -> Vec<String> {
    let mut found: Vec<&str> =
        tree.lines().filter_map(|line| line.split(' ').next()).filter(|p| p.starts_with(library)).collect();
    found.sort_unstable();
    found.dedup();
    found
        .iter()
        .map(|package| {
            format!(
                "{name} -> ... -> {package}: it must build without (see `cargo tree -p {name} -i {package}`)"
            )
        })
        .collect()
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
        if below >= own {
            return Some(format!("{name} -> {on}: dependencies point downwards only"));
        }
        return if for_tests { None } else { never(name, on) };
    }
    let elsewhere =
        |(l, homes, _): &&(&str, &[&str], &str)| on.starts_with(l) && !homes.contains(&name) && !for_tests;
    if let Some((_, homes, why)) = ONLY_IN.iter().find(elsewhere) {
        return Some(format!("{name} -> {on}: belongs to {} only ({why})", homes.join(" and ")));
    }
    if let Some(problem) = never(name, on) {
        return Some(problem);
    }
    let (sans_io, allowed) = SANS_IO;
    (sans_io.contains(&name) && !for_tests && !allowed.contains(&on))
        .then(|| format!("{name} -> {on}: a sans-I/O crate uses only {}", allowed.join(", ")))
}

fn never(name: &str, on: &str) -> Option<String> {
    let (_, _, why) = NEVER.iter().find(|(n, l, _)| (*n, *l) == (name, on))?;
    Some(format!("{name} -> {on}: {why}"))
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|crates| crates.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_brings_starlark_into_the_simulator_the_proxy_and_their_network() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        assert_eq!(without_starlark(root), Vec::<String>::new());
        assert_eq!(
            tree(root, "weir-topology").map(|t| brought_in("weir-topology", "starlark", &t).is_empty()),
            Ok(false)
        );
        let tree = "weir-sim v0.1.0 (/w)\nstarlark_map v0.14.2\nserde v1.0.0\nstarlark_map v0.14.2 (*)\n";
        assert_eq!(brought_in("weir-sim", "starlark", tree).len(), 1);
    }

    #[test]
    fn what_does_not_belong_is_found() {
        for (name, on, for_tests, found) in [
            ("weir-sim", "weir-policy", false, false),
            ("weir-policy", "weir-sim", false, true),
            ("weir-policy", "weir-sim", true, true),
            ("weir-sim", "weir-sim", false, true),
            ("weir-sim", "starlark_syntax", false, true),
            ("weir-topology", "starlark", false, false),
            ("weir-net", "weir-topology", true, true),
            ("weir-sim", "weir-topology", false, true),
            ("weir-sim", "weir-topology", true, false),
            ("weir-net", "weir-http1", false, true),
            ("weir-net", "weir-plan", false, true),
            ("weir-net", "weir-policy", false, true),
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
