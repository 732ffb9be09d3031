//! Layers by the longest way: a box is to the right of all boxes that lead to it.

use super::fold::{Boxed, FoldedGraph, thousands};
use std::collections::BTreeMap;

/// Boxes with their layers; every edge leads to a later layer.
#[derive(Clone, Debug)]
pub(super) struct Layered {
    pub boxes: Vec<Boxed>,
    /// By box.
    pub layer: Vec<usize>,
    /// (from, to, whether only as a fallback).
    pub edges: Vec<(usize, usize, bool)>,
}

/// The most boxes in a layer, as long as some of them differ only by their place in the text.
const MOST: usize = 40;

/// The layers of what was folded.
pub(super) fn layered(folded: FoldedGraph) -> Layered {
    let edges = without_circles(&folded);
    let layer = longest(folded.boxes.len(), &edges);
    Layered { boxes: folded.boxes, layer, edges }
}

/// For each box: those that lead to it, and those that it leads to.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbours {
    before: Vec<(usize, bool)>,
    behind: Vec<(usize, bool)>,
}

/// Where very many of one kind have the same neighbours, those become one box too.
pub(super) fn alike(folded: FoldedGraph) -> FoldedGraph {
    let FoldedGraph { boxes, edges } = folded;
    let mut neighbours = vec![Neighbours::default(); boxes.len()];
    for (from, to, aside) in &edges {
        neighbours[*from].behind.push((*to, *aside));
        neighbours[*to].before.push((*from, *aside));
    }
    let mut same: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, neighbours) in neighbours.into_iter().enumerate() {
        same.entry((&boxes[at].what, neighbours)).or_default().push(at);
    }
    let mut into: Vec<usize> = (0..boxes.len()).collect();
    for all in same.into_values().filter(|all| all.len() > MOST) {
        all.iter().for_each(|at| into[*at] = all[0]);
    }
    let mut number = BTreeMap::new();
    let mut merged: Vec<Boxed> = Vec::new();
    for (at, of) in boxes.into_iter().enumerate() {
        match number.get(&into[at]).and_then(|number: &usize| merged.get_mut(*number)) {
            None => {
                number.insert(at, merged.len());
                merged.push(of);
            }
            Some(one) => {
                one.nodes.extend(of.nodes);
                one.behind.iter_mut().zip(of.behind).for_each(|(one, of)| one.extend(of));
                let first = one.name.split(" … ").next().unwrap_or_default();
                one.name = format!("{first} … {}", of.name);
                one.kind = format!("{} × {}", one.what, thousands(one.nodes.len()));
                one.title = format!("{}, made in many places", one.kind);
            }
        }
    }
    let at = |old: usize| number.get(&into[old]).copied();
    let mut edges: Vec<_> =
        edges.into_iter().filter_map(|(from, to, aside)| Some((at(from)?, at(to)?, aside))).collect();
    edges.sort_unstable();
    edges.dedup();
    FoldedGraph { boxes: merged, edges }
}

/// Folding may close a circle, if nodes of one site lead to each other: edges that lead back are reversed.
fn without_circles(folded: &FoldedGraph) -> Vec<(usize, usize, bool)> {
    let count = folded.boxes.len();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); count];
    folded.edges.iter().for_each(|(from, to, _)| behind[*from].push(*to));
    // In the order in which a walk leaves them, the last first, every edge leads on, but for those of circles.
    let (mut rank, mut next_rank) = (vec![0; count], count);
    let mut state = vec![0u8; count];
    for root in 0..count {
        let mut stack = vec![(root, 0)];
        while let Some((at, next)) = stack.pop() {
            if next == 0 && std::mem::replace(&mut state[at], 1) != 0 {
                continue;
            }
            match behind[at].get(next) {
                Some(to) => {
                    stack.push((at, next + 1));
                    if state[*to] == 0 {
                        stack.push((*to, 0));
                    }
                }
                None => {
                    next_rank -= 1;
                    rank[at] = next_rank;
                }
            }
        }
    }
    let mut edges: Vec<(usize, usize, bool)> = folded
        .edges
        .iter()
        .map(|edge| {
            let (from, to, aside) = *edge;
            if rank[from] < rank[to] { (from, to, aside) } else { (to, from, aside) }
        })
        .collect();
    edges.sort_unstable_by_key(|(from, to, aside)| (rank[*from], rank[*to], *aside));
    edges.dedup_by_key(|(from, to, _)| (*from, *to));
    edges
}

/// The longest way to each; edges come in an order in which all that lead to a box come before those that it leads to.
fn longest(count: usize, edges: &[(usize, usize, bool)]) -> Vec<usize> {
    let mut layer = vec![0; count];
    for (from, to, _) in edges {
        layer[*to] = layer[*to].max(layer[*from] + 1);
    }
    layer
}
