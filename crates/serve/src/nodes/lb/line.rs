//! Requests of one loop that wait at a balancer while all its targets are full. Tickets are the process's: a freed place
//! goes to the lowest one of all loops.

use super::Lb;
use crate::event_loop::Loop;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The line.
#[derive(Default)]
pub(crate) struct Line {
    /// In order of their tickets.
    waiting: RefCell<VecDeque<Waiting>>,
}

struct Waiting {
    ticket: u64,
    waker: Option<Waker>,
    /// Whether there may be room since it asked last.
    may_ask: bool,
}

/// A place in the line; dropped, the next one may ask.
pub(crate) struct Place {
    lb: Rc<Lb>,
    lp: Rc<Loop>,
    ticket: u64,
}

impl Line {
    /// The last place; `None` where too many wait.
    pub fn join(lp: &Rc<Loop>, lb: &Rc<Lb>, most: u64) -> Option<Place> {
        let ticket = lb.common.join(most)?;
        let mut waiting = lb.line.waiting.borrow_mut();
        waiting.push_back(Waiting { ticket, waker: None, may_ask: true });
        if waiting.len() == 1 {
            lb.common.set_first(lp.number, Some(ticket));
        }
        Some(Place { lb: lb.clone(), lp: lp.clone(), ticket })
    }

    /// The first one of this loop asks again.
    pub fn wake_first(&self) {
        let waker = self.waiting.borrow_mut().front_mut().and_then(|first| {
            first.may_ask = true;
            first.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Place {
    /// Ready when nobody is before it and there may be room.
    pub fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lb.line.waiting.borrow_mut();
        let Some(first) = waiting.front_mut() else { return Poll::Ready(()) };
        if first.ticket == self.ticket && first.may_ask {
            match self.lb.common.lowest() {
                Some((lowest, _)) if lowest < self.ticket => {
                    // It is somebody else's turn, who may not have been told.
                    first.may_ask = false;
                    first.waker = Some(cx.waker().clone());
                    drop(waiting);
                    self.lb.room(&self.lp);
                    return Poll::Pending;
                }
                _ => {
                    first.may_ask = false;
                    return Poll::Ready(());
                }
            }
        }
        // Tickets ascend, so a place is found without a walk.
        if let Ok(at) = waiting.binary_search_by_key(&self.ticket, |w| w.ticket) {
            waiting[at].waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.lb.line.waiting.borrow_mut();
        if let Ok(at) = waiting.binary_search_by_key(&self.ticket, |w| w.ticket) {
            waiting.remove(at);
        }
        self.lb.common.set_first(self.lp.number, waiting.front().map(|w| w.ticket));
        drop(waiting);
        self.lb.common.quit();
        self.lb.room(&self.lp);
    }
}
