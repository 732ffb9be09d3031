//! `retry(attempts, node, ...)`: further attempts where the failure is worth one (`policy::retry` has the table).
//!
//! An attempt is judged at its head: a status in `on` is held back while attempts remain. No more attempts are made
//! once the request's body is no longer kept. Each further one pays the budget; only a request's first attempt earns
//! it.

use crate::exchange::Exchange;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use crate::metrics::{Denied, NodeCounts};
use crate::sync::TryCell;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::reuse::Shared;
use weir_policy::budget::Tokens;
use weir_policy::config;
use weir_policy::retry::{Attempt, TriedTargets};
use weir_stats::Key;

/// The node.
pub(crate) struct Retry {
    /// Its rules.
    pub config: config::Retry,
    /// The key of the backoffs' draws.
    pub choice: Key,
    /// The node behind it.
    pub node: NodeId,
    /// The budget; one per node and process.
    pub budget: Option<Arc<TryCell<Tokens>>>,
    /// Its counters.
    pub counts: Rc<NodeCounts>,
}

impl Retry {
    /// Runs what is behind, as often as needed.
    pub async fn run(self: Rc<Self>, ex: Shared<Exchange>, me: NodeId, ctx: RequestContext) -> Answer {
        let same = self.config.work == config::Work::Same;
        let idempotent = ex.request.is_idempotent();
        let tried = (self.config.exclude != config::Exclude::None)
            .then(|| Rc::new(RefCell::new(TriedTargets::default())));
        if let (true, Some(budget)) = (ctx.first, &self.budget) {
            budget.with(|b| b.earn(ex.core.now())).await;
        }
        let replay = usize::try_from(self.config.replay_bytes).unwrap_or(usize::MAX);
        let mut attempt = Attempt::FIRST;
        loop {
            let mut inner = ctx.with_way(ctx.way.attempt(attempt.0, same));
            inner.tried = tried.clone().map(|t| (self.config.exclude, t)).or(inner.tried);
            inner.first = ctx.first && attempt == Attempt::FIRST;
            inner.keep = inner.keep.max(replay);
            let answer = Exchange::start(&ex, inner, self.node).await;
            let (outcome, status) = match &answer {
                Ok(reply) => (reply.outcome(), Some(reply.status())),
                Err(failure) if failure.is_clients() => return answer,
                Err(failure) => (Some(failure.kind), None),
            };
            let Some(next) = self.config.next(attempt, outcome, status, idempotent) else {
                if !idempotent && self.config.next(attempt, outcome, status, true).is_some() {
                    self.counts.denied.one(Denied::Method);
                }
                return answer;
            };
            if !(ex.can_send_again() && ex.is_within(replay)) {
                self.counts.denied.one(if ex.passed_interim.get() { Denied::Head } else { Denied::Body });
                return answer;
            }
            if let Some(budget) = &self.budget
                && !budget.with(|b| b.take(ex.core.now())).await
            {
                self.counts.denied.one(Denied::Budget);
                return answer;
            }
            self.counts.retried(outcome);
            if let Ok(reply) = answer {
                reply.discard(&ex);
            }
            ex.count_attempt();
            let wait_ns = self.config.backoff_ns(next, ctx.way.attempt(next.0, same).choice(self.choice));
            if wait_ns > 0 {
                let since_ns = ex.moment();
                ex.core.timers.after(wait_ns).await;
                ex.backed_off(me, &ctx, since_ns);
            }
            attempt = next;
        }
    }
}
