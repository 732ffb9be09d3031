//! A server that no balancer is before: nobody picks it, so it counts its requests itself, as a pool of one.

use super::server::Server;
use crate::exchange::hold::{Counts, End, Picked};
use crate::exchange::{Exchange, RequestContext};
use crate::metrics::LbCounts;
use std::rc::Rc;
use weir_net::io::Core;
use weir_policy::{Kind, Ticket};

/// What it counts by.
pub(crate) struct Alone {
    core: Rc<Core>,
    pub counts: LbCounts,
}

impl Alone {
    /// By these, of which it is the only target.
    pub fn new(core: Rc<Core>, counts: LbCounts) -> Rc<Alone> {
        Rc::new(Alone { core, counts })
    }
}

impl Server {
    /// Where no balancer counts a request: what is to be held until it is back.
    pub fn counted(&self, ex: &Exchange, ctx: &RequestContext) -> Option<Picked> {
        let alone = self.alone.get().filter(|_| ctx.abort.is_empty())?;
        alone.counts.begins(0);
        let ticket = Ticket { target: 0, probe: false, at_ns: ex.core.recent() };
        Some(Picked::new(alone.clone(), self.id, ticket, None, None))
    }
}

impl Counts for Alone {
    fn headed(&self, ticket: Ticket) {
        self.counts.headed(self.core.recent().saturating_sub(ticket.at_ns));
    }

    fn came_back(self: Rc<Self>, ticket: Ticket, end: End) {
        self.counts.ended(ticket.target, end.outcome);
    }

    fn was_cancelled(self: Rc<Self>, ticket: Ticket) {
        self.counts.ended(ticket.target, Some(Kind::Cancelled));
    }
}
