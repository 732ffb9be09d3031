//! What one thread keeps of a balancer for as long as the balancer lives: it belongs to the balancer's identity and not to a graph,
//! so that a later graph goes on with the same counts and estimates (`operating.md` §1).

use crate::exchange::abort::AbortFlag;
use crate::sync::Permit;
use std::cell::{Cell, RefCell};
use weir_policy::Upstream;

/// The state.
pub(crate) struct LbState {
    /// The policy and what of its surroundings is the thread's.
    pub upstream: RefCell<Upstream>,
    /// By target: whether what is in flight there ends, since it was removed.
    pub aborts: Box<[AbortFlag]>,
    /// Permits of requests of other loops.
    pub lent: RefCell<Vec<(u32, Permit)>>,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
    /// Whether the policy was told who is being tried.
    pub shown: Cell<bool>,
}

impl LbState {
    /// Nothing was picked yet.
    pub fn new(upstream: Upstream, targets: usize) -> LbState {
        LbState {
            upstream: RefCell::new(upstream),
            aborts: (0..targets).map(|_| AbortFlag::default()).collect(),
            lent: RefCell::default(),
            due_ns: Cell::new(0),
            shown: Cell::new(false),
        }
    }
}
