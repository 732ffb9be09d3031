//! What a request carries through the nodes: draws, exclusions, edits, and the nodes around it that matter.

use super::Graph;
use super::abort::Abort;
use super::hold::Attempts;
use super::notes::Branch;
use super::progress::{Attempt, Detachable, OpenAttempt, Sending};
use crate::sync::process::Process;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weir_http1::Edits;
use weir_model::way::Way;
use weir_policy::TargetId;
use weir_policy::retry::BalancerId;
use weir_stats::Key;

/// An attempt of a `hedge` that is open at a target.
pub(crate) struct OpenPick {
    /// The number of the attempt.
    pub attempt: u32,
    pub balancer: BalancerId,
    pub target: TargetId,
}

/// The attempts of a `hedge` that are open.
pub(crate) type Open = Rc<RefCell<Vec<OpenPick>>>;

/// A graph that a path went on in after it had begun in another.
pub(crate) struct NewerGraph {
    pub graph: Rc<dyn Graph>,
    is_just_entered: Cell<bool>,
}

/// What a request carries through the nodes; cloned where its path branches.
#[derive(Clone)]
pub(crate) struct RequestContext {
    /// The draws of this path.
    pub way: Way,
    /// The targets that were tried, with the rule of the `retry` around.
    pub tried: Attempts,
    /// The attempts of the `hedge` around, and the number of this one.
    pub open: Option<(Open, u32)>,
    /// The targets on its path.
    pub abort: Abort,
    /// Changes of the request's head by `rewrite`.
    pub edits: Option<Rc<Edits>>,
    /// The factor of the work behind (`warmup`, `faulty` in mode `slow`).
    pub factor: f64,
    /// Whether no retry or hedge around has begun a further attempt: only first attempts earn budget.
    pub first: bool,
    /// Bytes of the request's body that are kept for further attempts.
    pub keep: usize,
    /// For a health check: its cost for a server in place of work, ns.
    pub check: Option<u64>,
    /// The process around it, which a crash ends.
    pub process: Option<Rc<Process>>,
    /// The state shared with the `queue` around, if its requests continue after their client has gone.
    pub detachable: Option<Rc<Detachable>>,
    /// Which of several parallel branches this is.
    pub branch: Branch,
    /// The graph that this path goes on in, if it has left the one that its request began in: its targets there were
    /// all removed before it picked one.
    pub newer: Option<Rc<NewerGraph>>,
    /// The progress of this path's attempt.
    sent: Option<Rc<Attempt>>,
}

impl RequestContext {
    /// The context of a request before its first node.
    pub fn new(request: Key) -> RequestContext {
        RequestContext {
            way: Way::new(request),
            tried: None,
            open: None,
            abort: Abort::default(),
            edits: None,
            factor: 1.0,
            first: true,
            keep: 0,
            check: None,
            process: None,
            detachable: None,
            branch: 0,
            newer: None,
            sent: None,
        }
    }

    /// A second context on the same path; the two share their draws.
    pub fn beside(&mut self) -> RequestContext {
        let way = self.way.shared();
        self.with_way(way)
    }

    /// The same context with other draws.
    pub fn with_way(&self, way: Way) -> RequestContext {
        RequestContext { way, ..self.clone() }
    }

    /// Whether the pick that has just ended led to a newer graph; true once.
    #[inline]
    pub fn moves(&self) -> bool {
        self.newer.as_ref().is_some_and(|newer| newer.is_just_entered.take())
    }

    /// Goes on in a newer graph from here.
    pub fn move_to(&mut self, graph: Rc<dyn Graph>) {
        self.newer = Some(Rc::new(NewerGraph { graph, is_just_entered: Cell::new(true) }));
    }

    /// The duration of work, scaled by warmup and slowness, ns.
    pub fn scaled(&self, ns: u64) -> u64 {
        if self.factor == 1.0 { ns } else { (ns as f64 * self.factor + 0.5) as u64 }
    }

    /// Begins an attempt at an origin; `None`: no `queue` follows its progress.
    pub fn begins(&mut self) -> Option<OpenAttempt> {
        let detachable = self.detachable.as_ref()?;
        let sent = Rc::new(Attempt::default());
        detachable.begins(&sent);
        self.sent = Some(sent.clone());
        Some(OpenAttempt::new(sent))
    }

    /// Records how much of the request was sent.
    pub fn sending(&self, now: Sending) {
        if let Some(sent) = &self.sent {
            sent.now.set(now);
        }
    }

    /// Whether the client still waits for the answer of this path.
    pub fn is_wanted(&self) -> bool {
        self.detachable.as_ref().is_none_or(|detachable| detachable.is_wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_attempts_are_open_at_once() {
        let outer = Rc::new(Detachable::default());
        let detachable = Rc::new(Detachable::inside(Some(outer.clone())));
        let mut first =
            RequestContext { detachable: Some(detachable.clone()), ..RequestContext::new(Key::new(1)) };
        let mut second = first.clone();
        let one = first.begins().unwrap();
        first.sending(Sending::Whole);
        let two = second.begins().unwrap();
        second.sending(Sending::Begun);
        assert_eq!((detachable.sending(), outer.sending()), (Sending::Whole, Sending::Whole));
        drop(one);
        assert_eq!((detachable.sending(), outer.sending()), (Sending::Begun, Sending::Begun));
        second.sending(Sending::Whole);
        two.ends(true);
        assert_eq!(detachable.sending(), Sending::Whole, "its answer is on its way");
        let three = second.begins().unwrap();
        second.sending(Sending::Begun);
        assert_eq!(detachable.sending(), Sending::Begun, "that answer was not wanted");
        three.ends(false);
        assert_eq!(detachable.sending(), Sending::Nowhere);
    }
}
