//! Every page and heading that a comment or a document names exists, and the headings of the specification have
//! anchors.
//!
//! A comment cites `docs/spec/serving.md#targets`. The part after `#` is an anchor, `<a id="targets"></a>` on the line
//! above a heading, or the anchor that GitHub makes of a heading's text. In `docs/spec` each heading has an anchor of
//! its own, so that a citation stays right when sections get other numbers.

use super::{Source, files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Folders whose files are looked through.
const FOLDERS: &[&str] = &["crates", "xtask", "examples", "bench", "deploy", "fuzz", "docs"];
/// The pages beside them.
const AT_ROOT: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Endings of files with comments that may cite a page; scripts have none.
const CITING: &[&str] = &["rs", "txt", "star", "py", "toml", "yml", "yaml", ""];
/// Where headings are numbered, and need anchors.
const SPECIFICATION: &str = "docs/spec/";

/// The anchors of each page, by its path from the root.
type Pages = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(root: &Path) -> Vec<String> {
    let mut documents = files(root, FOLDERS, "md");
    documents.extend(AT_ROOT.iter().map(|name| Source {
        path: (*name).to_owned(),
        text: std::fs::read_to_string(root.join(name)).unwrap_or_default(),
    }));
    let pages: Pages = documents.iter().map(|d| (d.path.clone(), anchors(&d.text))).collect();
    let exists = |path: &str| root.join(path).exists();
    let mut problems = Vec::new();
    for document in &documents {
        problems.extend(cited(document, &pages));
        problems.extend(linked(document, &pages, &exists));
        if document.path.starts_with(SPECIFICATION) {
            problems.extend(headings(document));
        }
    }
    for ending in CITING {
        problems.extend(files(root, FOLDERS, ending).iter().flat_map(|f| cited(f, &pages)));
    }
    problems
}

/// Pages that a file names from the root and that are missing, or lack the heading.
fn cited(file: &Source, pages: &Pages) -> Vec<String> {
    let mut problems = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let comment = comment(&file.path, line).unwrap_or(line.len());
        for (at, page, anchor) in citations(line) {
            // From another folder a page may be named by a relative path; links of documents are looked at below.
            let page = page.trim_start_matches('/').trim_start_matches("../");
            if page.starts_with("docs/") || (at >= comment && !page.contains(':')) {
                problems.extend(
                    missing(page, anchor, pages).map(|what| format!("{}:{}: {what}", file.path, i + 1)),
                );
            }
        }
    }
    problems
}

/// Where the comment of a line begins: behind code in Rust, on a line of its own in the other languages.
fn comment(path: &str, line: &str) -> Option<usize> {
    match path {
        _ if path.ends_with(".rs") => line.find("//"),
        _ if path.ends_with(".md") => None,
        _ => line.trim_start().starts_with('#').then_some(0),
    }
}

/// The names of pages in a line: where, the path, and what follows `#`.
fn citations(line: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    line.match_indices(".md").filter_map(|(dot, ending)| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let start = line[..dot].rfind(|c| !is_path(c)).map_or(0, |i| i + 1);
        let rest = &line[dot + ending.len()..];
        let is_url = line[start..].starts_with("//");
        if start == dot || is_url || rest.starts_with(is_name) {
            return None;
        }
        let anchor = rest.strip_prefix('#').map(|a| &a[..a.find(|c| !is_name(c)).unwrap_or(a.len())]);
        Some((start, &line[start..dot + ending.len()], anchor.filter(|a| !a.is_empty())))
    })
}

fn missing(page: &str, anchor: Option<&str>, pages: &Pages) -> Option<String> {
    let Some(anchors) = pages.get(page) else { return Some(format!("there is no page {page}")) };
    let anchor = anchor.filter(|a| !anchors.contains(*a))?;
    Some(format!("{page} has no heading #{anchor}"))
}

/// Links of a document that lead nowhere.
fn linked(document: &Source, pages: &Pages, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut problems = Vec::new();
    for (line, text) in prose(&document.text) {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|t| !t.contains("://")) {
            let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
            let path = if path.is_empty() { document.path.clone() } else { resolve(folder, path) };
            let what = if pages.contains_key(&path) {
                missing(&path, anchor, pages)
            } else {
                (!exists(&path)).then(|| format!("there is no {path}"))
            };
            problems.extend(what.map(|what| format!("{}:{line}: {what}", document.path)));
        }
    }
    problems
}

/// The path from the root of what a page in this folder links to.
fn resolve(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The lines of a page with their numbers, without blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((i + 1, line))
    })
}

/// The text of a heading.
fn heading(line: &str) -> Option<&str> {
    line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
}

