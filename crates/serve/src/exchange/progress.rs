//! How far a request is that may go on without its client (`on_cancel` of a `queue`): what the queue wants to know of the
//! attempts behind it, and what they want to know of the client.

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How far one attempt is at its origin.
#[derive(Default)]
pub(crate) struct Attempt {
    pub now: Cell<Sending>,
    /// Whether it is over: it has a head, or has failed.
    over: Cell<bool>,
}

/// An attempt that is open; dropped, it was cancelled.
pub(crate) struct OpenAttempt(Rc<Attempt>);

impl OpenAttempt {
    /// One that has begun.
    pub fn new(attempt: Rc<Attempt>) -> OpenAttempt {
        OpenAttempt(attempt)
    }

    /// It is over. Where there is an answer what was sent counts on, until there is a further attempt.
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

/// How far a request is that may go on without its client.
#[derive(Default)]
pub(crate) struct Detachable {
    /// Its attempts: several may be open at once.
    attempts: RefCell<SmallVec<[Rc<Attempt>; 2]>>,
    /// Nobody waits for the answer any more: the client's connection is not ours to write to.
    pub is_unwanted: Cell<bool>,
    /// The same of another such node around.
    outer: Option<Rc<Detachable>>,
}

impl Detachable {
    /// Of a node inside of another such one.
    pub fn inside(outer: Option<Rc<Detachable>>) -> Detachable {
        Detachable { outer, ..Detachable::default() }
    }

    /// One more attempt; those that are over count no longer.
    pub fn begins(&self, sent: &Rc<Attempt>) {
        let mut attempts = self.attempts.borrow_mut();
        attempts.retain(|one| !one.over.get());
        attempts.push(sent.clone());
        if let Some(outer) = &self.outer {
            outer.begins(sent);
        }
    }

    /// Whether an origin is being sent the request, and whether one was sent all of it.
    pub fn sending(&self) -> Sending {
        self.attempts.borrow().iter().map(|one| one.now.get()).max().unwrap_or_default()
    }

    /// Whether somebody still waits for the answer.
    pub fn is_wanted(&self) -> bool {
        !self.is_unwanted.get() && self.outer.as_ref().is_none_or(|outer| outer.is_wanted())
    }
}

/// How far the sending of a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sending {
    /// No origin is involved.
    #[default]
    Nowhere,
    /// A part of it may be under way.
    Begun,
    /// All of it was sent.
    Whole,
}
