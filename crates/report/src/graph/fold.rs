//! Nodes become boxes: those of one site, which the same line of the file has made, are one box with their number.

use crate::number::group_digits;
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::{Edge, NodeId, Point, Spec};

/// The nodes of a box.
#[derive(Clone, Debug, Default)]
pub(super) struct Boxed {
    pub nodes: Vec<NodeId>,
    /// Its name.
    pub name: String,
    /// In a folded chain: what the nodes lead to, one by one, step by step.
    pub behind: Vec<Vec<NodeId>>,
    /// What kind of node it is; of a chain, what kinds.
    pub what: String,
    /// The second line: what it is, and how many.
    pub kind: String,
    /// Its tooltip.
    pub title: String,
    /// The lines below the name where chains are folded, instead of the second one.
    pub lines: Option<Vec<String>>,
}

impl Boxed {
    /// The nodes that lead out of it.
    pub fn last(&self) -> &[NodeId] {
        self.behind.last().unwrap_or(&self.nodes)
    }
}

/// Boxes, and which leads to which: by index, each edge once.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldedGraph {
    pub boxes: Vec<Boxed>,
    /// (from, to, whether only as a fallback).
    pub edges: Vec<(usize, usize, bool)>,
}

/// Folds what these nodes lead to. Boxes come in the order in which a walk from the roots meets them.
pub(super) fn fold(point: &Point, roots: &[NodeId]) -> FoldedGraph {
    let mut walk =
        Walk { point, box_of_site: BTreeMap::new(), lists: BTreeSet::new(), folded: FoldedGraph::default() };
    let mut seen = vec![false; point.nodes.len()];
    let mut edges = BTreeSet::new();
    // Breadth first: the next node is taken from the front.
    let mut open: std::collections::VecDeque<NodeId> = roots.iter().copied().collect();
    while let Some(id) = open.pop_front() {
        if (id as usize) >= seen.len() || std::mem::replace(&mut seen[id as usize], true) {
            continue;
        }
        let from = walk.box_of(id);
        walk.folded.boxes[from].nodes.push(id);
        for (next, aside) in walk.behind(from, id) {
            let to = walk.box_of(next);
            if from != to {
                edges.insert((from, to, aside));
            }
            open.push_back(next);
        }
    }
    let mut folded = walk.folded;
    folded.edges = edges.into_iter().collect();
    for of in &mut folded.boxes {
        say(point, of);
    }
    folded
}

struct Walk<'a> {
    point: &'a Point,
    box_of_site: BTreeMap<u32, usize>,
    /// Lists that a box was seen to lead to: many routers may have one.
    lists: BTreeSet<(usize, u32)>,
    folded: FoldedGraph,
}

impl Walk<'_> {
    fn box_of(&mut self, id: NodeId) -> usize {
        let site = self.point.nodes[id as usize].site;
        *self.box_of_site.entry(site).or_insert_with(|| {
            self.folded.boxes.push(Boxed::default());
            self.folded.boxes.len() - 1
        })
    }

    /// The nodes that a node leads to; the model inside a server is not drawn.
    fn behind(&mut self, from: usize, id: NodeId) -> Vec<(NodeId, bool)> {
        let node = &self.point.nodes[id as usize];
        let mut all = match node.to {
            Edge::None => Vec::new(),
            Edge::Node(next) => vec![(next, false)],
            Edge::List(list) if self.lists.insert((from, list)) => {
                self.point.lists[list as usize].iter().map(|next| (*next, false)).collect()
            }
            Edge::List(_) => Vec::new(),
        };
        if let Spec::Lb(lb) = &self.point.specs[node.spec as usize] {
            all.extend(lb.spare.map(|spare| (spare, true)));
        }
        all
    }
}

/// The text of a box: the common name of its nodes, else the first and the last name, else only their kind.
fn say(point: &Point, of: &mut Boxed) {
    of.nodes.sort_unstable();
    let Some(first) = of.nodes.first().map(|id| &point.nodes[*id as usize]) else { return };
    let spec = &point.specs[first.spec as usize];
    let name = |id: &NodeId| point.nodes[*id as usize].name.as_deref();
    let names = (of.nodes.first().and_then(name), of.nodes.last().and_then(name));
    let many = if of.nodes.len() > 1 { format!(" × {}", thousands(of.nodes.len())) } else { String::new() };
    let kind = spec.kind();
    kind.clone_into(&mut of.what);
    (of.name, of.kind) = match (names, spec) {
        ((Some(name), _), Spec::Listen(listen)) if of.nodes.len() == 1 => {
            (name.to_owned(), listen.addr.clone())
        }
        ((Some(one), Some(other)), _) if one == other => (one.to_owned(), format!("{kind}{many}")),
        ((Some(one), Some(other)), _) => (format!("{one} … {other}"), format!("{kind}{many}")),
        _ => (format!("{kind}{many}"), String::new()),
    };
    let site = point.sites.get(first.site as usize);
    of.title = site.map_or(String::new(), |site| format!("{} ({})", site.label, site.span)) + &many;
}

/// 12345 as 12,345.
pub(super) fn thousands(n: usize) -> String {
    group_digits(n as u64, ',')
}
