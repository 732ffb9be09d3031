//! Lints of the tree that no compiler knows: one file per kind, each a function from the tree to sentences.

mod bans;
mod nodes;
mod references;
mod sources;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// What is wrong with the tree at `root`, one sentence each, `file:line: ...` where there is a line.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files = files(root, &["crates", "xtask", "examples", "bench"], "rs");
    let mut problems = sources::check(&files);
    problems.extend(words::check(&files));
    problems.extend(bans::check(root));
    problems.extend(nodes::check(root, &files));
    problems.extend(references::check(root));
    problems.extend(architecture(root));
    problems
}

/// A source file: its path from the root with `/`, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Its lines with their numbers, without what stands after `//`.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line.split("//").next().unwrap_or(line)))
    }
}

/// All files below these folders whose names end so (`""`: have no ending), in order of their paths.
fn files(root: &Path, folders: &[&str], ending: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in folders {
        walk(&root.join(folder), ending, &mut paths);
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path).unwrap_or_default(),
            path: path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/"),
        })
        .collect()
}

fn walk(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            walk(&path, ending, found);
        } else if path.is_file() && path.extension().map_or(ending.is_empty(), |e| e == ending) {
            found.push(path);
        }
    }
}

/// A map of the code is read only while it is short.
fn architecture(root: &Path) -> Vec<String> {
    const LONGEST: usize = 250;
    match fs::read_to_string(root.join("ARCHITECTURE.md")) {
        Ok(text) if text.lines().count() >= LONGEST => {
            vec![format!("ARCHITECTURE.md: {LONGEST} lines or more")]
        }
        Ok(_) => Vec::new(),
        Err(e) => vec![format!("ARCHITECTURE.md: {e}")],
    }
}
