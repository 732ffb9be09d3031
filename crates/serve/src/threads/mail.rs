//! Messages between threads. Each has a mailbox; sending takes no lock that waits and never blocks the sender.
//! Messages refer to things by their identity, never by a number that another graph may use for something else.

use super::event_loop::Loop;
use super::generation::{Generation, Reload};
use super::transit::HandedOver;
use crate::nodes::Id;
use crate::nodes::lb::HealthUpdate;
use crate::sync::channel::Sender;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// A question that is answered on the thread itself.
pub(crate) type Question = Box<dyn FnOnce(&Rc<Loop>) + Send>;

/// Which idle connection makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleScope {
    /// Any of a listener.
    Listener(usize),
    /// Any of a listener from one address.
    Address(usize, IpAddr),
    /// Any at all.
    Anybody,
}

/// A message to a thread that runs a graph.
pub(crate) enum ToLoop {
    /// From the health monitor: the health of a balancer's targets has changed.
    Health { lb: Id, seen: Arc<HealthUpdate> },
    /// A name has these addresses now.
    Addresses { name: u32, addresses: Arc<[SocketAddr]> },
    /// A connection that another loop has accepted.
    Client(Box<HandedOver>),
    /// Another loop wants to connect to this target, and there may be no more connections.
    CloseIdle { target: u32 },
    /// Another loop has no descriptor left.
    CloseOldest,
    /// A client of another loop waits for room.
    MakeRoom(IdleScope),
    /// Build the graph of a reload that will follow, and send a message when it is built.
    Build(Arc<Generation>, Sender<()>),
    /// A reload. To the owner first, which passes it on with the health of each balancer in it.
    Reload(Box<Reload>),
    /// A question of the admin interface or a scrape, answered on the thread itself.
    Ask(Question),
}
