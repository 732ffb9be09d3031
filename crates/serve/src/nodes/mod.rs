//! A request's way through the nodes: one future, in which each node does its part before and after what is behind it.
//!
//! A node that only chooses or waits (balancers, routes, queues, delays) is a step of the loop in [`run`]; one that tries
//! again, limits or does something on the way back runs what is behind it as a future inside its own. What is held until the
//! response has come back whole (a balancer's count, a queue's slot, a timeout) travels with the [`Reply`] as a
//! [`hold::Hold`]: dropped, it was cancelled; finished, it learns how the request ended. So cancelling a request is dropping
//! its future. A response of weir's own is whole as soon as it is there: nothing is held for it any longer.

pub(crate) mod buffered;
pub(crate) mod cable;
pub(crate) mod check;
pub(crate) mod concurrent;
pub(crate) mod delay;
pub(crate) mod fanout;
pub(crate) mod faulty;
pub(crate) mod flaky;
pub(crate) mod hedge;
pub(crate) mod lb;
pub(crate) mod model;
pub(crate) mod queue;
pub(crate) mod rate;
pub(crate) mod redirect;
pub(crate) mod retry;
pub(crate) mod rewrite;
pub(crate) mod route;
pub(crate) mod sequence;
pub(crate) mod split;
pub(crate) mod sticky;
pub(crate) mod timeout;
pub(crate) mod warmup;

pub(crate) use crate::exchange::context::Way;
pub(crate) use crate::exchange::hold::Holds;
pub(crate) use crate::exchange::reply::{Answer, From, Own, Reply};

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::Failure;
use crate::exchange::hold::Hold;
use crate::upstream::server::Server;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use weir_model::OnCancel;
use weir_policy::Kind;

/// Index of a node in a [`crate::graph::Graph`].
pub(crate) type NodeId = u32;

/// A node as it is served.
pub(crate) enum Node {
    /// No way leads here on this thread.
    Nowhere,
    /// Nothing is done here: a weight, or a model left out before a real server.
    Pass(NodeId),
    /// A real server, or the way to a built-in one.
    Server(Rc<Server>),
    /// An answer that is ready: `respond`, a built-in server without model.
    Answer(Rc<Own>),
    /// The client is sent elsewhere.
    Redirect(redirect::Redirect),
    /// A balancer.
    Lb(Rc<lb::Lb>),
    /// The first rule that matches.
    Route(route::Route),
    /// Shares.
    Split(split::Split),
    /// A token bucket.
    Rate(rate::Rate),
    /// Another path, other fields.
    Rewrite(rewrite::Rewrite),
    /// Small messages are taken whole.
    Buffered(buffered::Buffered),
    /// Further attempts.
    Retry(Rc<retry::Retry>),
    /// Attempts at once.
    Hedge(hedge::Hedge),
    /// An end to waiting.
    Timeout(timeout::Timeout),
    /// Slots and a line.
    Queue(Rc<queue::Queue>),
    /// Work or waiting.
    Delay(delay::Delay),
    /// A link.
    Cable(cable::Cable),
    /// Up and down.
    Faulty(faulty::Faulty),
    /// Now and then an error.
    Flaky(flaky::Flaky),
    /// Slow at first.
    Warmup(warmup::Warmup),
    /// A server that shares its cores.
    Concurrent(Rc<concurrent::Concurrent>),
    /// One after another.
    Sequence(sequence::Sequence),
    /// All at once.
    Fanout(fanout::Fanout),
    /// A built-in server with a model.
    Model(model::Model),
}

/// A way through nodes, as a future that owns what it needs.
pub(crate) type Run = Pin<Box<dyn Future<Output = Answer>>>;

