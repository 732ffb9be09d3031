//! What one thread keeps of a balancer for as long as the balancer lives: it belongs to the balancer's identity and not to a graph,
//! so that a later graph goes on with the same counts and estimates (`operating.md` §1), if policy, weights and targets are as they
//! were. (With others it begins anew today. A reload is to carry over what belongs to each target, and to bring home what is in
//! flight: mail names the epoch, and that of an old one finds nobody.)

use crate::exchange::abort::AbortFlag;
use crate::sync::Permit;
use std::cell::{Cell, RefCell};
use weir_policy::Upstream;
use weir_policy::config::Balance;

/// What the state was made for: it is of use as long as this is the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub balance: Balance,
    pub weights: Vec<f64>,
    /// The identities of the targets.
    pub targets: Vec<u32>,
}

/// The state.
pub(crate) struct LbState {
    shape: Shape,
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
    pub fn new(shape: Shape, upstream: Upstream) -> LbState {
        LbState {
            upstream: RefCell::new(upstream),
            aborts: shape.targets.iter().map(|_| AbortFlag::default()).collect(),
            shape,
            lent: RefCell::default(),
            due_ns: Cell::new(0),
            shown: Cell::new(false),
        }
    }

    /// Whether it is of use to a balancer of this shape; once a target was removed it is not.
    pub fn fits(&self, shape: &Shape) -> bool {
        let upstream = self.upstream.borrow();
        self.shape == *shape && (0u32..).zip(&shape.targets).all(|(index, _)| upstream.roster().exists(index))
    }
}
