//! The nodes that one node leads to. A plan may hold ten thousand scenarios with nodes of their own, so the cost of a
//! question about a scenario must grow with what it reaches, not with the plan.

use crate::{Edge, NodeId, Point, Spec};

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// The nodes that a node leads to, itself included, also aside: a server's model, a balancer's spare.
pub(crate) struct Reach {
    /// The nodes, ascending: each comes after all that it leads to.
    ids: Vec<NodeId>,
    /// The lists that they lead to, ascending.
    lists: Vec<u32>,
    /// The number of the first word of the set.
    first: usize,
    /// The set of the nodes, a bit for each.
    words: Vec<u64>,
    /// How many nodes are in the words before each.
    before: Vec<usize>,
}

impl Reach {
    /// What a node leads to; nothing if there is no such node.
    pub(crate) fn new(point: &Point, root: NodeId) -> Reach {
        let count = (root as usize + 1).min(point.nodes.len());
        let mut nodes = vec![0u64; count.div_ceil(WORD)];
        let mut lists = vec![0u64; point.lists.len().div_ceil(WORD)];
        let mut left: Vec<NodeId> = if (root as usize) < count { vec![root] } else { Vec::new() };
        let mut reached_lists = Vec::new();
        while let Some(id) = left.pop() {
            let Some(node) = point.nodes.get(id as usize) else { continue };
            if has(&nodes, id as usize) {
                continue;
            }
            insert(&mut nodes, id as usize);
            left.extend(point.specs.get(node.spec as usize).and_then(Spec::aside));
            match node.to {
                Edge::None => {}
                Edge::Node(next) => left.push(next),
                // A list is walked once, however many balancers share it.
                Edge::List(list) if !has(&lists, list as usize) => {
                    insert(&mut lists, list as usize);
                    reached_lists.push(list);
                    left.extend(point.lists.get(list as usize).into_iter().flatten());
                }
                Edge::List(_) => {}
            }
        }
        reached_lists.sort_unstable();
        Reach::of_words(&nodes, reached_lists)
    }

    fn of_words(nodes: &[u64], lists: Vec<u32>) -> Reach {
        let first = nodes.iter().position(|word| *word != 0).unwrap_or(nodes.len());
        let words = nodes[first..].to_vec();
        let mut ids: Vec<NodeId> = Vec::new();
        let mut before = Vec::with_capacity(words.len());
        for (word, at) in words.iter().zip(first..) {
            before.push(ids.len());
            let mut rest = *word;
            while rest != 0 {
                ids.push((at * WORD) as u32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Reach { ids, lists, first, words, before }
    }

    /// The nodes, ascending: each comes after all that it leads to.
    pub(crate) fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The same, of a reach that is not needed any longer.
    pub(crate) fn into_ids(self) -> Vec<NodeId> {
        self.ids
    }

    /// The lists that they lead to, ascending.
    pub(crate) fn lists(&self) -> &[u32] {
        &self.lists
    }

    /// The index of a node among [`Reach::ids`].
    pub(crate) fn index(&self, id: NodeId) -> Option<usize> {
        let at = (id as usize / WORD).checked_sub(self.first)?;
        let word = self.words.get(at)?;
        let bit = 1u64 << (id as usize % WORD);
        (word & bit != 0).then(|| self.before[at] + (word & (bit - 1)).count_ones() as usize)
    }
}

fn has(words: &[u64], at: usize) -> bool {
    words.get(at / WORD).is_some_and(|word| word >> (at % WORD) & 1 == 1)
}

fn insert(words: &mut [u64], at: usize) {
    if let Some(word) = words.get_mut(at / WORD) {
        *word |= 1 << (at % WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;

    fn point(nodes: Vec<Edge>, lists: Vec<Vec<NodeId>>) -> Point {
        let node = |to| Node { site: 0, spec: 0, to, name: None };
        Point {
            params: Vec::new(),
            places: Vec::new(),
            sites: Vec::new(),
            specs: vec![Spec::Sequence],
            lists,
            nodes: nodes.into_iter().map(node).collect(),
            scenarios: Vec::new(),
            expectations: Vec::new(),
            warnings: Vec::new(),
            fleets: None,
            connected: Default::default(),
        }
    }

    /// Against the edges, followed until nothing is new.
    #[test]
    fn what_is_reached_is_what_edges_lead_to() {
        let mut state = 1u64;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % u64::from(below)) as u32
        };
        let mut lists = Vec::new();
        let edges: Vec<Edge> = (0..400u32)
            .map(|id| match draw(3) {
                0 if id > 0 => Edge::Node(draw(id)),
                1 if id > 0 => {
                    lists.push((0..draw(4)).map(|_| draw(id)).collect());
                    Edge::List(lists.len() as u32 - 1)
                }
                _ => Edge::None,
            })
            .collect();
        let point = point(edges.clone(), lists.clone());
        for root in 0..400 {
            let mut found = vec![root];
            let mut at = 0;
            while let Some(id) = found.get(at) {
                at += 1;
                let next = match edges[*id as usize] {
                    Edge::None => Vec::new(),
                    Edge::Node(next) => vec![next],
                    Edge::List(list) => lists[list as usize].clone(),
                };
                next.into_iter().for_each(|id| {
                    if !found.contains(&id) {
                        found.push(id)
                    }
                });
            }
            found.sort_unstable();
            assert_eq!(Reach::new(&point, root).ids(), found, "{root}");
        }
        assert!(Reach::new(&point, 400).ids().is_empty());
    }

    /// Of ten thousand chains one is looked at, and as much is kept of it as it is long.
    #[test]
    fn other_nodes_cost_nothing() {
        let chain = |at: u32| if at.is_multiple_of(10) { Edge::None } else { Edge::Node(at - 1) };
        let point = point((0..100_000).map(chain).collect(), Vec::new());
        for last in (9..100_000).step_by(10) {
            let reach = Reach::new(&point, last);
            assert_eq!((reach.ids().len(), reach.ids()[0]), (10, last - 9));
            assert!(reach.words.capacity() <= 2 && reach.before.capacity() <= 2);
        }
    }

    /// Against the list of what is set.
    #[test]
    fn an_index_is_the_number_of_nodes_before() {
        for step in [1usize, 3, 63, 64, 65, 200] {
            let set: Vec<u32> = (0..50).map(|i| (500 + i * step) as u32).collect();
            let mut words = vec![0u64; 11_000 / WORD];
            set.iter().for_each(|id| insert(&mut words, *id as usize));
            let reach = Reach::of_words(&words, Vec::new());
            assert_eq!(reach.ids(), set);
            for id in 0..12_000 {
                assert_eq!(reach.index(id), set.iter().position(|other| *other == id), "{id}");
            }
        }
        let nothing = Reach::of_words(&[], Vec::new());
        assert!(nothing.ids().is_empty() && nothing.index(0).is_none());
    }
}
