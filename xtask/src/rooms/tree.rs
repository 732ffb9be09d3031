//! The files of a crate and which of them know which: every name is followed to the file that has it.

use super::names::{Mention, names};
use super::tokens::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Longer chains of re-exports are circles.
const LONGEST_CHAIN: usize = 16;

/// A source file without its tests.
pub(super) struct File {
    /// From `src`, with `/`.
    pub(super) path: String,
    /// The first folder, or the name of a file in `src` itself.
    pub(super) room: String,
    pub(super) lines: usize,
    module: Vec<String>,
    tokens: Vec<Token>,
}

/// That a file knows another.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The first line that names it, and the path as written there.
    pub(super) line: usize,
    pub(super) path: String,
    /// Whether it only hands the name on (`pub use`), and has no use for it.
    pub(super) only_hands_on: bool,
}

/// A crate.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// Ordered by the files' numbers.
    pub(super) edges: Vec<Edge>,
    /// Which file a module is in.
    modules: BTreeMap<Vec<String>, usize>,
    /// What a module calls something, by the path that it took it from.
    imports: BTreeMap<(Vec<String>, String), Vec<String>>,
}

impl Tree {
    /// Reads a crate from its `src`.
    pub(super) fn read(src: &Path) -> Tree {
        let mut sources = Vec::new();
        collect(src, "", &mut sources);
        Tree::new(sources)
    }

    /// A crate of these files, each a path from `src` and a text.
    pub(super) fn new(mut sources: Vec<(String, String)>) -> Tree {
        sources.sort();
        let mut for_tests = BTreeSet::new();
        let mut files: Vec<File> = Vec::new();
        for (path, text) in sources.into_iter().filter(|(path, _)| !is_test_file(path)) {
            let (tokens, test_modules) = tokens(&text);
            let module = module(&path);
            for_tests.extend(test_modules.into_iter().map(|name| child(&module, &name)));
            let room = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
            files.push(File { room, lines: text.lines().count(), module, tokens, path });
        }
        files.retain(|f| !for_tests.iter().any(|module| f.module.starts_with(module)));
        let mut tree = Tree { files, edges: Vec::new(), modules: BTreeMap::new(), imports: BTreeMap::new() };
        tree.connect();
        tree
    }

    /// The files that know this one.
    pub(super) fn dependents(&self, file: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.to == file && !e.only_hands_on)
    }

    /// Whether a module's file knows one of its own folder.
    pub(super) fn is_from_front(&self, edge: &Edge) -> bool {
        self.files[edge.to].module.starts_with(&self.files[edge.from].module)
    }

    fn connect(&mut self) {
        let mut named = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let (found, inline) = names(&file.tokens, &file.module);
            self.modules.insert(file.module.clone(), number);
            self.modules.extend(inline.into_iter().map(|module| (module, number)));
            named.push(found);
        }
        for n in named.iter().flatten() {
            if let Some(name) = n.import.as_ref().and_then(|i| i.name.clone()) {
                self.imports.entry((n.within.clone(), name)).or_insert_with(|| n.path.clone());
            }
        }
        for (from, found) in named.into_iter().enumerate() {
            let mut known: BTreeMap<usize, Edge> = BTreeMap::new();
            for n in found {
                let Some(to) = self.has(&n.within, &n.path, 0).filter(|to| *to != from) else { continue };
                let only_hands_on = self.only_hands_on(from, &n);
                let edge = Edge { from, to, line: n.line, path: n.path.join("::"), only_hands_on };
                match known.get_mut(&to) {
                    None => _ = known.insert(to, edge),
                    Some(earlier) if earlier.only_hands_on => *earlier = edge,
                    Some(_) => {}
                }
            }
            self.edges.extend(known.into_values());
        }
    }

    /// Whether a name is only made public here: nothing else in the file says it.
    fn only_hands_on(&self, file: usize, named: &Mention) -> bool {
        let Some(import) = named.import.as_ref().filter(|i| i.is_public) else { return false };
        let Some(name) = &import.name else { return true };
        self.files[file].tokens.iter().filter(|t| t.text == *name).count() == 1
    }

    /// The file that has what a path means in a module; none for libraries.
    fn has(&self, within: &[String], path: &[String], chain: usize) -> Option<usize> {
        if chain > LONGEST_CHAIN {
            return None;
        }
        let (first, mut rest) = path.split_first()?;
        let mut module = within.to_vec();
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => _ = module.pop(),
            name if self.modules.contains_key(&child(within, name)) => module.push(name.to_owned()),
            name => return self.imported(within, name, rest, chain),
        }
        while let Some((name, behind)) = rest.split_first() {
            let inner = child(&module, name);
            if name == "super" {
                module.pop();
            } else if self.modules.contains_key(&inner) {
                module = inner;
            } else if let Some(file) = self.imported(&module, name, behind, chain) {
                return Some(file);
            } else {
                break;
            }
            rest = behind;
        }
        self.modules.get(&module).copied()
    }

    /// The file that declares what a module imports under this name, or what `rest` names inside that.
    fn imported(&self, within: &[String], name: &str, rest: &[String], chain: usize) -> Option<usize> {
        let path = self.imports.get(&(within.to_vec(), name.to_owned()))?;
        // `use name::..` of something of the same name would ask for itself.
        if path.first().is_some_and(|first| first == name) {
            return None;
        }
        let whole: Vec<String> = path.iter().chain(rest).cloned().collect();
        self.has(within, &whole, chain + 1)
    }
}

