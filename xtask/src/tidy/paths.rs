//! Paths of code in the documents for contributors: each must exist.

use std::fs;
use std::path::Path;

/// The documents that send a reader to files.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals"];

/// Where a path may start, besides the root.
const CRATES: &[&str] = &["serve", "sim", "policy", "net", "topology", "plan"];

pub(super) fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for document in DOCUMENTS.iter().map(|name| root.join(name)) {
        let pages: Vec<_> = match fs::read_dir(&document) {
            Ok(pages) => pages.flatten().map(|page| page.path()).collect(),
            Err(_) => vec![document],
        };
        for page in pages {
            let text = fs::read_to_string(&page).unwrap_or_default();
            let name = page.strip_prefix(root).unwrap_or(&page).display().to_string();
            problems.extend(cited(&text).filter(|(_, path)| !exists(root, path)).map(|(line, path)| {
                format!("{name}:{line}: `{path}` does not exist; name the file that is meant")
            }));
        }
    }
    problems
}

/// The paths in backquotes, with their lines. `NAME` stands for a file that a reader is to create.
fn cited(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_path = |word: &str| {
        word.contains('/')
            && !word.contains("NAME")
            && !word.starts_with('/')
            && word.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c))
    };
    text.lines()
        .zip(1..)
        .flat_map(|(line, number)| line.split('`').skip(1).step_by(2).map(move |word| (number, word)))
        .filter(move |(_, word)| is_path(word))
}

/// Whether it is a file or folder, from the root, from `crates`, or from the sources of a crate; a file's ending may be
/// left out.
fn exists(root: &Path, path: &str) -> bool {
    let is_there = |at: &Path| at.join(path).exists() || at.join(format!("{path}.rs")).exists();
    is_there(root)
        || is_there(&root.join("crates"))
        || CRATES.iter().any(|name| is_there(&root.join("crates").join(name).join("src")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_must_exist() {
        let found: Vec<_> =
            cited("see `policy/src/lib.rs` and `a b`\n`x::y`, `tests/NAME.rs`, `no/such`").collect();
        assert_eq!(found, [(1, "policy/src/lib.rs"), (2, "no/such")]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(
            exists(&root, "policy/src/lib.rs") && exists(&root, "graph/run.rs") && !exists(&root, "no/such")
        );
    }
}
