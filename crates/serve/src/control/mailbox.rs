//! The mail of a thread, as it is read.

use crate::accept::{loop_assignment, room};
use crate::nodes::lb::ToOwner;
use crate::reload::adopt;
use crate::sync::panics::{self, caught};
use crate::threads::event_loop::Loop;
use crate::threads::mail::ToLoop;
use std::rc::Rc;
use tokio::sync::mpsc::UnboundedReceiver;

/// Messages that are read before the sockets are polled again.
const AT_ONCE: u32 = 64;

/// Reads a thread's mail for ever.
pub(crate) async fn run(lp: Rc<Loop>, mut mail: UnboundedReceiver<ToLoop>) {
    let mut read_now = 0;
    while let Some(message) = mail.recv().await {
        guard(&lp, || read(&lp, message));
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
        guard(&lp, || read_as_owner(&lp, message));
        read_now += 1;
        if read_now >= AT_ONCE {
            read_now = 0;
            lp.core.runtime.next_turn().await;
        }
    }
}

/// Reads a message. A panic, a defect of weir, loses the message and is logged; the next ones are read.
fn guard(lp: &Loop, read: impl FnOnce()) {
    if caught(read).is_err() {
        lp.process.errors.urgent(|| format!("a defect of weir, please report it: {}", panics::last()));
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
        ToLoop::Client(client) => loop_assignment::serve(lp, *client),
        ToLoop::CloseIdle { target } => lp.targets.close_idle(target),
        ToLoop::CloseOldest => drop(room::free_descriptor(lp)),
        ToLoop::MakeRoom(whose) => room::make_room_here(lp, whose),
        ToLoop::Build(generation, done) => adopt::prepare(lp, generation, done),
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
        ToOwner::Back { lb, ticket, departure } => {
            if let Some(lb) = lp.lb(lb) {
                lb.back(ticket, departure);
            }
        }
    }
}
