//! The nodes of a graph, in chunks: when members of a fleet come and go, the next graph of a thread shares the chunks in which
//! nothing has changed.

use crate::exchange::NodeId;
use crate::nodes::Node;
use crate::sync::discards::{Discards, Slice};
use std::rc::Rc;

/// Nodes per chunk.
pub(super) const CHUNK: usize = 256;

/// The nodes by number.
#[derive(Default)]
pub(crate) struct Nodes {
    chunks: Vec<Rc<Vec<Node>>>,
    /// The last nodes, which are no whole chunk yet.
    open: Vec<Node>,
}

impl Nodes {
    /// A node that has this number.
    #[inline]
    pub fn get(&self, id: NodeId) -> &Node {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// How many there are, those that are added included.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum::<usize>() + self.open.len()
    }

    /// The number of the chunk that is to be added next; `None`: one is under way.
    pub fn next_chunk(&self) -> Option<usize> {
        self.open.is_empty().then_some(self.chunks.len())
    }

    /// Adds the chunk of another graph.
    pub fn share(&mut self, other: &Nodes, chunk: usize) {
        self.chunks.push(other.chunks[chunk].clone());
    }

    /// Adds a node.
    pub fn push(&mut self, node: Node) {
        self.open.push(node);
        if self.open.len() == CHUNK {
            self.seal();
        }
    }

    /// Ends the last chunk: only then its nodes can be read.
    pub fn seal(&mut self) {
        if !self.open.is_empty() {
            self.chunks.push(Rc::new(std::mem::take(&mut self.open)));
        }
    }

    /// Frees them later, as far as no other graph has them.
    pub fn discard(self, discards: &Discards) {
        let left = self.chunks.into_iter().filter_map(|chunk| Rc::try_unwrap(chunk).ok());
        left.chain([self.open]).for_each(|nodes| discards.put(nodes, Slice::Memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: NodeId) -> Nodes {
        let mut nodes = Nodes::default();
        (0..count).for_each(|id| nodes.push(Node::Pass(id)));
        nodes
    }

    #[test]
    fn nodes_are_found_by_number() {
        for count in [0, 1, 255, 256, 257, 1000] {
            let mut nodes = nodes(count);
            assert_eq!(nodes.len(), count as usize);
            nodes.seal();
            assert!((0..count).all(|id| matches!(nodes.get(id), Node::Pass(of) if *of == id)));
            assert_eq!((nodes.iter().count(), nodes.len()), (count as usize, count as usize));
        }
    }

    #[test]
    fn shared_chunks_outlive_their_first_graph() {
        let discards = Discards::default();
        let mut before = nodes(600);
        before.seal();
        let mut now = Nodes::default();
        assert_eq!(now.next_chunk(), Some(0));
        now.share(&before, 0);
        now.push(Node::Nowhere);
        assert_eq!((now.next_chunk(), now.len()), (None, 257));
        now.seal();
        before.discard(&discards);
        assert!(matches!(now.get(255), Node::Pass(255)) && matches!(now.get(256), Node::Nowhere));
    }
}
