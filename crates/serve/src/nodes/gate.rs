//! `gate(node, ramp=60*s, flap="even", ...)`: answers health checks of a process that has just begun. What it decides is
//! [`weir_policy::gate`].
//!
//! In a built-in server: requests pass, and are counted; a check that the node behind passes is answered by the gate, for the address
//! that it came from. Its state belongs to the process. Draws: nothing.

use crate::exchange::hold::Holds;
use crate::exchange::reply::{Answer, LocalAnswer, Reply};
use crate::exchange::{Exchange, NodeId, RequestContext, built_in};
use crate::sync::TryCell;
use crate::sync::gate::SharedGate;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::Core;
use weir_net::io::reuse::Shared;
use weir_policy::gate::{Asker, GateArgs, OtherGate, Place, asker_text};

/// The node.
pub(crate) struct Gate {
    /// Its arguments, which a reload may change.
    pub args: GateArgs,
    /// The name of the process, which orders its askers.
    pub id: String,
    /// Its state.
    pub state: Arc<TryCell<SharedGate>>,
    /// The other gates of its place, where it judges by them, by number.
    pub others: Rc<[(u32, Arc<TryCell<SharedGate>>)]>,
    /// The node behind it.
    pub node: NodeId,
    /// What an asker is answered that is not let in.
    pub closed: Rc<LocalAnswer>,
}

impl Gate {
    /// A request passes.
    pub async fn enter(&self) -> NodeId {
        self.state.with(|state| state.gate.enter()).await;
        self.node
    }

    /// Answers a check; one by a connection alone passes. `holds`: what it holds before.
    pub async fn check(&self, ex: Shared<Exchange>, ctx: RequestContext, holds: Holds) -> Answer {
        holds.around(self.judge(ex, ctx).await)
    }

    async fn judge(&self, ex: Shared<Exchange>, ctx: RequestContext) -> Answer {
        if built_in::connects_only(&ex.request) {
            return Exchange::start(&ex, ctx, self.node).await;
        }
        let core: Rc<Core> = ex.core.clone();
        // A socket without addresses does not leave this host.
        let from = ex.peer_address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        self.state.with(|state| state.gate.asked(core.now())).await;
        let reply = Exchange::start(&ex, ctx, self.node).await?;
        let is_well = reply.outcome().is_none();
        let others = self.others(core.now()).await;
        let answer = self
            .state
            .with(|state| {
                state.gate.configure(&self.args);
                let place = Place::new(self.args.flap, &self.id, &asker_text(from));
                let number = state.number(from);
                state.gate.answer(core.now(), Asker { number, place }, is_well, &others)
            })
            .await;
        if !is_well || answer.is_healthy() {
            return Ok(reply);
        }
        reply.discard(&ex);
        Ok(Reply::own(self.closed.clone()))
    }

    /// The other gates of its place that run and are not held.
    async fn others(&self, now_ns: u64) -> Vec<OtherGate> {
        let mut found = Vec::with_capacity(self.others.len());
        for (number, other) in self.others.iter() {
            found.extend(other.with(|state| state.as_other(*number, now_ns)).await);
        }
        found
    }
}
