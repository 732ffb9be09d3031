//! `hedge(after, node, attempts=2, ...)`: a further attempt while the first is open; the first good answer wins.
//!
//! `policy::hedge` says when. Further attempts begin only once the request's body is complete and kept, for idempotent
//! requests unless the file says otherwise, and pay the budget. The losers are dropped, which cancels them. Draws: the
//! attempts' ways.

use crate::exchange::Exchange;
use crate::exchange::context::Open;
use crate::exchange::notes::Branch;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext, Run};
use crate::metrics::{Denied, NodeCounts, Won};
use crate::sync::TryCell;
use smallvec::SmallVec;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_net::io::reuse::Shared;
use weir_net::io::timers::Sleep;
use weir_policy::budget::Tokens;
use weir_policy::config;
use weir_policy::hedge::{Hedging, Step};

/// The node.
pub(crate) struct Hedge {
    /// When attempts begin.
    pub config: config::Hedge,
    /// Bytes of the body that are kept.
    pub replay: usize,
    /// The budget of further attempts; one per node and process.
    pub budget: Option<Arc<TryCell<Tokens>>>,
    /// The node behind it.
    pub node: NodeId,
    /// Its counters.
    pub counts: Rc<NodeCounts>,
}

/// One request's attempts.
struct Attempts<'a> {
    hedge: &'a Hedge,
    ex: Shared<Exchange>,
    ctx: RequestContext,
    hedging: Hedging,
    open: Open,
    runs: Vec<(u32, Run)>,
    begun: u32,
    timer: Option<(u64, Sleep)>,
    /// Whether the next attempt begins at once, as one has failed.
    at_once: bool,
    /// The last error.
    last: Option<Answer>,
    /// The attempt that gave the answer.
    won: u32,
    /// The branches of the attempts.
    branches: SmallVec<[Branch; 2]>,
}

impl Hedge {
    /// Runs the attempts.
    pub async fn run(&self, ex: Shared<Exchange>, ctx: RequestContext) -> Answer {
        if let (true, Some(budget)) = (ctx.first, &self.budget) {
            budget.with(|b| b.earn(ex.core.now())).await;
        }
        let hedging = Hedging::new(&self.config, ex.core.now(), ex.request.is_idempotent());
        let mut attempts = Attempts {
            hedge: self,
            ex,
            ctx,
            hedging,
            open: Open::default(),
            runs: Vec::new(),
            begun: 0,
            timer: None,
            at_once: false,
            last: None,
            won: 0,
            branches: SmallVec::new(),
        };
        attempts.begin();
        poll_fn(|cx| attempts.poll(cx)).await
    }
}

/// Reports the end to the holds of the last error, on every way out.
impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        let (further, won) = (u64::from(self.begun) - 1, u64::from(self.won > 0));
        self.hedge.counts.hedges.add(Won::Yes, won);
        self.hedge.counts.hedges.add(Won::No, further - won);
        if let Some(Ok(reply)) = self.last.take() {
            reply.discard(&self.ex);
        }
    }
}

impl Attempts<'_> {
    /// Chooses between the last error and this answer: the newer, unless it was only cut off.
    fn rather(&mut self, answer: Answer) -> Answer {
        match self.last.take() {
            Some(last) if matches!(&answer, Err(failure) if failure.is_aborted()) => last,
            Some(Ok(reply)) => {
                reply.discard(&self.ex);
                answer
            }
            _ => answer,
        }
    }

    fn begin(&mut self) {
        let number = self.begun;
        self.begun += 1;
        let mut ctx = self.ctx.with_way(self.ctx.way.hedged(number));
        ctx.first &= number == 0;
        ctx.keep = ctx.keep.max(self.hedge.replay);
        ctx.open = Some((self.open.clone(), number));
        ctx.branch = self.ex.branches(self.ctx.branch);
        self.branches.push(ctx.branch);
        if number > 0 {
            self.ex.count_attempt();
        }
        self.runs.push((number, Exchange::start(&self.ex, ctx, self.hedge.node)));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        loop {
            if let Poll::Ready(answer) = self.poll_runs(cx) {
                return Poll::Ready(answer);
            }
            if !self.wants_more(cx) {
                return Poll::Pending;
            }
            // Without the whole body kept there is no further attempt; before its end one has to wait.
            let within = self.ex.is_within(self.hedge.replay);
            let whole = self.ex.is_whole_and_kept() && within;
            if !whole && self.ex.can_send_again() && within && !self.runs.is_empty() {
                return Poll::Pending;
            }
            let paid = match &self.hedge.budget {
                _ if !whole => false,
                None => true,
                Some(budget) => {
                    let core = &self.ex.core;
                    match budget.poll_with(cx, |b| b.take(core.now())) {
                        Poll::Ready(paid) => paid,
                        Poll::Pending => return Poll::Pending,
                    }
                }
            };
            self.at_once = false;
            if !paid {
                self.hedge.counts.denied.one(match whole {
                    true => Denied::Budget,
                    false if self.ex.passed_interim.get() => Denied::Head,
                    false => Denied::Body,
                });
            }
            if paid {
                self.hedging.started(self.ex.core.now());
                self.begin();
            } else if let Step::Answer(_) = self.hedging.refused()
                && let Some(answer) = self.last.take()
            {
                return Poll::Ready(answer);
            }
        }
    }

    /// Whether another attempt is due; otherwise wakes the task then.
    fn wants_more(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(at) = self.hedging.next_deadline() else { return false };
        if self.at_once {
            return true;
        }
        if self.timer.as_ref().is_none_or(|(set, _)| *set != at) {
            self.timer = Some((at, self.ex.core.timers.sleep_until(at)));
        }
        let ended = self.timer.as_mut().is_some_and(|(_, sleep)| sleep.poll_ended(cx).is_ready());
        ended && self.hedging.due(self.ex.core.now()) == Step::Start
    }

    /// Polls the open attempts; ready with the answer of the request.
    fn poll_runs(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut at = 0;
        while at < self.runs.len() {
            let Poll::Ready(answer) = self.runs[at].1.as_mut().poll(cx) else {
                at += 1;
                continue;
            };
            let (number, run) = self.runs.remove(at);
            drop(run);
            self.open.borrow_mut().retain(|pick| pick.attempt != number);
            let outcome = match &answer {
                Ok(reply) => reply.outcome(),
                Err(failure) if failure.is_clients() && !failure.is_aborted() => return Poll::Ready(answer),
                Err(failure) => Some(failure.kind),
            };
            let step = self.hedging.came_back(outcome);
            let answer = self.rather(answer);
            match step {
                Step::Answer(outcome) => {
                    self.won = if outcome.is_none() { number } else { 0 };
                    let others = (0..).zip(&self.branches).filter(|(other, _)| *other != number);
                    others.for_each(|(_, branch)| self.ex.lost(*branch));
                    return Poll::Ready(answer);
                }
                Step::Start => self.at_once = true,
                Step::Wait => {}
            }
            self.last = Some(answer);
        }
        Poll::Pending
    }
}
