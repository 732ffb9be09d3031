//! Messages between threads. Each has a mailbox; sending takes no lock that waits and never blocks the sender.
//! Messages refer to things by their identity, never by a number that another graph may use for something else.

use super::admission::{self, IdleScope};
use super::adopt::{self, Reload};
use super::event_loop::Loop;
use super::handoff::HandedOver;
use crate::nodes::Id;
use crate::nodes::lb::{HealthUpdate, ToOwner};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// Messages that are read before the sockets are polled again.
const AT_ONCE: u32 = 64;

/// A question that is answered on the thread itself.
pub(crate) type Question = Box<dyn FnOnce(&Rc<Loop>) + Send>;

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
    /// A reload. To the owner first, which passes it on with the health of each balancer in it.
    Reload(Box<Reload>),
    /// A question of the admin interface or a scrape, answered on the thread itself.
    Ask(Question),
}

/// Reads a thread's mail for ever.
pub(crate) async fn run(lp: Rc<Loop>, mut mail: UnboundedReceiver<ToLoop>) {
    let mut read_now = 0;
    while let Some(message) = mail.recv().await {
        read(&lp, message);
        read_now += 1;
        if read_now >= AT_ONCE {
            read_now = 0;
            lp.core.runtime.next_turn().await;
        }
    }
}

/// Reads the mail of the owner of the process's state, for ever.
pub(crate) async fn run_owner(lp: Rc<Loop>, mut mail: UnboundedReceiver<ToOwner>) {
    let mut read_now = 0;
    while let Some(message) = mail.recv().await {
        read_as_owner(&lp, message);
        read_now += 1;
        if read_now >= AT_ONCE {
            read_now = 0;
            lp.core.runtime.next_turn().await;
        }
    }
}

fn read(lp: &Rc<Loop>, message: ToLoop) {
    match message {
        ToLoop::Health { lb, seen } => {
            if let Some(lb) = lp.lb(lb) {
                lb.follow(&seen);
            }
        }
        ToLoop::Addresses { name, addresses } => {
            lp.targets.name_has(lp.core.now(), name, &addresses);
            if let Some(monitor) = lp.monitor() {
                monitor.look_at_names();
            }
        }
        ToLoop::Client(client) => client.serve(lp),
        ToLoop::CloseIdle { target } => lp.targets.close_idle(target),
        ToLoop::CloseOldest => drop(lp.targets.close_oldest()),
        ToLoop::MakeRoom(whose) => drop(admission::close_idle(lp, whose)),
        ToLoop::Reload(reload) => adopt::adopt(lp, *reload),
        ToLoop::Ask(ask) => ask(lp),
    }
}

fn read_as_owner(lp: &Loop, message: ToOwner) {
    match message {
        ToOwner::Outcome { lb, target, probe, outcome, status } => {
            if let Some(monitor) = lp.monitor() {
                monitor.outcome(lb, target, probe, outcome, status);
            }
        }
        ToOwner::Pick(request) => {
            if let Some(lb) = lp.lb(request.lb) {
                request.answer(&lb);
            }
        }
        ToOwner::Back { lb, ticket, returned } => {
            if let Some(lb) = lp.lb(lb) {
                lb.back(ticket, returned);
            }
        }
    }
}
