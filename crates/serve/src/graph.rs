//! The nodes of a topology as one loop serves them.

use crate::nodes::{Node, NodeId};
use crate::origin::server::Server;
use std::rc::Rc;

/// The nodes, by their number in the plan.
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    /// All origins, for what is done to each now and then.
    pub servers: Vec<Rc<Server>>,
}

impl Graph {
    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}
