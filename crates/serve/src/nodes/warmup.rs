//! `warmup(node, factor, requests=None, time=None, ...)`: the work behind takes longer at first, and after a crash above.
//!
//! Its state belongs to the process; the timeline of a crash restarts it ([`crate::sync::timeline`]). Draws:
//! nothing.

use crate::exchange::{NodeId, RequestContext};
use crate::sync::TryCell;
use std::sync::Arc;
use weir_model::warmup::{self, Law};
use weir_net::io::Core;

/// The node.
pub(crate) struct Warmup {
    /// How it warms up.
    pub law: Law,
    /// How warm it is.
    pub state: Arc<TryCell<warmup::Warmup>>,
    /// The node behind it.
    pub node: NodeId,
}

impl Warmup {
    /// Multiplies the work behind.
    pub async fn enter(&self, core: &Core, ctx: &mut RequestContext) -> NodeId {
        ctx.factor *= self.state.with(|state| state.enter(&self.law, core.now())).await;
        self.node
    }
}
