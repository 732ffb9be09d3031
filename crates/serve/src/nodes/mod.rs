//! A request's way through the nodes: one future, in which each node does its part before and after what is behind it.
//!
//! A node that only chooses (balancers, routes, rewriting) is a step of the loop in [`run`]; one that waits or tries again
//! has a file of its own and runs what is behind it as a future inside its own. What is held until the response has come
//! back whole (a balancer's count, a queue's slot, a timeout) travels with the [`Reply`] as a [`Hold`]: dropped, it was
//! cancelled; finished, it learns how the request ended. So cancelling a request is dropping its future.

pub(crate) mod lb;
pub(crate) mod retry;
pub(crate) mod timeout;

use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::event_loop::Loop;
use crate::origin::OriginReply;
use crate::origin::server::Server;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use weir_http1::Edits;
use weir_policy::config::Exclude;
use weir_policy::retry::Tried;
use weir_policy::{Kind, Outcome};
use weir_stats::Key;

/// Index of a node in a [`crate::graph::Graph`].
pub(crate) type NodeId = u32;

/// A node as it is served.
pub(crate) enum Node {
    /// Nothing is done here: a weight, or a model left out before a real server.
    Pass(NodeId),
    /// A real server.
    Server(Rc<Server>),
    /// A balancer.
    Lb(Rc<lb::Lb>),
    /// Further attempts.
    Retry(Rc<retry::Retry>),
    /// An end to waiting.
    Timeout(timeout::Timeout),
}

/// What is behind a node, or how it failed.
pub(crate) type Answer = Result<Reply, Failure>;

/// A way through nodes, as a future that owns what it needs.
pub(crate) type Run = Pin<Box<dyn Future<Output = Answer>>>;

/// The head of a response and what is held until its end.
pub(crate) struct Reply {
    pub from: From,
    pub holds: Holds,
}

/// Where a response comes from.
pub(crate) enum From {
    /// weir's own: `respond`, `redirect`, a built-in server.
    Own(Box<Own>),
    /// An origin.
    Origin(Box<OriginReply>),
}

/// A response of weir's own.
pub(crate) struct Own {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Rc<[u8]>,
}

impl Reply {
    /// The response's status.
    pub fn status(&self) -> u16 {
        match &self.from {
            From::Own(own) => own.status,
            From::Origin(origin) => origin.response.status(),
        }
    }

    /// Nobody wants it: another attempt follows. What is held learns how it ended.
    pub fn discard(self) {
        let (outcome, status) = (self.outcome(), self.status());
        self.holds.finish(outcome, Some(status));
    }

    /// How policies see it.
    pub fn outcome(&self) -> Outcome {
        (self.status() >= 500).then_some(Kind::Status5xx)
    }
}

/// What the way so far means for the nodes behind: cloned where ways part.
#[derive(Clone)]
pub(crate) struct Way {
    /// What choices and work on this way are drawn by.
    pub draw: Key,
    /// Which targets were tried, with the rule of the `retry` around.
    pub tried: Option<(Exclude, Rc<RefCell<Tried>>)>,
    /// (balancer, target) of the attempts of the `hedge` around.
    pub open: Option<Rc<RefCell<Vec<(NodeId, u32)>>>>,
    /// Changes of the request's head by `rewrite`.
    pub edits: Option<Rc<Edits>>,
    /// What work behind is multiplied by (`warmup`, `faulty` in mode `slow`).
    pub factor: f64,
    /// Whether no retry or hedge around has begun a further attempt: only such earn budget.
    pub first: bool,
    /// Bytes of the request's body that are kept for further attempts.
    pub keep: usize,
}

impl Way {
    /// A request's way before its first node.
    pub fn new(draw: Key) -> Way {
        Way { draw, tried: None, open: None, edits: None, factor: 1.0, first: true, keep: 0 }
    }

    /// The same for another attempt or branch: other draws.
    pub fn branch(&self, number: u32) -> Way {
        let mut way = self.clone();
        way.draw = self.draw.with(u64::from(number) + 1);
        way
    }
}

