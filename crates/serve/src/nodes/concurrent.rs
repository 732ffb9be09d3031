//! `concurrent(work, cores=1, ...)`: a leaf; a server that shares its cores among the requests inside.
//!
//! The model's state machine on real timers: while a request is inside, a task sleeps until the next end. With
//! `on_cancel` "skip" or "finish" an abandoned request stays inside, unless the process around it crashes. Draws: the
//! work.

use crate::exchange::Exchange;
use crate::exchange::context::RequestContext;
use crate::exchange::reply::{Answer, LocalAnswer, Reply};
use crate::sync::process::CrashWatch;
use crate::sync::timeline::LocalTimeLine;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_model::OnCancel;
use weir_model::busy::share;
use weir_model::concurrent::{Concurrent as Model, Jobs, Law};
use weir_model::queue::Entry;
use weir_model::sampler::Sampler;
use weir_net::io::Core;
use weir_net::io::timers::Sleep;
use weir_stats::Key;

/// The node.
pub(crate) struct Concurrent {
    /// The work of a request.
    pub work: Sampler,
    /// How cores are shared.
    pub law: Law,
    /// What happens to a request whose client has gone.
    pub on_cancel: OnCancel,
    /// The process around it that pauses: the work goes by its clock.
    pub process: Option<Rc<LocalTimeLine>>,
    /// The key of the draws.
    pub key: Key,
    /// Its answer.
    pub answer: Rc<LocalAnswer>,
    pub state: RefCell<State>,
    /// Which life of the process around it the threads were made in.
    pub life: Cell<u64>,
    /// Whether its task is running.
    pub driven: Cell<bool>,
}

/// The requests inside.
#[derive(Default)]
pub(crate) struct State {
    model: Model,
    jobs: Jobs,
    tickets: Slab<Ticket>,
    /// The number of requests that have entered.
    came: u64,
    scratch: Vec<u32>,
    /// The waker of its task.
    task: Option<Waker>,
}

#[derive(Default)]
struct Ticket {
    /// Its number among all that entered; slots are reused.
    number: u64,
    waits: bool,
    done: bool,
    /// Whether it was abandoned.
    orphan: bool,
    waker: Option<Waker>,
}

impl Concurrent {
    /// Works on a request.
    pub async fn run(self: &Rc<Self>, ex: &Exchange, mut ctx: RequestContext) -> Answer {
        let work_ns = match ctx.check {
            Some(cost_ns) => cost_ns,
            None => self.work.draw(ctx.way.draw(self.key)),
        };
        let work_ns = ctx.scaled(work_ns);
        let job = self.enter(&ex.core, &ctx, work_ns);
        poll_fn(|cx| job.poll_done(cx)).await;
        drop(job);
        ex.load.set(Some(share(self.law.busy_cores(self.state.borrow().model.inside()), self.law.cores())));
        Ok(Reply::own(self.answer.clone()))
    }

