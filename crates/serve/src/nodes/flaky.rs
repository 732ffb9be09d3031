//! `flaky(p, node, kind="status_5xx")`: fails with probability p after the node behind has done its work. Draws:
//! whether.

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::failure::FailureCause;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use weir_model::flaky;
use weir_net::io::reuse::Shared;
use weir_policy::Kind;
use weir_stats::Key;

/// The node.
pub(crate) struct Flaky {
    /// The probability of a failure.
    pub p: f64,
    /// The kind of failure.
    pub kind: Kind,
    /// The key of the draw.
    pub key: Key,
    /// The node behind it.
    pub node: NodeId,
}

impl Flaky {
    /// Runs what is behind; may then fail.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        let inner = ctx.beside();
        let reply = Exchange::start(&ex, inner, self.node).await?;
        if reply.outcome().is_some() || !flaky::fails(self.p, ctx.way.draw(self.key)) {
            return Ok(reply);
        }
        // The nodes behind did not fail.
        reply.discard(&ex);
        Err(Failure::new(self.kind).with_cause(FailureCause::Model(self.kind)))
    }
}
