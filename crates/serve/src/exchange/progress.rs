//! The progress of a request that may continue without its client (`on_cancel` of a `queue`): what the queue needs to
//! know about the attempts behind it, and what they need to know about the client.

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The progress of one attempt at its origin.
#[derive(Default)]
pub(crate) struct Attempt {
    pub now: Cell<Sending>,
    /// Whether it is over: it has a head, or has failed.
    over: Cell<bool>,
}

/// An open attempt; one that is dropped was cancelled.
pub(crate) struct OpenAttempt(Rc<Attempt>);

impl OpenAttempt {
    /// An attempt that has begun.
    pub fn new(attempt: Rc<Attempt>) -> OpenAttempt {
        OpenAttempt(attempt)
    }

    /// Ends the attempt. If it was answered, what was sent still counts until there is a further attempt.
    pub fn ends(self, answered: bool) {
        self.0.over.set(true);
        if !answered {
            self.0.now.set(Sending::Nowhere);
        }
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        if !self.0.over.replace(true) {
            self.0.now.set(Sending::Nowhere);
        }
    }
}

/// The progress of a request that may continue without its client.
#[derive(Default)]
pub(crate) struct Detachable {
    /// Its attempts: several may be open at once.
    attempts: RefCell<SmallVec<[Rc<Attempt>; 2]>>,
    /// The client has gone: nothing may be written to its connection.
    pub is_unwanted: Cell<bool>,
    /// The state of the next such node around.
    outer: Option<Rc<Detachable>>,
}

impl Detachable {
    /// The state of a node inside of another such node.
    pub fn inside(outer: Option<Rc<Detachable>>) -> Detachable {
        Detachable { outer, ..Detachable::default() }
    }

    /// Adds an attempt; finished ones no longer count.
    pub fn begins(&self, sent: &Rc<Attempt>) {
        let mut attempts = self.attempts.borrow_mut();
        attempts.retain(|one| !one.over.get());
        attempts.push(sent.clone());
        if let Some(outer) = &self.outer {
            outer.begins(sent);
        }
    }

    /// How much of the request was sent to an origin, over all attempts.
    pub fn sending(&self) -> Sending {
        self.attempts.borrow().iter().map(|one| one.now.get()).max().unwrap_or_default()
    }

    /// Whether a client still waits for the answer.
    pub fn is_wanted(&self) -> bool {
        !self.is_unwanted.get() && self.outer.as_ref().is_none_or(|outer| outer.is_wanted())
    }
}

/// How much of a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sending {
    /// No origin is involved.
    #[default]
    Nowhere,
    /// A part of it may have been sent.
    Begun,
    /// All of it was sent.
    Whole,
}
