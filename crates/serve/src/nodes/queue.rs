//! `queue(node, concurrency=1, capacity=None, timeout=None, on_cancel=...)`: at most so many inside, the rest in order.
//!
//! Slots and line are the process's ([`crate::sync::semaphore`]). A request inside holds its slot until its response has come
//! back whole. With `on_cancel` "skip" or "finish" what is behind runs as a task of its own, so that it can go on when its
//! client has gone: once it was sent whole, or while nothing of it is sent if its body is complete and kept (`serving.md`
//! §2). Its response is drained then, and the slot held until that has ended. Draws: nothing.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::context::{Afar, Sending};
use crate::exchange::drain;
use crate::exchange::failure::Failure;
use crate::exchange::hold::{Hold, Holds};
use crate::exchange::reply::{Answer, From, Reply};
use crate::io::timers::Sleep;
use crate::nodes::{NodeId, Run, Way, faulty, start};
use crate::sync::{Gate, Slot};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use weir_model::OnCancel;
use weir_policy::Kind;
use weir_topology::plan::fixed::ON_CANCEL_DRAIN_NS;

/// The node.
pub(crate) struct Queue {
    /// Its slots and line.
    pub gate: Rc<Gate>,
    /// How many may wait.
    pub capacity: u64,
    /// For how long, ns.
    pub timeout_ns: Option<u64>,
    /// What becomes of a request whose client has gone.
    pub on_cancel: OnCancel,
    /// What is behind it.
    pub node: NodeId,
}

/// A slot while a response comes back.
pub(crate) struct Held {
    _slot: Slot,
    on_cancel: OnCancel,
}

impl Held {
    /// Whether the request goes on without its client.
    pub fn goes_on(&self) -> bool {
        self.on_cancel.goes_on(true)
    }
}

/// What a request that may go on by itself and whoever waits for it have in common.
#[derive(Default)]
struct Meeting {
    answer: RefCell<Option<Answer>>,
    /// Whoever waits for the answer.
    client: RefCell<Option<Waker>>,
    /// The task.
    task: RefCell<Option<Waker>>,
    gone: Cell<bool>,
    met: Cell<bool>,
}

impl Meeting {
    fn answer(&self, answer: Answer) {
        *self.answer.borrow_mut() = Some(answer);
        if let Some(client) = self.client.borrow_mut().take() {
            client.wake();
        }
    }
}

/// Dropped before the task has answered, as by a panic, whoever waits is told.
struct Answers {
    meeting: Rc<Meeting>,
    answered: bool,
}

impl Drop for Answers {
    fn drop(&mut self) {
        if !self.answered && !self.meeting.gone.get() {
            self.meeting.answer(Err(Failure::new(Kind::Reset)));
        }
    }
}

impl Queue {
    /// A slot, or why there is none.
    pub async fn enter(&self, lp: &Rc<Loop>) -> Result<Hold, Failure> {
        let limit = || self.timeout_ns.map(|ns| lp.timers.after(ns));
        let slot = self.gate.enter(self.capacity, limit).await?;
        Ok(Hold::Slot(Held { _slot: slot, on_cancel: self.on_cancel }))
    }

    /// Runs what is behind in a task of its own.
    pub async fn run(self: Rc<Self>, lp: Rc<Loop>, ex: Rc<Exchange>, mut way: Way) -> Answer {
        let meeting = Rc::new(Meeting::default());
        // What the outer one is told it is told through the inner.
        let afar = Rc::new(Afar::inside(way.afar.take()));
        way.afar = Some(afar.clone());
        lp.runtime.spawn(task(self, lp.clone(), ex.clone(), way, meeting.clone()));
        let _leaving = Leaving { meeting: &meeting, afar: &afar, lp: &lp, ex: &ex };
        poll_fn(|cx| match meeting.answer.borrow_mut().take() {
            Some(answer) => {
                meeting.met.set(true);
                Poll::Ready(answer)
            }
            None => {
                *meeting.client.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}

/// Dropped before they have met, nobody waits for the answer any more.
struct Leaving<'a> {
    meeting: &'a Meeting,
    afar: &'a Afar,
    lp: &'a Rc<Loop>,
    ex: &'a Rc<Exchange>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.meeting.met.get() {
            return;
        }
        self.meeting.gone.set(true);
        self.afar.unwanted.set(true);
        if let Some(task) = self.meeting.task.borrow_mut().take() {
            task.wake();
        }
        // It may have come just now.
        if let Some(Ok(Reply { from: From::Origin(origin), holds })) = self.meeting.answer.borrow_mut().take()
        {
            holds.cancel(self.lp, self.ex, origin);
        }
    }
}

async fn task(queue: Rc<Queue>, lp: Rc<Loop>, ex: Rc<Exchange>, way: Way, meeting: Rc<Meeting>) {
    let mut answers = Answers { meeting: meeting.clone(), answered: false };
    let afar = way.afar.clone();
    let mut crashes = way.process.as_ref().map(|p| faulty::Watch::all(p, &lp));
    let inside = Rc::new(Cell::new(false));
    let mut run: Run = {
        let (queue, lp, ex, inside) = (queue.clone(), lp.clone(), ex.clone(), inside.clone());
        Box::pin(async move {
            let mut holds = Holds::default();
            match queue.enter(&lp).await {
                Ok(slot) => holds.push(slot),
                Err(failure) => return Err(failure),
            }
            inside.set(true);
            holds.around(start(lp, ex, way, queue.node).await)
        })
    };
    // Of what goes on without its client; from when it has its slot.
    let mut in_all: Option<Sleep> = None;
    let sending = || afar.as_ref().map_or(Sending::Nowhere, |a| a.sending());
    let mut judged = false;
    let answer = poll_fn(|cx| {
        if meeting.gone.get() && !judged {
            judged = true;
            let may = match sending() {
                Sending::Whole => true,
                Sending::Nowhere => ex.is_whole_and_kept(),
                Sending::Begun => false,
            };
            if !(may && queue.on_cancel.goes_on(inside.get())) {
                return Poll::Ready(None);
            }
        }
        if meeting.gone.get() && crashes.as_mut().is_some_and(|c| c.has_crashed(cx)) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(answer) = run.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        if meeting.gone.get() && inside.get() {
            let limit = in_all.get_or_insert_with(|| lp.timers.after(ON_CANCEL_DRAIN_NS));
            if limit.poll_ended(cx).is_ready() {
                return Poll::Ready(None);
            }
        }
        *meeting.task.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
    drop(run);
    let Some(answer) = answer else { return };
    if !meeting.gone.get() {
        answers.answered = true;
        meeting.answer(answer);
        return;
    }
    // Nobody gets the result.
    if let Ok(reply) = answer {
        match reply.from {
            From::Origin(origin) if origin.is_sent_whole() => {
                drop(ex);
                drain::drain(lp, origin, reply.holds, in_all).await;
            }
            From::Origin(_) => drop(reply.holds),
            From::Own(_) => reply.holds.finish(None, None),
        }
    }
}
