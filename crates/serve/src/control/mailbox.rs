//! What threads tell each other. Each has a mailbox; sending takes no lock that waits and never blocks the sender. Things are
//! named by their identity and epoch, never by an index that another graph may use for something else.

use super::admission::{self, Whose};
use super::event_loop::Loop;
use super::handoff::HandedOver;
use crate::health::target_set::TargetSlot;
use crate::nodes::Id;
use crate::nodes::lb::ToOwner;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use weir_policy::snapshot::Snapshot;

/// Messages that are read before the sockets are asked again.
const AT_ONCE: u32 = 64;

/// What is answered on a thread itself.
pub(crate) type Question = Box<dyn FnOnce(&Rc<Loop>) + Send>;

/// A message to a thread that runs a graph.
pub(crate) enum ToLoop {
    /// From the health monitor: the health of a balancer's targets is another.
    Health { lb: Id, seen: Arc<Snapshot> },
    /// A name has these addresses now.
    Addresses { name: u32, addresses: Arc<[SocketAddr]> },
    /// A connection that another loop has accepted.
    Client(Box<HandedOver>),
    /// Another loop wants to connect to this target, and there may be no more connections.
    CloseIdle { target: u32 },
    /// Another loop has no descriptor left.
    CloseOldest,
    /// A client of another loop waits for a place.
    MakeRoom(Whose),
    /// To the owner: a balancer's target is to go.
    WantsRemoved { lb: Id, target: u32 },
    /// From the owner: a balancer's target is gone.
    Removed { lb: Id, slot: TargetSlot },
    /// Whoever looks from outside (metrics, the admin interface) is answered on the thread itself.
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

/// Reads what the owner of the process's state is told and asked, for ever.
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
        ToLoop::WantsRemoved { lb, target } => {
            if let Some(slot) = lp.monitor().and_then(|monitor| monitor.remove(lb, target)) {
                lp.process.tell_all(|| ToLoop::Removed { lb, slot });
            }
        }
        ToLoop::Removed { lb, slot } => removed(lp, lb, slot),
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
                request.answer(lb);
            }
        }
        ToOwner::Back { lb, ticket, returned } => {
            if let Some(lb) = lp.lb(lb) {
                lb.back(ticket, returned);
            }
        }
    }
}

/// A target is gone: no new picks, its idle connections close where no other way leads there, and what is in flight has
/// `drain_timeout` to end.
fn removed(lp: &Rc<Loop>, id: Id, slot: TargetSlot) {
    let (Some(graph), Some(lb)) = (lp.graph(), lp.lb(id)) else { return };
    lb.remove(slot.index);
    graph.retire_unreachable();
    let (lp, lb) = (lp.clone(), lb.clone());
    lp.core.clone().runtime.spawn(async move {
        lp.core.timers.after(lp.drain_timeout_ns()).await;
        lb.abort(slot.index);
    });
}