/// Runs a request from this node on.
pub(crate) async fn run(lp: Rc<Loop>, ex: Rc<Exchange>, mut way: Way, node: NodeId) -> Answer {
    let graph = lp.graph();
    let mut holds = Holds::default();
    let mut at = node;
    loop {
        if let Some(cost_ns) = way.check {
            match Box::pin(check::step(&lp, &mut way, cost_ns, graph.node(at))).await {
                check::Step::AsRequest => {}
                check::Step::Goes(next) => {
                    at = next;
                    continue;
                }
                check::Step::Answered(answer) => return holds.around(answer),
            }
        }
        let went = match graph.node(at) {
            Node::Pass(next) => Ok(*next),
            Node::Nowhere => Err(Failure::new(Kind::NoTarget)),
            Node::Lb(lb) if lb.sticky.is_some() => {
                return holds.around(Box::pin(lb.stick(lp, ex, way)).await);
            }
            Node::Lb(lb) => lb.pick(&lp, &ex, &mut way).await.map(|(next, hold)| {
                if let Some(hold) = hold {
                    holds.push_inside(Hold::Target(hold));
                }
                next
            }),
            Node::Route(route) => route.choose(&ex, &way),
            Node::Split(split) => Ok(split.choose(&ex, &way)),
            Node::Rate(rate) => Box::pin(rate.take(&lp, &ex, &way)).await,
            Node::Rewrite(rewrite) if rewrite.leaves_responses() => {
                rewrite.request(&ex, &mut way);
                Ok(rewrite.node)
            }
            Node::Queue(queue) if queue.on_cancel == OnCancel::Stop => {
                Box::pin(queue.enter(&lp)).await.map(|slot| {
                    holds.push_inside(slot);
                    queue.node
                })
            }
            Node::Delay(delay) => Ok(Box::pin(delay.pass(&lp, &mut way)).await),
            Node::Warmup(warmup) => Ok(Box::pin(warmup.enter(&lp, &mut way)).await),
            Node::Faulty(faulty) => match Box::pin(faulty.enter(&lp, &mut way)).await {
                Ok(true) => return holds.around(Box::pin(faulty.run(lp, ex, way)).await),
                Ok(false) => Ok(faulty.node),
                Err(failure) => Err(failure),
            },
            Node::Server(server) => {
                let sender = way.begins();
                let answer = server.forward(&lp, &ex, &way).await;
                if let Some(sender) = sender {
                    sender.ends(answer.is_ok());
                }
                return holds.around(answer);
            }
            Node::Answer(own) => return holds.around(Ok(Reply::own(own.clone()))),
            Node::Redirect(redirect) => return holds.around(Ok(Reply::own(redirect.answer(&ex, &way)))),
            Node::Rewrite(rewrite) => return holds.around(Box::pin(rewrite.run(lp, ex, way)).await),
            Node::Buffered(buffered) => return holds.around(Box::pin(buffered.run(lp, ex, way)).await),
            Node::Retry(retry) => return holds.around(Box::pin(retry.clone().run(lp, ex, way)).await),
            Node::Hedge(hedge) => return holds.around(Box::pin(hedge.run(lp, ex, way)).await),
            Node::Timeout(timeout) => return holds.around(Box::pin(timeout.run(lp, ex, way)).await),
            Node::Queue(queue) => return holds.around(Box::pin(queue.clone().run(lp, ex, way)).await),
            Node::Cable(cable) => return holds.around(Box::pin(cable.run(lp, ex, way)).await),
            Node::Flaky(flaky) => return holds.around(Box::pin(flaky.run(lp, ex, way)).await),
            Node::Concurrent(server) => return holds.around(Box::pin(server.run(&lp, way)).await),
            Node::Sequence(sequence) => return holds.around(Box::pin(sequence.run(lp, ex, way)).await),
            Node::Fanout(fanout) => return holds.around(Box::pin(fanout.run(lp, ex, way)).await),
            Node::Model(model) => return holds.around(Box::pin(model.run(lp, ex, way)).await),
        };
        match went {
            Ok(next) => at = next,
            Err(failure) => return holds.fail(failure),
        }
    }
}

/// The same, boxed: for nodes that run what is behind them inside their own future.
pub(crate) fn start(lp: Rc<Loop>, ex: Rc<Exchange>, way: Way, node: NodeId) -> Run {
    Box::pin(run(lp, ex, way, node))
}

#[cfg(test)]
mod tests {
    fn size<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// What is rare is boxed on its way, so that the future of a plain request stays small: it is made for each.
    #[test]
    fn a_request_is_a_small_future() {
        let bytes = size(super::run);
        assert!(bytes <= 768, "{bytes}");
    }
}
