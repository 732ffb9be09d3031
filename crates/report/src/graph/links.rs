//! How many nodes of a box lead to how many of the next: counted, and drawn as a bundle of lines.

use super::fold::FoldedGraph;
use std::collections::BTreeMap;
use weir_plan::{Edge, Point, Spec};

/// What leads from one box to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Nodes of both boxes.
    pub from: usize,
    pub to: usize,
    /// The number of nodes of `to` that a node of `from` leads to: least and most.
    pub least: usize,
    pub most: usize,
    /// The most nodes of `from` that lead to one node of `to`.
    pub shared: usize,
}

/// Where lines of a bundle begin and end, from the middle, px.
const APART: f64 = 11.0;
const FORK: f64 = 4.0;

impl Link {
    /// The lines of the bundle: those to shared nodes cross, those to a node's own do not.
    pub fn lanes(&self) -> Vec<(f64, f64)> {
        let three = [-APART, 0.0, APART];
        let all = |from: &[f64]| from.iter().flat_map(|a| three.map(|b| (*a, b))).collect();
        match (self.from > 1, self.to > 1) {
            (false, false) => Vec::new(),
            (false, true) => all(&[0.0]),
            (true, false) => three.map(|a| (a, 0.0)).into(),
            (true, true) if self.shared > 1 => all(&three),
            (true, true) if self.most > 1 => {
                three.iter().flat_map(|a| [(*a, a - FORK), (*a, a + FORK)]).collect()
            }
            (true, true) => three.map(|a| (a, a)).into(),
        }
    }
}

/// The links between boxes.
pub(super) fn links(point: &Point, folded: &FoldedGraph) -> BTreeMap<(usize, usize), Link> {
    let mut box_of = vec![usize::MAX; point.nodes.len()];
    for (number, of) in folded.boxes.iter().enumerate() {
        of.nodes.iter().for_each(|node| box_of[*node as usize] = number);
    }
    let mut links: BTreeMap<(usize, usize), Link> = BTreeMap::new();
    // (from, to, the node there, how many lead to it): a list is looked at once, however many lead to it.
    let mut hits: Vec<(usize, usize, u32, usize)> = Vec::new();
    for (number, of) in folded.boxes.iter().enumerate() {
        let mut by_list: BTreeMap<u32, usize> = BTreeMap::new();
        for id in of.last() {
            let node = &point.nodes[*id as usize];
            let spare = if let Spec::Lb(lb) = &point.specs[node.spec as usize] { lb.spare } else { None };
            let next = if let Edge::Node(next) = node.to { Some(next) } else { None };
            for next in [spare, next].into_iter().flatten() {
                let to = box_of[next as usize];
                hits.push((number, to, next, 1));
                count(&mut links, (number, to), 1);
            }
            if let Edge::List(list) = node.to {
                *by_list.entry(list).or_default() += 1;
            }
        }
        for (list, users) in by_list {
            let mut to: BTreeMap<usize, usize> = BTreeMap::new();
            for node in &point.lists[list as usize] {
                let at = box_of[*node as usize];
                *to.entry(at).or_default() += 1;
                hits.push((number, at, *node, users));
            }
            to.into_iter().for_each(|(to, n)| count(&mut links, (number, to), n));
        }
    }
    hits.sort_unstable();
    for same in hits.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
        let shared = same.iter().map(|(.., users)| users).sum();
        if let Some(link) = links.get_mut(&(same[0].0, same[0].1)) {
            link.shared = link.shared.max(shared);
        }
    }
    for ((from, to), link) in &mut links {
        let nodes = |at: usize| folded.boxes.get(at).map_or(0, |of| of.nodes.len());
        (link.from, link.to) = (nodes(*from), nodes(*to));
    }
    links.retain(|(from, to), _| from != to && *to != usize::MAX);
    links
}

/// The number of nodes here that a node there leads to.
fn count(links: &mut BTreeMap<(usize, usize), Link>, at: (usize, usize), n: usize) {
    let link = links.entry(at).or_insert(Link { least: n, most: n, ..Link::default() });
    (link.least, link.most) = (link.least.min(n), link.most.max(n));
}
