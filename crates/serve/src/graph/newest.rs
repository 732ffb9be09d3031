//! The newest graph of a thread, for requests of older ones.

use super::Graph;
use crate::exchange;
use crate::nodes::Id;
use crate::nodes::lb::{Lb, Newest};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

/// Where a thread's graphs find the newest of them.
#[derive(Default)]
pub(crate) struct NewestGraph {
    graph: RefCell<Weak<Graph>>,
    /// Requests that wait for a later one.
    waiting: RefCell<Vec<Waker>>,
}

impl NewestGraph {
    /// Replaces the graph.
    pub fn set(&self, graph: &Rc<Graph>) {
        *self.graph.borrow_mut() = Rc::downgrade(graph);
        self.waiting.borrow_mut().drain(..).for_each(Waker::wake);
    }

    /// The graph; `None`: the thread is about to end.
    pub fn get(&self) -> Option<Rc<Graph>> {
        self.graph.borrow().upgrade()
    }
}

impl Newest for NewestGraph {
    fn balancer(&self, id: Id) -> Option<(Rc<Lb>, Rc<dyn exchange::Graph>)> {
        let graph = self.get()?;
        let lb = graph.lb(id)?.clone();
        Some((lb, graph))
    }

    fn poll_epoch(&self, cx: &mut Context<'_>, epoch: u32) -> Poll<()> {
        if self.get().is_none_or(|graph| graph.blueprint.epoch >= epoch) {
            return Poll::Ready(());
        }
        self.waiting.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }
}
