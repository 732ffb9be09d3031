//! `flaky(p, node, kind="status_5xx")`: fails with probability p after the node behind has done its work. Draws: whether.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::context::Purpose;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::reply::Answer;
use crate::nodes::{NodeId, Way, start};
use std::rc::Rc;
use weir_model::flaky;
use weir_policy::Kind;

/// The node.
pub(crate) struct Flaky {
    /// How often.
    pub p: f64,
    /// How.
    pub kind: Kind,
    /// Where it is in the text.
    pub place: u32,
    /// What is behind it.
    pub node: NodeId,
}

impl Flaky {
    /// Runs what is behind, perhaps in vain.
    pub async fn run(&self, lp: Rc<Loop>, ex: Rc<Exchange>, mut way: Way) -> Answer {
        let fails = flaky::fails(self.p, way.draw_at(self.place, Purpose::Failure));
        let reply = start(lp.clone(), ex.clone(), way, self.node).await?;
        if reply.outcome().is_some() || !fails {
            return Ok(reply);
        }
        // Those behind have done their work well.
        reply.discard(&lp, &ex);
        Err(Failure::new(self.kind).by(Why::Model(self.kind)))
    }
}
