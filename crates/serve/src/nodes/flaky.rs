//! `flaky(p, node, kind="status_5xx")`: fails with probability p after the node behind has done its work. Draws: whether.

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::failure::FailureCause;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use std::rc::Rc;
use weir_model::flaky;
use weir_policy::Kind;
use weir_stats::Key;

/// The node.
pub(crate) struct Flaky {
    /// How often.
    pub p: f64,
    /// How.
    pub kind: Kind,
    /// What is drawn by.
    pub key: Key,
    /// What is behind it.
    pub node: NodeId,
}

impl Flaky {
    /// Runs what is behind, perhaps in vain.
    pub async fn run(&self, ex: Rc<Exchange>, mut ctx: RequestContext) -> Answer {
        let inner = ctx.beside();
        let reply = ex.start(inner, self.node).await?;
        if reply.outcome().is_some() || !flaky::fails(self.p, ctx.way.draw(self.key)) {
            return Ok(reply);
        }
        // Those behind have done their work well.
        reply.discard(&ex);
        Err(Failure::new(self.kind).with_cause(FailureCause::Model(self.kind)))
    }
}
