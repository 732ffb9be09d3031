//! A line of requests that wait on one loop, in order of arrival: whoever is first asks again when told to.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};

/// The line.
#[derive(Clone, Default)]
pub(crate) struct Line(Rc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: RefCell<VecDeque<(u64, Option<Waker>)>>,
    next: Cell<u64>,
}

/// A place in it; dropped, the next one is first.
pub(crate) struct Place {
    line: Line,
    number: u64,
}

impl Line {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.waiting.borrow().is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.waiting.borrow().len()
    }

    /// The last place.
    pub fn join(&self) -> Place {
        let number = self.0.next.get();
        self.0.next.set(number + 1);
        self.0.waiting.borrow_mut().push_back((number, None));
        Place { line: self.clone(), number }
    }

    /// The first one looks again.
    pub fn wake_first(&self) {
        let waker = self.0.waiting.borrow_mut().front_mut().and_then(|(_, waker)| waker.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Place {
    /// Whether nobody is before it; the task is woken when that changes, or by [`Line::wake_first`].
    pub fn is_first(&self, cx: &mut Context<'_>) -> bool {
        let mut waiting = self.line.0.waiting.borrow_mut();
        let first = waiting.front().is_some_and(|(n, _)| *n == self.number);
        // Numbers ascend, so a place is found without a walk.
        if let Ok(at) = waiting.binary_search_by_key(&self.number, |(n, _)| *n) {
            waiting[at].1 = Some(cx.waker().clone());
        }
        first
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.line.0.waiting.borrow_mut();
        if let Ok(at) = waiting.binary_search_by_key(&self.number, |(n, _)| *n) {
            waiting.remove(at);
        }
        drop(waiting);
        self.line.wake_first();
    }
}
