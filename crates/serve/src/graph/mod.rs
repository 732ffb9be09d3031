//! The nodes of a topology as one loop serves them.

pub(crate) mod builder;
pub(crate) mod ends;
pub(crate) mod state;

use crate::graph::ends::End;
use crate::nodes::{Node, NodeId};
use crate::upstream::server::Server;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The nodes, by their number in the plan.
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    /// All origins, for what is done to each now and then.
    pub servers: Vec<Rc<Server>>,
    /// Where ways end that lead through no balancer's targets: from listeners, and of nodes that stand in.
    pub entries: Vec<End>,
}

impl Graph {
    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Servers to which some way leads through targets that were not removed.
    pub fn led_to(&self) -> BTreeSet<NodeId> {
        let (mut servers, mut lbs) = (BTreeSet::new(), BTreeSet::new());
        let mut open = self.entries.clone();
        while let Some(end) = open.pop() {
            match end {
                End::Server(id) => {
                    servers.insert(id);
                }
                End::Lb(id) => {
                    if let (Node::Lb(lb), true) = (self.node(id), lbs.insert(id)) {
                        open.extend(lb.ends_of_targets());
                    }
                }
                End::Own => {}
            }
        }
        servers
    }
}
