//! `fanout(nodes, need=None)`: runs all at once; ends when `need` of them are ok, or can no longer be. The rest is
//! cancelled. In built-in servers only. Draws: nothing of its own.

use crate::exchange::Exchange;
use crate::exchange::reply::{Answer, LocalAnswer, Reply};
use crate::exchange::{NodeId, RequestContext, Run};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::reuse::Shared;

/// The node.
pub(crate) struct Fanout {
    /// The nodes behind it.
    pub nodes: Vec<NodeId>,
    /// The number that must be ok.
    pub need: u32,
    /// Its answer if nothing is behind it.
    pub empty: Rc<LocalAnswer>,
}

impl Fanout {
    /// Runs them; the deciding answer is the result.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        let begin = |(number, node): (u32, &NodeId)| {
            Exchange::start(&ex, ctx.with_way(ctx.way.branch(number)), *node)
        };
        let mut open: Vec<Run> = (0..).zip(&self.nodes).map(begin).collect();
        if open.is_empty() {
            return Ok(Reply::own(self.empty.clone()));
        }
        let mut ok = 0;
        let answer = poll_fn(|cx| {
            let mut at = 0;
            while at < open.len() {
                let Poll::Ready(answer) = open[at].as_mut().poll(cx) else {
                    at += 1;
                    continue;
                };
                drop(open.remove(at));
                let good = answer.as_ref().is_ok_and(|reply| reply.outcome().is_none());
                ok += u32::from(good);
                let decided = if good { ok >= self.need } else { ok + (open.len() as u32) < self.need };
                if decided || open.is_empty() {
                    return Poll::Ready(answer);
                }
                if let Ok(reply) = answer {
                    reply.discard(&ex);
                }
            }
            Poll::Pending
        })
        .await;
        ctx.way.ends_branches();
        answer
    }
}
