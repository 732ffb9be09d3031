//! Notes about a request for its line in the access log: the times of its parts and the targets that it tried; and,
//! if its history is written as well, each stage with its times.

use super::fields::ResponseValues;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weir_policy::history::StageKind;
use weir_policy::{Kind, Outcome};

/// One of the parallel branches of a request (`hedge`); 0 is the request's own.
type Branch = u32;

/// The notes.
pub(crate) struct Notes {
    /// From the head to the end of the request's body.
    pub request_ns: Cell<Option<u64>>,
    /// Waiting in queues and for full targets, in total.
    pub queue_ns: Cell<u64>,
    /// Until the last attempt had its connection.
    pub connect_ns: Cell<Option<u64>>,
    /// From the last attempt's first byte to the head of its answer.
    pub response_ns: Cell<Option<u64>>,
    pub tried: RefCell<SmallVec<[TriedTarget; 1]>>,
    /// The values of the answer's fields that the log has.
    pub response: RefCell<ResponseValues>,
    /// `None`: no history is written.
    pub stages: Option<RefCell<Stages>>,
}

/// The target of an attempt.
pub(crate) trait Target {
    /// Its name, for logs.
    fn name(&self) -> &str;
}

/// A target that was tried.
pub(crate) struct TriedTarget {
    pub target: Rc<dyn Target>,
    /// Its outcome; `None`: not known yet.
    pub outcome: Option<Outcome>,
}

/// The history of a request.
#[derive(Default)]
pub(crate) struct Stages {
    pub all: Vec<Stage>,
    /// Of each branch but the first: its parent, and whether another was faster.
    pub branches: Vec<(Branch, bool)>,
}

/// A part of a request's time.
#[derive(Clone)]
pub(crate) struct Stage {
    /// The site of its node and the node's own name; `None`: weir itself.
    pub site: Option<(String, String)>,
    pub what: StageKind,
    pub from_ns: u64,
    pub to_ns: u64,
    /// Attempts that had begun by then.
    pub attempt: u32,
    pub branch: Branch,
    /// The attempt, by index.
    pub tried: Option<usize>,
}

impl Stages {
    /// Whether this branch is part of the deciding one.
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
    /// Empty; `traced`: a history is written.
    pub fn new(has_body: bool, traced: bool) -> Notes {
        Notes {
            request_ns: Cell::new((!has_body).then_some(0)),
            queue_ns: Cell::new(0),
            connect_ns: Cell::new(None),
            response_ns: Cell::new(None),
            tried: RefCell::default(),
            response: RefCell::default(),
            stages: traced.then(RefCell::default),
        }
    }

    /// Notes a stage, if a history is written.
    pub fn stage(&self, stage: impl FnOnce() -> Stage) {
        if let Some(stages) = &self.stages {
            stages.borrow_mut().all.push(stage());
        }
    }

    /// A failure of the relayed answer is its target's, unless the client left.
    pub fn failed(&self, kind: Kind) {
        if let Some(TriedTarget { outcome: outcome @ Some(None), .. }) = self.tried.borrow_mut().last_mut() {
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
