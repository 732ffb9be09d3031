//! A crate's `clippy.toml` replaces the root's, so it has to repeat all bans of the root.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

pub(super) fn check(root: &Path) -> Vec<String> {
    let at_root = banned(&fs::read_to_string(root.join("clippy.toml")).unwrap_or_default());
    if at_root.is_empty() {
        return vec!["clippy.toml: the root bans nothing".into()];
    }
    let mut problems = Vec::new();
    let mut crates: Vec<_> = fs::read_dir(root.join("crates"))
        .map(|d| d.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    crates.sort();
    for dir in crates {
        let Ok(text) = fs::read_to_string(dir.join("clippy.toml")) else { continue };
        let here = banned(&text);
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(
            at_root
                .difference(&here)
                .map(|path| format!("crates/{name}/clippy.toml: does not repeat the root's ban of {path}")),
        );
    }
    problems
}

/// The paths of all bans: `{ path = "...", ... }`.
fn banned(toml: &str) -> BTreeSet<String> {
    toml.lines()
        .map(|line| line.split('#').next().unwrap_or(line))
        .filter_map(|line| line.split_once("path = \"")?.1.split_once('"'))
        .map(|(path, _)| path.to_owned())
        .collect()
}
