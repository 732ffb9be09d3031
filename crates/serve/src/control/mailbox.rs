//! What loops tell each other. Each has a mailbox; sending takes no lock that waits and never blocks the sender.

use crate::control::event_loop::Loop;
use crate::control::handoff::Guest;
use crate::nodes::{Node, NodeId, lb};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use weir_policy::snapshot::Snapshot;
use weir_policy::{Outcome, Ticket};

/// The loop that keeps health and owns balancers that all loops share.
pub(crate) const OWNER: u32 = 0;

/// A message to a loop.
pub(crate) enum ToLoop {
    /// To the keeper of health: a request came back from a target.
    Outcome {
        lb: NodeId,
        target: u32,
        /// Whether it was the one that tried the target.
        probe: bool,
        outcome: Outcome,
        status: Option<u16>,
    },
    /// From the keeper: the health of a balancer's targets is another.
    Health { lb: NodeId, seen: Arc<Snapshot> },
    /// To the owner of a balancer that all loops share: a target is wanted.
    Pick(Box<lb::owner::Wanted>),
    /// To that owner: a request has come back, or (`None`) was cancelled.
    Back { lb: NodeId, ticket: Ticket, came: lb::owner::Came },
    /// A name has these addresses now.
    Addresses { name: u32, addresses: Arc<[SocketAddr]> },
    /// A connection that another loop has accepted.
    Client(Box<Guest>),
    /// Another loop wants to connect to this server, and there may be no more connections.
    CloseIdle { server: NodeId },
    /// A balancer's target is gone.
    Remove { lb: NodeId, target: u32 },
}

/// Reads a loop's mail for ever.
pub(crate) async fn run(lp: Rc<Loop>, mut mail: UnboundedReceiver<ToLoop>) {
    while let Some(message) = mail.recv().await {
        read(&lp, message);
    }
}

fn read(lp: &Rc<Loop>, message: ToLoop) {
    match message {
        ToLoop::Outcome { lb, target, probe, outcome, status } => {
            if let Some(keeper) = lp.keeper() {
                keeper.outcome(lp, lb, target, probe, outcome, status);
            }
        }
        ToLoop::Health { lb, seen } => with(lp, lb, |lb| lb.follow(lp, &seen)),
        ToLoop::Pick(wanted) => with(lp, wanted.lb, |lb| wanted.answer(lp, lb)),
        ToLoop::Back { lb, ticket, came } => with(lp, lb, |lb| lb.back(lp, ticket, came)),
        ToLoop::Addresses { name, addresses } => lp.name_has(name, &addresses),
        ToLoop::Client(guest) => guest.welcome(lp),
        ToLoop::CloseIdle { server } => lp.close_idle(server),
        ToLoop::Remove { lb, target } => with(lp, lb, |lb| lb.remove(lp, target)),
    }
}

fn with(lp: &Rc<Loop>, id: NodeId, act: impl FnOnce(&Rc<lb::Lb>)) {
    let graph = lp.graph();
    if let Some(Node::Lb(lb)) = graph.nodes.get(id as usize) {
        act(lb);
    }
}
