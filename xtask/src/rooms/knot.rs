//! Files that all know each other, over others: the largest such set of a crate, and what would loosen it.
//!
//! A module's file is the front of its folder: that it names the files in there, as `mod.rs` does to list them or to
//! choose among them, makes no knot. That a file in there names its front does count.

use super::tree::{Edge, Tree};
use std::collections::BTreeSet;

/// The largest strongly connected component of files, ascending; empty where no two files know each other.
pub(super) fn largest(tree: &Tree) -> Vec<usize> {
    component(tree.files.len(), &counted(tree))
}

/// How many files the largest has if fronts count as well.
pub(super) fn with_fronts(tree: &Tree) -> usize {
    let all: Vec<&Edge> = tree.edges.iter().filter(|e| !e.only_hands_on).collect();
    component(tree.files.len(), &all).len()
}

/// The edge without which the largest of those inside this knot is smallest, and how many files that one has.
pub(super) fn best_cut<'a>(tree: &'a Tree, knot: &[usize]) -> Option<(&'a Edge, usize)> {
    let inside: BTreeSet<usize> = knot.iter().copied().collect();
    let mut edges = counted(tree);
    edges.retain(|e| inside.contains(&e.from) && inside.contains(&e.to));
    (0..edges.len())
        .map(|cut| {
            let mut others = edges.clone();
            let edge = others.swap_remove(cut);
            (edge, component(tree.files.len(), &others).len())
        })
        .min_by_key(|(_, size)| *size)
}

/// Handing a name on does not count as knowing it, and a front may name its own.
fn counted(tree: &Tree) -> Vec<&Edge> {
    tree.edges.iter().filter(|e| !e.only_hands_on && !tree.is_from_front(e)).collect()
}

fn component(files: usize, edges: &[&Edge]) -> Vec<usize> {
    let (mut forth, mut back) = (vec![Vec::new(); files], vec![Vec::new(); files]);
    for e in edges {
        forth[e.from].push(e.to);
        back[e.to].push(e.from);
    }
    let mut seen = vec![false; files];
    let mut largest = Vec::new();
    for file in 0..files {
        if !seen[file] {
            let behind = reached(&forth, file);
            let before = reached(&back, file);
            let both: Vec<usize> = behind.intersection(&before).copied().collect();
            both.iter().for_each(|f| seen[*f] = true);
            if both.len() > largest.len() {
                largest = both;
            }
        }
    }
    if largest.len() > 1 { largest } else { Vec::new() }
}

/// All that can be come to from one file, with itself.
fn reached(next: &[Vec<usize>], from: usize) -> BTreeSet<usize> {
    let (mut found, mut left) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = left.pop() {
        left.extend(next[at].iter().copied().filter(|n| found.insert(*n)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::new(files.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect())
    }

    #[test]
    fn the_largest_circle_is_found_with_what_opens_it() {
        let tree = tree(&[
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;\nuse crate::d::D;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::e::E;"),
            ("e.rs", "use crate::d::D;"),
        ]);
        let knot = largest(&tree);
        assert_eq!(knot, [0, 1, 2]);
        let (edge, left) = best_cut(&tree, &knot).expect("a knot has edges");
        assert_eq!((edge.from, edge.to, left), (0, 1, 0));
    }

    #[test]
    fn a_front_that_names_its_own_makes_no_circle() {
        let files = [("a/mod.rs", "mod b;\npub use b::B;\npub struct A;"), ("a/b.rs", "use super::A;")];
        assert_eq!((largest(&tree(&files)).len(), with_fronts(&tree(&files))), (0, 0));
        let files = [("a/mod.rs", "mod b;\npub struct A(b::B);"), ("a/b.rs", "use super::A;")];
        assert_eq!((largest(&tree(&files)).len(), with_fronts(&tree(&files))), (0, 2));
        let files =
            [("a/mod.rs", "use crate::c::C;"), ("a/b.rs", "use super::A;"), ("c.rs", "use crate::a::b::B;")];
        assert_eq!(largest(&tree(&files)).len(), 3);
    }
}
