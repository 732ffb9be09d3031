//! `queue(node, concurrency=1, capacity=None, timeout=None, on_cancel=...)`: admits `concurrency` requests, the
//! others wait in order.
//!
//! The semaphore and its wait queue belong to the process ([`crate::sync::semaphore`]). A request inside holds its
//! permit until its response has come back completely. With `on_cancel` "skip" or "finish" what is behind runs as a
//! task of its own, so that it can continue when its client has gone: once it was sent completely, or while nothing
//! of it is sent if its body is complete and kept (`docs/spec/serving.md#on-cancel`). Its response is then drained,
//! and the permit held until that has ended. Draws: nothing.

use crate::exchange::failure::FailureCause;
use crate::exchange::hold::{HeldPermit, Hold, Holds};
use crate::exchange::progress::{Detachable, Sending};
use crate::exchange::reply::{Answer, Reply, ReplySource};
use crate::exchange::{Exchange, Failure, NodeId, RequestContext, Run, drain};
use crate::metrics::{NodeCounts, Rejected};
use crate::sync::panics::{Panicked, caught};
use crate::sync::process::CrashWatch;
use crate::sync::{Denied, LocalSemaphore};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use weir_model::OnCancel;
use weir_net::io::Core;
use weir_net::io::reuse::Shared;
use weir_net::io::timers::Sleep;
use weir_plan::fixed::ON_CANCEL_DRAIN_NS;
use weir_policy::Kind;

/// The node.
pub(crate) struct Queue {
    /// Its permits, and the queue for them.
    pub semaphore: Rc<LocalSemaphore>,
    /// The number of requests that may wait.
    pub capacity: u64,
    /// How long they may wait, ns.
    pub timeout_ns: Option<u64>,
    /// What happens to a request whose client has gone.
    pub on_cancel: OnCancel,
    /// The node behind it.
    pub node: NodeId,
    /// Whether an answer that leaves it reports how many permits are taken: it is part of a built-in server.
    pub reports: bool,
    /// Its counters.
    pub counts: Rc<NodeCounts>,
}

/// The state shared by a request's task and the exchange that waits for its answer.
#[derive(Default)]
struct Rendezvous {
    answer: RefCell<Option<Answer>>,
    /// The waker of the exchange.
    client: RefCell<Option<Waker>>,
    /// The waker of the task.
    task: RefCell<Option<Waker>>,
    gone: Cell<bool>,
    met: Cell<bool>,
}

impl Rendezvous {
    fn answer(&self, answer: Answer) {
        *self.answer.borrow_mut() = Some(answer);
        if let Some(client) = self.client.borrow_mut().take() {
            client.wake();
        }
    }
}

/// Dropped before the task has answered, for example by a panic, it answers with a failure.
struct Answering {
    rendezvous: Rc<Rendezvous>,
    answered: bool,
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.answered && !self.rendezvous.gone.get() {
            self.rendezvous.answer(Err(Failure::new(Kind::Reset)));
        }
    }
}

impl Queue {
    /// Whether it acts only before what is behind it: nothing is to be done with the answer.
    pub fn is_step(&self) -> bool {
        self.stops() && !self.reports
    }

    /// Whether a request stops with its client, wherever it is.
    fn stops(&self) -> bool {
        self.on_cancel == OnCancel::Stop
    }

    /// Waits for a permit. `waited`: called with the beginning of the wait, if there was one.
    pub async fn enter(&self, core: &Core, waited: impl FnOnce(u64)) -> Result<Hold, Failure> {
        let waits = Cell::new(None);
        let limit = || {
            // Called only if the request has to wait.
            waits.set(Some(core.now()));
            self.timeout_ns.map(|ns| core.timers.after(ns))
        };
        let permit = self.semaphore.acquire(self.capacity, limit).await;
        if let Some(since_ns) = waits.get() {
            waited(since_ns);
        }
        match permit {
            Ok(permit) => {
                let waited_ns = |since_ns| core.now().saturating_sub(since_ns);
                self.counts.entered(waits.get().map_or(0, waited_ns));
                Ok(Hold::Permit(HeldPermit::new(permit, self.on_cancel)))
            }
            Err(Denied::Full) => {
                self.counts.rejected.one(Rejected::Full);
                Err(Failure::new(Kind::Overloaded))
            }
            Err(Denied::TimedOut) => {
                self.counts.rejected.one(Rejected::Timeout);
                Err(Failure::new(Kind::Timeout).with_cause(FailureCause::QueueLimit))
            }
        }
    }

    /// Runs what is behind, and acts on the answer: in a built-in server it reports the load.
    pub async fn act(self: Rc<Self>, ex: Shared<Exchange>, me: NodeId, ctx: RequestContext) -> Answer {
        if !self.reports {
            return self.run(ex, me, ctx).await;
        }
        let answer = if self.stops() {
            let mut holds = Holds::default();
            holds.push(self.enter(&ex.core, |since_ns| ex.waited(me, &ctx, since_ns)).await?);
            holds.around(Exchange::start(&ex, ctx, self.node).await)
        } else {
            self.clone().run(ex.clone(), me, ctx).await
        };
        if answer.is_ok() {
            ex.load.set(Some(self.semaphore.busy_share()));
        }
        answer
    }

