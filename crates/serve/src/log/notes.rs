//! What is noted of a request for its line in the access log: how long its parts took and whom it tried; and, where its history
//! is written as well, each stage with its instants.

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weir_policy::history::What;
use weir_policy::{Kind, Outcome};

/// A node of the plan.
type NodeId = u32;

/// One of several ways that a request takes at once (`hedge`); 0 is the request's own.
type Branch = u32;

/// The notes.
pub(crate) struct Notes {
    /// From the head to the end of the request's body.
    pub request_ns: Cell<Option<u64>>,
    /// Waiting in queues and for full targets, in all.
    pub queue_ns: Cell<u64>,
    /// Until the last attempt had its connection.
    pub connect_ns: Cell<Option<u64>>,
    /// From the last attempt's first byte to the head of its answer.
    pub response_ns: Cell<Option<u64>>,
    pub tried: RefCell<SmallVec<[Tried; 1]>>,
    /// `None`: its history is not written.
    pub stages: Option<RefCell<Stages>>,
}

/// Who is tried.
pub(crate) trait Target {
    /// Its name, for logs.
    fn name(&self) -> &str;
}

/// A target that was tried.
pub(crate) struct Tried {
    pub target: Rc<dyn Target>,
    /// How it came back; `None`: it has not.
    pub outcome: Option<Outcome>,
}

/// The history of a request.
#[derive(Default)]
pub(crate) struct Stages {
    pub all: Vec<Stage>,
    /// Of each branch but the first: whose part it is, and whether another was faster.
    pub branches: Vec<(Branch, bool)>,
}

/// A part of a request's time.
#[derive(Clone)]
pub(crate) struct Stage {
    /// Where it was; `None`: in weir itself.
    pub node: Option<NodeId>,
    pub what: What,
    pub from_ns: u64,
    pub to_ns: u64,
    /// Attempts that had begun by then.
    pub attempt: u32,
    pub branch: Branch,
    /// Which of those that were tried.
    pub tried: Option<usize>,
}

impl Stages {
    /// Whether this branch is part of the way that decided.
    pub fn counts(&self, mut branch: Branch) -> bool {
        while let Some((parent, lost)) = (branch as usize).checked_sub(1).and_then(|at| self.branches.get(at))
        {
            if *lost {
                return false;
            }
            branch = *parent;
        }
        true
    }
}

impl Notes {
    /// With nothing yet; `traced`: its history is written.
    pub fn new(has_body: bool, traced: bool) -> Notes {
        Notes {
            request_ns: Cell::new((!has_body).then_some(0)),
            queue_ns: Cell::new(0),
            connect_ns: Cell::new(None),
            response_ns: Cell::new(None),
            tried: RefCell::default(),
            stages: traced.then(RefCell::default),
        }
    }

    /// Notes a stage, where the history is written.
    pub fn stage(&self, stage: impl FnOnce() -> Stage) {
        if let Some(stages) = &self.stages {
            stages.borrow_mut().all.push(stage());
        }
    }

    /// What went wrong with the answer that was passed on is its target's, unless the client left.
    pub fn failed(&self, kind: Kind) {
        if let Some(Tried { outcome: outcome @ Some(None), .. }) = self.tried.borrow_mut().last_mut() {
            *outcome = Some(Some(kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lost_counts_no_more_with_all_that_is_inside() {
        let stages =
            Stages { all: Vec::new(), branches: vec![(0, false), (0, true), (2, false), (1, false)] };
        let counts: Vec<bool> = (0..6).map(|branch| stages.counts(branch)).collect();
        assert_eq!(counts, [true, true, false, false, true, true]);
    }
}
