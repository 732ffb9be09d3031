//! A request's way through the nodes: one future, in which each node acts before and after the nodes behind it.

use super::Graph;
use crate::exchange::hold::{Hold, Holds};
use crate::exchange::notes::NotedAttempt;
use crate::exchange::progress::OpenAttempt;
use crate::exchange::reply::{Answer, Reply};
use crate::exchange::{Exchange, Failure, NodeId, RequestContext};
use crate::nodes::lb::PickedNode;
use crate::nodes::queue::Queue;
use crate::nodes::{Node, check};
use crate::upstream::server::Server;
use std::rc::Rc;
use weir_net::io::reuse::Shared;
use weir_policy::Kind;

/// Runs a request from this node on.
pub(super) async fn run(
    mut graph: Rc<Graph>,
    ex: Shared<Exchange>,
    mut ctx: RequestContext,
    mut at: NodeId,
) -> Answer {
    let mut holds = Holds::default();
    loop {
        if let Some(cost_ns) = ctx.check {
            let step = Box::pin(check::step(&ex.core, &mut ctx, cost_ns, graph.node(at))).await;
            if let check::Step::Goes(next) = step {
                at = next;
                continue;
            }
            if let check::Step::Answered(answer) = step {
                return holds.around(answer);
            }
        }
        let went = match graph.node(at) {
            Node::Pass(next) => Ok(*next),
            Node::Nowhere => Err(Failure::new(Kind::NoTarget)),
            Node::Lb(lb) if lb.sticky.is_some() => return holds.around(Box::pin(lb.stick(ex, ctx)).await),
            Node::Lb(lb) => lb.pick(&ex, &mut ctx).await.map(|picked| hold(picked, &mut holds)),
            Node::Route(route) => route.choose(&ex, &ctx),
            Node::Split(split) => Ok(split.choose(&ex, &ctx)),
            Node::Rate(rate) => Box::pin(rate.take(&ex, &ctx)).await,
            Node::Rewrite(rewrite) if rewrite.leaves_responses() => rewrite.request(&ex, &mut ctx),
            Node::Queue(queue) if queue.is_step() => Box::pin(enter(queue, at, &ex, &ctx, &mut holds)).await,
            Node::Delay(delay) => Ok(Box::pin(delay.pass(&ex.core, &mut ctx)).await),
            Node::Warmup(warmup) => Ok(Box::pin(warmup.enter(&ex.core, &mut ctx)).await),
            Node::Gate(gate) if ctx.check.is_some() => return Box::pin(gate.check(ex, ctx, holds)).await,
            Node::Gate(gate) => Ok(Box::pin(gate.enter()).await),
            Node::Faulty(faulty) => match Box::pin(faulty.enter(&ex.core, &mut ctx)).await {
                Ok(true) => return holds.around(Box::pin(faulty.run(ex, ctx)).await),
                passed => passed.map(|_| faulty.node),
            },
            Node::Server(server) => {
                let notes = AttemptNotes::begin(server, at, &ex, &mut ctx, &mut holds);
                let answer = server.forward(&ex, &ctx).await;
                notes.end(&answer);
                return holds.around(answer);
            }
            Node::Answer(own) => return holds.around(Ok(Reply::own(own.clone()))),
            Node::Redirect(redirect) => return holds.around(redirect.answer(&ex, &ctx).map(Reply::own)),
            Node::Rewrite(rewrite) => return holds.around(Box::pin(rewrite.run(ex, ctx)).await),
            Node::Buffered(buffered) => return holds.around(Box::pin(buffered.run(ex, ctx)).await),
            Node::Retry(retry) => return holds.around(Box::pin(retry.clone().run(ex, at, ctx)).await),
            Node::Hedge(hedge) => return holds.around(Box::pin(hedge.run(ex, ctx)).await),
            Node::Timeout(timeout) => return holds.around(Box::pin(timeout.clone().run(ex, ctx)).await),
            Node::Queue(queue) => return holds.around(Box::pin(queue.clone().act(ex, at, ctx)).await),
            Node::Cable(cable) => return holds.around(Box::pin(cable.run(ex, ctx)).await),
            Node::Flaky(flaky) => return holds.around(Box::pin(flaky.run(ex, ctx)).await),
            Node::Concurrent(server) => return holds.around(Box::pin(server.run(&ex, ctx)).await),
            Node::Sequence(sequence) => return holds.around(Box::pin(sequence.run(ex, ctx)).await),
            Node::Fanout(fanout) => return holds.around(Box::pin(fanout.run(ex, ctx)).await),
            Node::Model(model) => return holds.around(Box::pin(model.run(ex, ctx)).await),
        };
        match went {
            Ok(next) => at = next,
            Err(failure) => return holds.fail(failure),
        }
        graph = graph.after_pick(&ctx);
    }
}

/// Holds a target that was picked; returns its node.
fn hold(picked: PickedNode, holds: &mut Holds) -> NodeId {
    picked.hold.into_iter().for_each(|hold| holds.push_inside(Hold::Target(hold)));
    picked.node
}

/// Enters a queue; the time in it is noted where the request's history is wanted.
async fn enter(
    queue: &Queue,
    at: NodeId,
    ex: &Exchange,
    ctx: &RequestContext,
    holds: &mut Holds,
) -> Result<NodeId, Failure> {
    let permit = queue.enter(&ex.core, |since_ns| ex.waited(at, ctx, since_ns)).await?;
    holds.push_inside(permit);
    Ok(queue.node)
}

/// Where the end of an attempt is noted, if anything wants it.
struct AttemptNotes<'a> {
    sender: Option<OpenAttempt>,
    noted: Option<NotedAttempt<'a>>,
}

impl<'a> AttemptNotes<'a> {
    /// An attempt begins: it is counted at its target.
    fn begin(
        server: &Rc<Server>,
        at: NodeId,
        ex: &'a Shared<Exchange>,
        ctx: &mut RequestContext,
        holds: &mut Holds,
    ) -> AttemptNotes<'a> {
        // For tests: a defect behind any nodes.
        #[cfg(test)]
        assert!(ex.request.target() != b"/P", "a defect\nof a node");
        if let Some(counted) = server.counted(ex, ctx) {
            holds.push_inside(Hold::Target(counted));
        }
        AttemptNotes { sender: ctx.begins(), noted: ex.tries(at, ctx, server) }
    }

    /// It has ended.
    fn end(self, answer: &Answer) {
        if let Some(noted) = self.noted {
            noted.ends(answer);
        }
        if let Some(sender) = self.sender {
            sender.ends(answer.is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    fn size<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// Rare nodes are boxed, so that the future of a plain request stays small: it is made for each.
    #[test]
    fn a_request_is_a_small_future() {
        let bytes = size(super::run);
        assert!(bytes <= 768, "{bytes}");
    }
}
