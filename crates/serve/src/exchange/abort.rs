//! What ends the requests of a target that was removed, `drain_timeout` later: a flag of the target, which its requests take
//! along. So of a server that two targets share only those end that came by the one that is gone.

use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;

/// Whether what is in flight at a target of one loop's balancer ends now.
pub(crate) type AbortFlag = Rc<Cell<bool>>;

/// The targets that a request was sent by: one for each balancer on its way.
#[derive(Clone, Default)]
pub(crate) struct Abort(SmallVec<[AbortFlag; 2]>);

impl Abort {
    /// One balancer more.
    pub fn push(&mut self, target: &AbortFlag) {
        self.0.push(target.clone());
    }

    /// Whether no balancer is on its way.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the request ends, since one of them is gone.
    pub fn is_set(&self) -> bool {
        self.0.iter().any(|flag| flag.get())
    }
}
