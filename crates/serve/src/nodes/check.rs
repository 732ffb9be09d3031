//! What a health check does in a built-in server where it differs from a request: it skips delays, warmup, random
//! failures, time limits and further attempts, and costs a server what the file says. A node that decides for each
//! request counts as alive: behind it are checks of their own. Draws: nothing.

use super::Node;
use crate::exchange::reply::{Answer, LocalAnswer, Reply};
use crate::exchange::{NodeId, RequestContext};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::Core;

/// The step of a check at a node.
pub(crate) enum Step {
    /// The same as a request.
    AsRequest,
    /// Continue at this node.
    Goes(NodeId),
    /// End with this answer.
    Answered(Answer),
}

/// Runs a check with this cost, ns, at a node.
pub(crate) async fn step(core: &Core, ctx: &mut RequestContext, cost_ns: u64, node: &Node) -> Step {
    let alive = || Step::Answered(Ok(Reply::own(Rc::new(LocalAnswer::server("weir", Arc::default())))));
    match node {
        Node::Delay(delay) => Step::Goes(delay.node),
        Node::Warmup(warmup) => Step::Goes(warmup.node),
        Node::Flaky(flaky) => Step::Goes(flaky.node),
        Node::Timeout(timeout) => Step::Goes(timeout.node),
        Node::Model(model) => Step::Goes(model.root),
        Node::Answer(own) => {
            let ns = ctx.scaled(cost_ns);
            if ns > 0 {
                core.timers.after(ns).await;
            }
            Step::Answered(Ok(Reply::own(own.clone())))
        }
        Node::Faulty(faulty) if faulty.lies(core).await => alive(),
        Node::Lb(_) | Node::Route(_) | Node::Split(_) | Node::Sequence(_) | Node::Fanout(_) => alive(),
        _ => Step::AsRequest,
    }
}