fn child(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The module that a file is; the crate's root for `lib.rs` and `main.rs`.
fn module(path: &str) -> Vec<String> {
    let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let root = module.len() == 1 && matches!(module[0].as_str(), "lib" | "main");
    if root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
}

fn collect(dir: &Path, above: &str, found: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let name = format!("{above}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), found);
        } else if name.ends_with(".rs") {
            found.push((name, fs::read_to_string(&path).unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges as `from:line path -> to`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::new(files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect());
        let show = |e: &Edge| {
            let hands_on = if e.only_hands_on { " (handed on)" } else { "" };
            format!(
                "{}:{} {} -> {}{hands_on}",
                tree.files[e.from].path, e.line, e.path, tree.files[e.to].path
            )
        };
        tree.edges.iter().map(show).collect()
    }

    #[test]
    fn paths_are_followed_to_their_files() {
        let found = edges(&[
            ("lib.rs", "mod a; mod b;\npub use a::A;"),
            (
                "a/mod.rs",
                "mod c;\nuse crate::{b::{self, B}, missing};\nuse std::fs;\nfn f() { b::g(); fs::h(); c::i() }",
            ),
            ("a/c.rs", "use super::A;\nuse super::super::b;\nfn f() { crate::a::d::D::new() }"),
            ("a/d.rs", "fn f() {\n super::super::b::g() }"),
            ("b.rs", "mod inline { fn f() {\n super::super::a::d::e() } }"),
        ]);
        assert_eq!(
            found,
            [
                "a/c.rs:3 crate::a::d::D::new -> a/d.rs",
                "a/c.rs:1 super::A -> a/mod.rs",
                "a/c.rs:2 super::super::b -> b.rs",
                "a/d.rs:2 super::super::b::g -> b.rs",
                "a/mod.rs:4 c::i -> a/c.rs",
                "a/mod.rs:2 crate::b -> b.rs",
                "a/mod.rs:2 crate::missing -> lib.rs",
                "b.rs:2 super::super::a::d::e -> a/d.rs",
                "lib.rs:2 a::A -> a/mod.rs (handed on)",
            ]
        );
    }

    #[test]
    fn names_are_followed_through_who_hands_them_on() {
        let found = edges(&[
            (
                "a/mod.rs",
                "mod b;\npub(crate) use b::B;\npub(crate) use b::c::{C as D};\nuse D as E; struct S(E);",
            ),
            ("a/b.rs", "pub(crate) mod c;\nuse super::E;"),
            ("a/b/c.rs", ""),
            ("d.rs", "use crate::a::{B, D};\nuse crate::a::S;"),
            ("e.rs", "use crate::e::f as g; use crate::e::g as f; fn h() { f::i() }"),
        ]);
        assert_eq!(
            found,
            [
                "a/b.rs:2 super::E -> a/b/c.rs",
                "a/mod.rs:2 b::B -> a/b.rs (handed on)",
                "a/mod.rs:3 b::c::C -> a/b/c.rs",
                "d.rs:1 crate::a::B -> a/b.rs",
                "d.rs:1 crate::a::D -> a/b/c.rs",
                "d.rs:2 crate::a::S -> a/mod.rs",
            ]
        );
    }

    #[test]
    fn tests_are_left_out() {
        let found = edges(&[
            (
                "a.rs",
                "#[cfg(test)] mod naive;\n#[cfg(test)]\nmod tests { use crate::b::B; }\n// crate::b\nfn f() { \"crate::b\" }",
            ),
            ("a/naive.rs", "use crate::b::B;"),
            ("a_tests.rs", "use crate::b::B;"),
            ("a/tests.rs", "use crate::b::B;"),
            ("tests/c.rs", "use crate::b::B;"),
            ("b.rs", ""),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