/// The anchor that a line consists of.
fn anchor(line: &str) -> Option<&str> {
    line.strip_prefix("<a id=\"")?.strip_suffix("\"></a>")
}

/// What may follow `#` in a link to this page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        found.extend(anchor(line).map(str::to_owned));
        if let Some(heading) = heading(line) {
            let slug = slug(heading);
            let again = (1..).map(|n| format!("{slug}-{n}")).find(|s| !found.contains(s));
            found.extend(if found.contains(&slug) { again } else { Some(slug) });
        }
    }
    found
}

/// The anchor that GitHub makes of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// Headings of the specification without an anchor, with one that is taken, or out of order.
fn headings(page: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    let mut taken = BTreeSet::new();
    let (mut above, mut section, mut part) = (None, 0, 0);
    for (line, text) in prose(&page.text) {
        let mut say = |what: String| problems.push(format!("{}:{line}: {what}", page.path));
        if let Some(title) = heading(text).filter(|_| !text.starts_with("# ")) {
            let is_section = text.starts_with("## ");
            (section, part) = if is_section { (section + 1, 0) } else { (section, part + 1) };
            let number = if is_section { format!("{section}. ") } else { format!("{section}.{part} ") };
            if !title.starts_with(&number) {
                say(format!("the heading must begin with {}", number.trim_end()));
            }
            match above {
                None => say("the heading has no anchor: `<a id=\"...\"></a>` on the line above".into()),
                Some(name) if !taken.insert(name) => say(format!("the anchor {name} is taken")),
                Some(_) => {}
            }
        }
        above = anchor(text);
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Serving\n\n<a id=\"targets\"></a>\n## 1. Targets, and `weir`\n\n```\n# no heading\n```\n";

    fn pages() -> Pages {
        [("docs/spec/serving.md".to_owned(), anchors(PAGE))].into()
    }

    fn source(path: &str, text: String) -> Source {
        Source { path: path.into(), text }
    }

    /// Citations are put together here, so that this file does not cite what is missing.
    fn cite(path: &str, what: &str) -> Vec<String> {
        cited(&source(path, format!("// As `docs/spec/{what}` says.\n")), &pages())
    }

    #[test]
    fn a_missing_page_and_a_missing_heading_are_found() {
        assert!(cite("crates/a/src/b.rs", "serving.md").is_empty());
        assert!(cite("crates/a/src/b.rs", "serving.md#targets").is_empty());
        assert!(cite("crates/a/src/b.rs", "serving.md#1-targets-and-weir").is_empty());
        assert_eq!(
            cite("crates/a/src/b.rs", "serving.md#tagrets"),
            [concat!("crates/a/src/b.rs:1: docs/", "spec/serving.md has no heading #tagrets")]
        );
        assert_eq!(
            cite("bench/run", "sevring.md#targets"),
            [concat!("bench/run:1: there is no page docs/", "spec/sevring.md")]
        );
        assert_eq!(cite("crates/a/src/b.rs", "serving.md#no-heading").len(), 1);
    }

    #[test]
    fn a_comment_names_pages_from_the_root() {
        let found = |text: &str| cited(&source("crates/a/src/b.rs", text.into()), &pages()).len();
        assert_eq!(found(concat!("// (`serving", ".md` §3)")), 1);
        assert_eq!(found("let name = \"serving.md\";"), 0);
        assert_eq!(found("// https://example.com/serving.md"), 0);
        let vector = |text: &str| cited(&source("crates/a/tests/b.txt", text.into()), &pages()).len();
        assert_eq!(vector(concat!("# A method is limited (serving", ".md §3)\n== in\n")), 1);
        assert_eq!(vector("GET /serving.md HTTP/1.1\\r\\n"), 0);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let found = |text: &str| {
            let page = source("docs/strictness.md", text.into());
            linked(&page, &pages(), &|path| path == "crates/a.rs").len()
        };
        assert_eq!(found("[a](spec/serving.md#targets), [b](../crates/a.rs), [c](https://example.com/x)"), 0);
        assert_eq!(found("[a](spec/serving.md#other) and [b](../crates/b.rs)"), 2);
        assert_eq!(found("```\n[a](other.md)\n```"), 0);
    }

    #[test]
    fn headings_of_the_specification_have_numbers_and_anchors() {
        let found = |text: &str| headings(&source("docs/spec/serving.md", text.into())).len();
        assert_eq!(found(PAGE), 0);
        assert_eq!(found("## 1. Targets\n"), 1);
        assert_eq!(
            found("<a id=\"a\"></a>\n## 1. A\n<a id=\"b\"></a>\n### 1.1 B\n<a id=\"a\"></a>\n## 3. C\n"),
            2
        );
    }
}
