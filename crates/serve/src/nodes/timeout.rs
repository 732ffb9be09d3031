//! `timeout(time, node)`: the whole response arrives within this time, or what is behind is cancelled.
//!
//! Before the response's head: the failure `timeout` (504). After it: the body breaks off; the limit travels with the
//! reply as a hold, which the relay polls. The clock is paused while weir waits for the client
//! (`docs/spec/serving.md#timeouts`).

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::failure::FailureCause;
use crate::exchange::hold::Hold;
use crate::exchange::late::LateFlag;
use crate::exchange::reply::{Answer, ReplySource};
use crate::exchange::time_limit::TimeLimit;
use crate::exchange::{NodeId, RequestContext};
use std::future::poll_fn;
use std::task::Poll;
use weir_net::io::reuse::Shared;
use weir_policy::Kind;

/// The node.
#[derive(Clone)]
pub(crate) struct Timeout {
    /// The limit, ns.
    pub time_ns: u64,
    /// The flag of the balancer that it is around, if that judges its targets by their errors.
    pub late: Option<LateFlag>,
    /// The node behind it.
    pub node: NodeId,
}

impl Timeout {
    /// Runs what is behind, within the limit.
    pub async fn run(self, ex: Shared<Exchange>, ctx: RequestContext) -> Answer {
        let mut limit = TimeLimit::new(&ex, self.time_ns, self.late);
        let mut behind = Exchange::start(&ex, ctx, self.node);
        let answer = poll_fn(|cx| match behind.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if limit.has_ended(cx, &ex.core, Some(&ex)) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match answer {
            Some(Ok(mut reply)) => {
                if matches!(reply.source, ReplySource::Origin(_)) {
                    reply.holds.push(Hold::Timeout(limit));
                }
                Ok(reply)
            }
            Some(failed) => failed,
            None => {
                limit.cut(|| ex.core.drop_late(behind));
                Err(Failure::new(Kind::Timeout).with_cause(FailureCause::Timeout(self.time_ns)))
            }
        }
    }
}
