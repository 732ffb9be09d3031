//! What becomes of a request whose balancer has lost every target of its graph to a reload: it goes to a target that
//! the newest graph has behind the balancer of the same identity (`docs/spec/operating.md#reload`).
//!
//! The graphs of a thread share a balancer's state, so the pick itself is the same; only the node behind the target
//! is the newest graph's.

use super::Lb;
use crate::exchange::Graph;
use crate::nodes::Id;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The newest graph of a thread.
pub(crate) trait Newest {
    /// Its balancer of this identity, and the graph itself; `None`: it has no such balancer.
    fn balancer(&self, id: Id) -> Option<(Rc<Lb>, Rc<dyn Graph>)>;

    /// Ready once it is of this epoch or a later one.
    fn poll_epoch(&self, cx: &mut Context<'_>, epoch: u32) -> Poll<()>;
}
