//! The nodes, a file for each: what it does with a request before and after what is behind it. They know exchanges
//! and targets, no bytes of a protocol, and of their graph only how to run a request from another node.
//!
//! A node that only chooses or waits (balancers, routes, queues, delays) is a step of the loop that runs them; one
//! that tries again, limits or acts on the way back runs what is behind it as a future inside its own. What is held
//! until the response has come back completely (a balancer's count, a queue's permit, a timeout) travels with the
//! reply as a [`crate::exchange::hold::Hold`]: dropped, it was cancelled; finished, it is given the request's outcome.
//! So cancelling a request is dropping its future. A local answer is complete at once: nothing is held for it any
//! longer.

pub(crate) mod buffered;
pub(crate) mod cable;
pub(crate) mod check;
pub(crate) mod concurrent;
pub(crate) mod delay;
pub(crate) mod fanout;
pub(crate) mod faulty;
pub(crate) mod flaky;
pub(crate) mod gate;
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
pub(crate) mod timeout;
pub(crate) mod warmup;

use crate::exchange::NodeId;
use crate::exchange::reply::LocalAnswer;
use crate::upstream::server::Server;
use std::rc::Rc;

/// The name of a node among threads: its identity (`docs/spec/operating.md#identity`), interned, the same in every
/// graph that has the node. A node's number means something within one graph only; the indices of a balancer's
/// targets are the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub u32);

/// A node as it is served.
pub(crate) enum Node {
    /// A node that no request reaches on this thread.
    Nowhere,
    /// A node without effect: a weight, or a model left out before a real server.
    Pass(NodeId),
    /// A real server, or the way to a built-in one.
    Server(Rc<Server>),
    /// An answer that is ready: `respond`, a built-in server without model.
    Answer(Rc<LocalAnswer>),
    /// A redirection.
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
    /// Buffers small messages.
    Buffered(buffered::Buffered),
    /// Further attempts.
    Retry(Rc<retry::Retry>),
    /// Attempts at once.
    Hedge(hedge::Hedge),
    /// A time limit.
    Timeout(timeout::Timeout),
    /// A semaphore and its wait queue.
    Queue(Rc<queue::Queue>),
    /// Work or waiting.
    Delay(delay::Delay),
    /// A link.
    Cable(cable::Cable),
    /// A process that fails and recovers.
    Faulty(faulty::Faulty),
    /// Random errors.
    Flaky(flaky::Flaky),
    /// Slow at first.
    Warmup(warmup::Warmup),
    /// Health checks that flap while a process is new.
    Gate(gate::Gate),
    /// A server that shares its cores.
    Concurrent(Rc<concurrent::Concurrent>),
    /// One after another.
    Sequence(sequence::Sequence),
    /// All at once.
    Fanout(fanout::Fanout),
    /// A built-in server with a model.
    Model(model::Model),
}