/// Something that a node holds until the response has come back whole. Dropped unfinished, the request was cancelled.
pub(crate) enum Hold {
    /// A balancer's count of a target.
    Target(lb::Picked),
    /// A limit of time.
    Timeout(timeout::Limit),
}

/// What is held, the outermost last.
#[derive(Default)]
pub(crate) struct Holds(SmallVec<[Hold; 2]>);

impl Holds {
    /// One more, inside of all that is put later.
    pub fn push(&mut self, hold: Hold) {
        self.0.push(hold);
    }

    /// The request ended so: innermost first.
    pub fn finish(self, outcome: Outcome, status: Option<u16>) {
        for hold in self.0 {
            match hold {
                Hold::Target(picked) => picked.finish(outcome, status),
                Hold::Timeout(limit) => drop(limit),
            }
        }
    }

    /// Ends with the failure: what it says of targets is counted unless the client is to blame.
    pub fn fail(self, failure: Failure) -> Answer {
        if !failure.is_clients() {
            self.finish(Some(failure.kind), None);
        }
        Err(failure)
    }

    /// The answer from behind, with these holds around its own.
    pub fn around(self, answer: Answer) -> Answer {
        match answer {
            Ok(mut reply) => {
                reply.holds.0.extend(self.0.into_iter().rev());
                Ok(reply)
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Whether a limit of time among them has ended.
    pub fn poll_timeout(&mut self, cx: &mut std::task::Context<'_>, lp: &Loop, ex: &Exchange) -> bool {
        self.0.iter_mut().any(|hold| match hold {
            Hold::Timeout(limit) => limit.has_ended(cx, lp, ex),
            Hold::Target(_) => false,
        })
    }

    /// The Set-Cookie fields that the client is to get.
    pub fn cookies(&self) -> lb::SetCookies<'_> {
        let mut cookies = lb::SetCookies::new();
        for hold in &self.0 {
            if let Hold::Target(picked) = hold
                && let Some(value) = picked.set_cookie()
            {
                cookies.push(("Set-Cookie", value.as_bytes()));
            }
        }
        cookies
    }

    /// From now on no limit of time holds: the connection is a tunnel.
    pub fn end_timeouts(&mut self) {
        self.0.retain(|hold| !matches!(hold, Hold::Timeout(_)));
    }

    /// The client has gone: what goes on regardless does so in the background, the rest is cancelled.
    pub fn cancel(self, lp: &Rc<Loop>, ex: &Rc<Exchange>, reply: OriginReply) {
        let _ = (lp, ex, reply);
    }
}

/// Runs a request from this node on.
pub(crate) async fn run(lp: Rc<Loop>, ex: Rc<Exchange>, mut way: Way, node: NodeId) -> Answer {
    let graph = lp.graph();
    let mut holds = Holds::default();
    let mut at = node;
    loop {
        let answer = match graph.node(at) {
            Node::Pass(next) => {
                at = *next;
                continue;
            }
            Node::Lb(lb) => match lb.pick(&lp, &ex, &mut way).await {
                Ok((next, hold)) => {
                    if let Some(hold) = hold {
                        holds.push(Hold::Target(hold));
                    }
                    at = next;
                    continue;
                }
                Err(failure) => Err(failure),
            },
            Node::Server(server) => server.forward(&lp, &ex, &way).await,
            Node::Retry(retry) => Box::pin(retry.clone().run(lp.clone(), ex, way)).await,
            Node::Timeout(timeout) => Box::pin(timeout.run(lp.clone(), ex, way)).await,
        };
        return holds.around(answer);
    }
}

/// The same, boxed: for nodes that run what is behind them inside their own future.
pub(crate) fn start(lp: Rc<Loop>, ex: Rc<Exchange>, way: Way, node: NodeId) -> Run {
    Box::pin(run(lp, ex, way, node))
}
