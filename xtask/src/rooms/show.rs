//! The rooms of a crate as text: which knows which, how often, and the largest knot.

use super::knot;
use super::table::{Layout, TABLE};
use super::tree::{Edge, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// How many of the best known files are listed.
const BEST_KNOWN: usize = 8;

/// The rooms of a crate, named by its folder (`crates/serve`) or the folder's name; of all crates without one.
pub(crate) fn show(root: &Path, wanted: Option<&str>) -> Result<String, String> {
    let mut folders = folders(root);
    if let Some(wanted) = wanted {
        folders.retain(|f| f == wanted || f.rsplit('/').next() == Some(wanted));
    }
    if folders.is_empty() {
        return Err(format!("there is no crate `{}`", wanted.unwrap_or_default()));
    }
    let crates = folders.iter().map(|folder| {
        let held = TABLE.iter().find(|held| held.folder == folder);
        of_crate(folder, held, &Tree::read(&root.join(folder).join("src")))
    });
    Ok(crates.collect::<Vec<_>>().join("\n"))
}

/// The folders of all crates of the workspace.
pub(super) fn folders(root: &Path) -> Vec<String> {
    let mut folders: Vec<String> = fs::read_dir(root.join("crates"))
        .map(|d| d.flatten().map(|e| format!("crates/{}", e.file_name().to_string_lossy())).collect())
        .unwrap_or_default();
    folders.sort();
    folders.push("xtask".into());
    folders
}

/// A crate's rooms: those of the table in its order, from the lowest, then the others.
pub(super) fn of_crate(folder: &str, held: Option<&Layout>, tree: &Tree) -> String {
    let all: BTreeSet<&str> = tree.files.iter().map(|f| f.room.as_str()).collect();
    let listed = held.map_or(&[][..], |held| held.rooms);
    let mut names: Vec<&str> = listed.iter().map(|r| r.name).filter(|name| all.contains(name)).collect();
    names.extend(all.iter().filter(|name| !listed.iter().any(|r| r.name == **name)));
    let width = names.iter().map(|n| n.len()).max().unwrap_or_default().max(4);
    let mut text = format!("{folder}: {} files in {} rooms", tree.files.len(), names.len());
    text += if held.is_some() { ", from the lowest\n" } else { ", not held to a table\n" };
    text += &format!("  {:width$}  files  lines  known by  knows (files that know x files known)\n", "room");
    for name in &names {
        let files = tree.files.iter().filter(|f| f.room == *name);
        let (count, lines) = (files.clone().count(), files.map(|f| f.lines).sum::<usize>());
        let known_by = between(tree, |from, to| to == *name && from != *name)
            .map(|e| e.from)
            .collect::<BTreeSet<_>>()
            .len();
        text += &format!("  {name:width$}  {count:5}  {lines:5}  {known_by:8}  {}\n", knows(tree, name));
    }
    text += &format!("  knot: {}\n", knot(tree, &knot::largest(tree), ""));
    text += &format!(
        "  {} files in it if what a module's file names of its own folder counts\n",
        knot::with_fronts(tree)
    );
    text += &format!("  most known: {}\n", most_known(tree));
    text
}

/// The edges between rooms for which this holds.
fn between<'a>(
    tree: &'a Tree,
    holds: impl Fn(&str, &str) -> bool + 'a,
) -> impl Iterator<Item = &'a Edge> + 'a {
    tree.edges.iter().filter(move |e| holds(&tree.files[e.from].room, &tree.files[e.to].room))
}

/// The other rooms that a room knows, each with the number of edges.
fn knows(tree: &Tree, room: &str) -> String {
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for e in between(tree, |from, to| from == room && to != room) {
        *others.entry(&tree.files[e.to].room).or_default() += 1;
    }
    if others.is_empty() {
        return "-".into();
    }
    others.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

fn most_known(tree: &Tree) -> String {
    let mut files: Vec<(usize, &str)> =
        tree.files.iter().enumerate().map(|(n, f)| (tree.dependents(n).count(), f.path.as_str())).collect();
    files.sort_by_key(|(count, path)| (usize::MAX - count, *path));
    let known = files.iter().filter(|(count, _)| *count > 0).take(BEST_KNOWN);
    known.map(|(count, path)| format!("{path} {count}")).collect::<Vec<_>>().join(", ")
}

/// A knot in words: its files, and the edge whose removal would loosen it most, its location prefixed by `src`.
pub(super) fn knot(tree: &Tree, knot: &[usize], src: &str) -> String {
    let Some((cut, left)) = knot::best_cut(tree, knot) else {
        return "none".into();
    };
    let files: Vec<&str> = knot.iter().map(|f| tree.files[*f].path.as_str()).collect();
    format!(
        "{} files all know each other, over others: {}; without {src}{}:{}: {} it would be {left}",
        knot.len(),
        files.join(", "),
        tree.files[cut.from].path,
        cut.line,
        cut.path
    )
}
