//! `lb.*(targets, ...)`: picks a target by the policy that the simulator runs, and counts the request there to its end.
//!
//! Counts, cursors and estimates are the loop's. Requests that find all targets full wait here in order of arrival: the
//! first in the line asks again whenever a request comes back.

use super::{NodeId, Way};
use crate::event_loop::Loop;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::line::Line;
use crate::timers::has_ended;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_policy::config::OnEmpty;
use weir_policy::{Ask, Kind, Outcome, Picked as Choice, Release, Ticket, Upstream};
use weir_topology::plan::KeySource;

/// The node.
pub(crate) struct Lb {
    /// Its number among the nodes.
    pub id: NodeId,
    /// The policy and what stands around it.
    pub upstream: RefCell<Upstream>,
    /// What is behind it.
    pub targets: Vec<NodeId>,
    /// What is hashed.
    pub key: Option<KeySource>,
    /// Who gets the request when no target is left.
    pub spare: Option<NodeId>,
    /// What that is in the policy's words.
    pub on_empty: OnEmpty,
    /// Requests that wait while all targets are full.
    pub line: Line,
    /// The most that may.
    pub max_waiting: u64,
    /// For how long, ns.
    pub wait_timeout_ns: Option<u64>,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
}

impl Lb {
    /// Where the request goes on, and what is to be held until it is back.
    pub async fn pick(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<(NodeId, Option<Picked>), Failure> {
        if self.line.is_empty() {
            match self.ask(lp, ex, way) {
                Choice::Full => {}
                choice => return self.go(lp, way, choice),
            }
        }
        self.wait(lp, ex, way).await
    }

    /// All targets are full: in order of arrival.
    async fn wait(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<(NodeId, Option<Picked>), Failure> {
        if self.line.len() as u64 >= self.max_waiting {
            return Err(Failure::new(Kind::Overloaded));
        }
        let place = self.line.join();
        let mut limit = self.wait_timeout_ns.map(|ns| lp.timers.after(ns));
        let choice = poll_fn(|cx| {
            if place.is_first(cx) {
                match self.ask(lp, ex, way) {
                    Choice::Full => {}
                    choice => return Poll::Ready(Some(choice)),
                }
            }
            if has_ended(&mut limit, cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        drop(place);
        match choice {
            Some(choice) => self.go(lp, way, choice),
            None => Err(Failure::new(Kind::Timeout)),
        }
    }

    fn ask(&self, lp: &Loop, ex: &Exchange, way: &Way) -> Choice {
        let now_ns = lp.lately();
        let mut upstream = self.upstream.borrow_mut();
        if self.due_ns.get() <= now_ns {
            upstream.tick(now_ns);
            self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
        }
        let mut exclude = Vec::new();
        if let Some((_, tried)) = &way.tried {
            tried.borrow().at(self.id, &mut exclude);
        }
        if let Some(open) = &way.open {
            exclude.extend(open.borrow().iter().filter(|(lb, _)| *lb == self.id).map(|(_, t)| *t));
        }
        let key = self.key.as_ref().and_then(|source| ex.key(source));
        let draw = way.draw.with(u64::from(self.id));
        upstream.pick(&Ask { draw, key, now_ns, exclude: &exclude, sticky: None })
    }

    fn go(self: &Rc<Self>, lp: &Rc<Loop>, way: &mut Way, choice: Choice) -> Result<(NodeId, Option<Picked>), Failure> {
        match choice {
            Choice::Target(ticket) => {
                if let Some((rule, tried)) = &way.tried {
                    tried.borrow_mut().picked(*rule, self.id, ticket.target);
                }
                if let Some(open) = &way.open {
                    open.borrow_mut().push((self.id, ticket.target));
                }
                let tried = way.tried.clone();
                let hold = Picked { lb: self.clone(), lp: lp.clone(), ticket, tried, finished: false };
                Ok((self.targets[ticket.target as usize], Some(hold)))
            }
            Choice::Full | Choice::Empty => match self.spare {
                Some(spare) => Ok((spare, None)),
                None => Err(Failure::new(Kind::NoTarget)),
            },
        }
    }

    /// A request has come back, so that another may have room.
    fn came_back(&self) {
        let due = self.upstream.borrow_mut().next_deadline().unwrap_or(u64::MAX);
        self.due_ns.set(due);
        self.line.wake_first();
    }
}

/// A request counted at a target.
pub(crate) struct Picked {
    lb: Rc<Lb>,
    lp: Rc<Loop>,
    ticket: Ticket,
    tried: Option<(weir_policy::config::Exclude, Rc<RefCell<weir_policy::retry::Tried>>)>,
    finished: bool,
}

impl Picked {
    /// It came back so.
    pub fn finish(mut self, outcome: Outcome, status: Option<u16>) {
        self.finished = true;
        if let Some((rule, tried)) = &self.tried {
            tried.borrow_mut().came_back(*rule, self.lb.id, self.ticket.target, outcome);
        }
        let release = self.lb.upstream.borrow_mut().done(self.lp.lately(), self.ticket, outcome, status);
        if let Release::After(ns) = release {
            let (lb, timers, target) = (self.lb.clone(), self.lp.timers.clone(), self.ticket.target);
            tokio::task::spawn_local(async move {
                timers.after(ns).await;
                lb.upstream.borrow_mut().release(target);
                lb.came_back();
            });
        }
        self.lb.came_back();
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if !self.finished {
            self.lb.upstream.borrow_mut().cancelled(self.lp.now(), self.ticket);
            self.lb.came_back();
        }
    }
}