    fn enter<'a>(self: &'a Rc<Self>, core: &'a Rc<Core>, ctx: &'a RequestContext, work_ns: u64) -> Job<'a> {
        let mut state = self.state.borrow_mut();
        let State { model, jobs, tickets, came, task, .. } = &mut *state;
        let life = ctx.process.as_ref().map_or(0, |process| process.life());
        if self.life.replace(life) != life {
            model.begin_anew();
        }
        *came += 1;
        let ticket = tickets.insert(Ticket { number: *came, ..Ticket::default() });
        let entry = model.enter(&self.law, jobs, self.shown_ns(core.now()), ticket as u32, work_ns);
        tickets[ticket].waits = entry == Entry::Waits;
        if let Some(task) = task.take() {
            task.wake();
        }
        drop(state);
        if !self.driven.replace(true) {
            core.runtime.spawn(drive(self.clone(), core.clone()));
        }
        Job { node: self, core, ctx, ticket }
    }

    /// What the clock of the process shows.
    fn shown_ns(&self, now_ns: u64) -> u64 {
        self.process.as_ref().map_or(now_ns, |process| process.read(now_ns))
    }

    /// Ends the work that is due.
    fn tick(&self, now_ns: u64) {
        let now_ns = self.shown_ns(now_ns);
        let mut state = self.state.borrow_mut();
        let State { model, jobs, tickets, scratch, .. } = &mut *state;
        scratch.clear();
        model.done(&self.law, jobs, now_ns, scratch);
        for &ticket in scratch.iter() {
            if let Some(next) = model.leave(&self.law, jobs, now_ns, ticket) {
                tickets[next as usize].waits = false;
            }
            let entry = &mut tickets[ticket as usize];
            entry.done = true;
            if let Some(waker) = entry.waker.take() {
                waker.wake();
            }
            if entry.orphan {
                tickets.remove(ticket as usize);
            }
        }
    }

    /// Removes a request before it is done.
    fn cut_off(&self, now_ns: u64, ticket: usize) {
        let now_ns = self.shown_ns(now_ns);
        let mut state = self.state.borrow_mut();
        let State { model, jobs, tickets, task, .. } = &mut *state;
        let entry = tickets.remove(ticket);
        if entry.waits {
            model.abandon(jobs, ticket as u32);
        } else if let Some(next) = model.leave(&self.law, jobs, now_ns, ticket as u32) {
            tickets[next as usize].waits = false;
        }
        if let Some(task) = task.take() {
            task.wake();
        }
    }
}

/// A request inside.
struct Job<'a> {
    node: &'a Rc<Concurrent>,
    core: &'a Rc<Core>,
    ctx: &'a RequestContext,
    ticket: usize,
}

impl Job<'_> {
    fn poll_done(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.node.state.borrow_mut();
        let entry = &mut state.tickets[self.ticket];
        if entry.done {
            return Poll::Ready(());
        }
        entry.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let now = self.core.now();
        let mut state = self.node.state.borrow_mut();
        let entry = &mut state.tickets[self.ticket];
        if entry.done {
            state.tickets.remove(self.ticket);
            return;
        }
        let process = self.ctx.process.as_ref();
        let goes_on =
            self.node.on_cancel.goes_on(!entry.waits) && process.is_none_or(|p| !p.has_crashed(now));
        entry.orphan = goes_on;
        entry.waker = None;
        let number = entry.number;
        drop(state);
        if !goes_on {
            self.node.cut_off(now, self.ticket);
        } else if let Some(process) = process {
            let watch = CrashWatch::all(process, self.core);
            self.core.runtime.spawn(die_with(
                self.node.clone(),
                self.core.clone(),
                self.ticket,
                number,
                watch,
            ));
        }
    }
}

/// Ends an abandoned request when the process around it crashes.
async fn die_with(node: Rc<Concurrent>, core: Rc<Core>, ticket: usize, number: u64, mut watch: CrashWatch) {
    let crashed = poll_fn(|cx| {
        let mut state = node.state.borrow_mut();
        match state.tickets.get_mut(ticket) {
            Some(entry) if entry.number == number && !entry.done => entry.waker = Some(cx.waker().clone()),
            _ => return Poll::Ready(false),
        }
        if watch.has_crashed(cx) { Poll::Ready(true) } else { Poll::Pending }
    })
    .await;
    if crashed {
        node.cut_off(core.now(), ticket);
    }
}

/// Drives a server while a request is inside.
async fn drive(node: Rc<Concurrent>, core: Rc<Core>) {
    let mut sleep: Option<(u64, Sleep)> = None;
    poll_fn(|cx| {
        loop {
            node.tick(core.now());
            let mut state = node.state.borrow_mut();
            let Some(end) = state.model.next_end_ns(&node.law, &state.jobs) else {
                state.task = None;
                return Poll::Ready(());
            };
            let end = node.process.as_ref().map_or(end, |process| process.when(core.now(), end));
            if sleep.as_ref().is_none_or(|(at, _)| *at != end) {
                sleep = Some((end, core.timers.sleep_until(end)));
            }
            let ended = sleep.as_mut().is_some_and(|(_, s)| s.poll_ended(cx).is_ready());
            if !ended {
                state.task = Some(cx.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            sleep = None;
        }
    })
    .await;
    node.driven.set(false);
}
