//! Lints of the tree that no compiler knows: one file per kind, each a function from the tree to sentences.

mod bans;
mod names;
mod nodes;
mod paths;
mod policies;
mod prose;
mod references;
mod sources;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that have sources.
const FOLDERS: &[&str] = &["crates", "xtask", "examples", "bench"];

/// What is wrong with the tree at `root`, one sentence each, `file:line: ...` where there is a line.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files = files(root, FOLDERS, "rs");
    let mut problems = sources::check(&files);
    problems.extend(words::check(&files));
    problems.extend(bans::check(root));
    problems.extend(nodes::check(root, &files));
    problems.extend(policies::check(&files));
    problems.extend(references::check(root));
    problems.extend(paths::check(root));
    problems.extend(architecture(root));
    problems.extend(files.iter().flat_map(|file| named(file, names::Rule::ALL)));
    problems.extend(prose_shares(&files));
    problems
}

/// Names and words of comments that break a rule, and their counts by crate. `wanted` is a crate's folder
/// (`crates/serve`) or the folder's name; `None`: all.
pub(crate) fn words(root: &Path, wanted: Option<&str>) -> Result<String, String> {
    let mut all = files(root, FOLDERS, "rs");
    let crate_of = |path: &str| match path.strip_prefix("crates/") {
        Some(inner) => format!("crates/{}", inner.split('/').next().unwrap_or_default()),
        None => path.split('/').next().unwrap_or_default().to_owned(),
    };
    if let Some(wanted) = wanted {
        all.retain(|f| {
            crate_of(&f.path).trim_start_matches("crates/") == wanted.trim_start_matches("crates/")
        });
    }
    if all.is_empty() {
        return Err(format!("there is no crate `{}`", wanted.unwrap_or_default()));
    }
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for file in all {
        crates.entry(crate_of(&file.path)).or_default().push(file);
    }
    let (mut lines, mut counts) = (String::new(), String::new());
    for (name, files) in &crates {
        let names: Vec<String> = files.iter().flat_map(|file| named(file, names::Rule::ALL)).collect();
        let prose: Vec<String> = files.iter().flat_map(spoken).collect();
        counts += &format!("{name}: {} names; {}\n", names.len(), shares(files));
        for line in names.iter().chain(&prose) {
            lines += line;
            lines.push('\n');
        }
    }
    let all: Vec<Source> = crates.into_values().flatten().collect();
    Ok(format!("{lines}{counts}all: {}\n", shares(&all)))
}

/// The names of a file that break one of these rules, one sentence each.
fn named(file: &Source, rules: &[names::Rule]) -> Vec<String> {
    if rules.is_empty() {
        return Vec::new();
    }
    match names::find(file) {
        Ok(found) => found
            .into_iter()
            .filter(|o| rules.contains(&o.rule))
            .map(|o| format!("{}:{}: `{}`: {}", file.path, o.line, o.name, o.rule.describe()))
            .collect(),
        Err(why) => vec![why],
    }
}

/// The counted words of a file's comments, one line each.
fn spoken(file: &Source) -> Vec<String> {
    let words = prose::words(file);
    let text: Vec<&str> = file.text.lines().collect();
    let mut found: Vec<(usize, &str)> = prose::PATTERNS
        .iter()
        .flat_map(|pattern| pattern.lines(&words).into_iter().map(|line| (line, pattern.name)))
        .collect();
    found.sort_unstable();
    let sentence =
        |(line, name): (usize, &str)| format!("{}:{line}: {name}: {}", file.path, text[line - 1].trim());
    found.into_iter().map(sentence).collect()
}

/// How often each pattern occurs in these files, with its share per thousand words of comments.
fn shares(files: &[Source]) -> String {
    let (total, counts) = prose::count(files);
    let share = |count: usize| count as f64 * 1000.0 / total.max(1) as f64;
    let counts = prose::PATTERNS.iter().zip(counts);
    let counts: Vec<String> = counts.map(|(p, n)| format!("{} {n} ({:.2})", p.name, share(n))).collect();
    format!("{total} words of comments: {}", counts.join(", "))
}

/// Patterns that occur too often in the whole tree.
fn prose_shares(files: &[Source]) -> Vec<String> {
    let (total, counts) = prose::count(files);
    let most = total * prose::MOST_PER_10_000 / 10_000;
    let over = prose::PATTERNS.iter().zip(counts).filter(|(_, count)| *count > most);
    over.map(|(pattern, count)| {
        format!(
            "comments have `{}` {count} times, at most {most} may be in {total} words; `cargo xtask words` says where",
            pattern.name
        )
    })
    .collect()
}

/// A source file: its path from the root with `/`, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Its lines with their numbers, without what follows `//`.
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
    const LONGEST: usize = 150;
    match fs::read_to_string(root.join("ARCHITECTURE.md")) {
        Ok(text) if text.lines().count() >= LONGEST => {
            vec![format!("ARCHITECTURE.md: {LONGEST} lines or more")]
        }
        Ok(_) => Vec::new(),
        Err(e) => vec![format!("ARCHITECTURE.md: {e}")],
    }
}
