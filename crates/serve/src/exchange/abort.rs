//! A flag that ends the requests of a removed target after `drain_timeout`, which its requests carry along: of a
//! server that two targets share, only the requests of the removed target end. A graph that is to end has a flag too.

use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;

/// Whether the requests in flight at a target of one loop's balancer end now.
pub(crate) type AbortFlag = Rc<Cell<bool>>;

/// The flags of a request's graph and of its targets: one for each balancer on its path.
#[derive(Clone, Default)]
pub(crate) struct Abort {
    graph: Option<AbortFlag>,
    targets: SmallVec<[AbortFlag; 2]>,
}

impl Abort {
    /// The flags of a request in this graph.
    pub fn new(graph: AbortFlag) -> Abort {
        Abort { graph: Some(graph), ..Abort::default() }
    }

    /// Adds the target of one more balancer.
    pub fn push(&mut self, target: AbortFlag) {
        self.targets.push(target);
    }

    /// Removes the flag of the graph: the request passes no more nodes.
    pub fn leave_graph(&mut self) {
        self.graph = None;
    }

    /// Whether no balancer is on its path.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether one of the flags ends the request.
    pub fn is_set(&self) -> bool {
        self.targets.iter().chain(&self.graph).any(|flag| flag.get())
    }
}
