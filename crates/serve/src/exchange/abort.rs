//! What ends the requests of a target that was removed, `drain_timeout` later: a flag of the target, which its requests take
//! along. So of a server that two targets share only those end that came by the one that is gone. A graph that is to end has one too.

use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;

/// Whether what is in flight at a target of one loop's balancer ends now.
pub(crate) type AbortFlag = Rc<Cell<bool>>;

/// The graph that a request is in, and the targets that it was sent by: one for each balancer on its way.
#[derive(Clone, Default)]
pub(crate) struct Abort {
    graph: Option<AbortFlag>,
    targets: SmallVec<[AbortFlag; 2]>,
}

impl Abort {
    /// Of a request in this graph.
    pub fn new(graph: AbortFlag) -> Abort {
        Abort { graph: Some(graph), ..Abort::default() }
    }

    /// One balancer more.
    pub fn push(&mut self, target: AbortFlag) {
        self.targets.push(target);
    }

    /// It goes through no more nodes.
    pub fn leave_graph(&mut self) {
        self.graph = None;
    }

    /// Whether no balancer is on its way.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether the request ends, since one of them is gone.
    pub fn is_set(&self) -> bool {
        self.targets.iter().chain(&self.graph).any(|flag| flag.get())
    }
}
