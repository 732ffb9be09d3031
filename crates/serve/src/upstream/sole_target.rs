//! A server without a balancer in front: it counts its requests itself, as a pool of one.

use super::server::Server;
use crate::exchange::hold::{Completion, InFlightCounter, TargetHold};
use crate::exchange::reply::Reply;
use crate::exchange::{Exchange, RequestContext};
use crate::metrics::LbCounts;
use std::rc::Rc;
use weir_net::io::Core;
use weir_policy::retry::BalancerId;
use weir_policy::{Kind, TargetId, Ticket};

/// The counters of such a server.
pub(crate) struct SoleTarget {
    core: Rc<Core>,
    pub counts: LbCounts,
}

impl SoleTarget {
    /// Uses these counters, of which it is the only target.
    pub fn new(core: Rc<Core>, counts: LbCounts) -> Rc<SoleTarget> {
        Rc::new(SoleTarget { core, counts })
    }
}

impl Server {
    /// Counts a request that no balancer counts; the hold lasts until it has come back.
    pub fn counted(&self, ex: &Exchange, ctx: &RequestContext) -> Option<TargetHold> {
        let alone = self.alone.get().filter(|_| ctx.abort.is_empty())?;
        alone.counts.begins(TargetId(0));
        let ticket = Ticket { target: TargetId(0), probe: false, met: 0, at_ns: ex.core.recent() };
        Some(TargetHold::new(alone.clone(), BalancerId(self.id), ticket, None, None))
    }
}

impl InFlightCounter for SoleTarget {
    fn on_head(&self, ticket: Ticket, _reply: &Reply) {
        let now_ns = self.core.recent();
        self.counts.headed(now_ns, ticket.target, now_ns.saturating_sub(ticket.at_ns));
    }

    fn on_completed(self: Rc<Self>, ticket: Ticket, end: Completion) {
        self.counts.ended(self.core.recent(), ticket.target, end.outcome);
    }

    fn on_cancelled(self: Rc<Self>, ticket: Ticket) {
        self.counts.ended(self.core.recent(), ticket.target, Some(Kind::Cancelled));
    }
}