    /// Runs what is behind in a task of its own.
    async fn run(self: Rc<Self>, ex: Shared<Exchange>, me: NodeId, mut ctx: RequestContext) -> Answer {
        let rendezvous = Rc::new(Rendezvous::default());
        // The outer queue is notified through the inner one.
        let detachable = Rc::new(Detachable::inside(ctx.detachable.take()));
        ctx.detachable = Some(detachable.clone());
        ex.core.runtime.spawn(task(self, ex.clone(), me, ctx, rendezvous.clone()));
        let _leaving = Leaving { rendezvous: &rendezvous, detachable: &detachable, ex: &ex };
        poll_fn(|cx| match rendezvous.answer.borrow_mut().take() {
            Some(answer) => {
                rendezvous.met.set(true);
                Poll::Ready(answer)
            }
            None => {
                *rendezvous.client.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}

/// Dropped before the answer was taken, it marks the request as abandoned.
struct Leaving<'a> {
    rendezvous: &'a Rendezvous,
    detachable: &'a Detachable,
    ex: &'a Shared<Exchange>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.rendezvous.met.get() {
            return;
        }
        self.rendezvous.gone.set(true);
        self.detachable.is_unwanted.set(true);
        if let Some(task) = self.rendezvous.task.borrow_mut().take() {
            task.wake();
        }
        // The answer may have arrived just now.
        let answer = self.rendezvous.answer.borrow_mut().take();
        if let Some(Ok(Reply { source: ReplySource::Origin(origin), holds })) = answer {
            holds.cancel(self.ex, origin);
        }
    }
}

async fn task(
    queue: Rc<Queue>,
    ex: Shared<Exchange>,
    me: NodeId,
    ctx: RequestContext,
    rendezvous: Rc<Rendezvous>,
) {
    let mut answering = Answering { rendezvous: rendezvous.clone(), answered: false };
    let core = ex.core.clone();
    let detachable = ctx.detachable.clone();
    let mut crashes = ctx.process.as_ref().map(|p| CrashWatch::all(p, &core));
    let inside = Rc::new(Cell::new(false));
    let mut run: Run = {
        let (queue, ex, inside) = (queue.clone(), ex.clone(), inside.clone());
        Box::pin(async move {
            let mut holds = Holds::default();
            holds.push(queue.enter(&ex.core, |since_ns| ex.waited(me, &ctx, since_ns)).await?);
            inside.set(true);
            holds.around(Exchange::start(&ex, ctx, queue.node).await)
        })
    };
    // The limit of a request without its client, from when it has its permit.
    let mut in_all: Option<Sleep> = None;
    let mut background = None;
    let sending = || detachable.as_ref().map_or(Sending::Nowhere, |d| d.sending());
    let answer = poll_fn(|cx| {
        if rendezvous.gone.get() && background.is_none() {
            background = Some(core.begin_background());
            let may = match sending() {
                Sending::Whole => true,
                Sending::Nowhere => ex.is_whole_and_kept(),
                Sending::Begun => false,
            };
            if !(may && queue.on_cancel.goes_on(inside.get())) {
                return Poll::Ready(None);
            }
        }
        if rendezvous.gone.get() && crashes.as_mut().is_some_and(|c| c.has_crashed(cx)) {
            return Poll::Ready(None);
        }
        match caught(|| run.as_mut().poll(cx)) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(answer)) => return Poll::Ready(Some(answer)),
            Err(Panicked) => return Poll::Ready(Some(Err(Failure::panicked()))),
        }
        if rendezvous.gone.get() && inside.get() {
            let limit = in_all.get_or_insert_with(|| core.timers.after(ON_CANCEL_DRAIN_NS));
            if limit.poll_ended(cx).is_ready() {
                return Poll::Ready(None);
            }
        }
        *rendezvous.task.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
    drop(run);
    let Some(answer) = answer else { return };
    if !rendezvous.gone.get() {
        answering.answered = true;
        rendezvous.answer(answer);
        return;
    }
    if let Ok(reply) = answer {
        drop(ex);
        discard(core, reply, in_all).await;
    }
}

/// Ends an answer that no client gets; its rest is read, within the limit, so that the connection can be used again.
async fn discard(core: Rc<Core>, reply: Reply, limit: Option<Sleep>) {
    match reply.source {
        ReplySource::Origin(origin) if origin.is_sent_whole() => {
            drain::drain(core, origin, reply.holds, limit).await;
        }
        ReplySource::Origin(_) => drop(reply.holds),
        ReplySource::Local(_) => reply.holds.finish(None, None),
    }
}
