//! `delay(time, node)`: work, or waiting, before the node behind. Draws: how long.

use crate::exchange::context::Purpose;
use crate::exchange::{NodeId, RequestContext};
use weir_model::sampler::Sampler;
use weir_net::io::Core;

/// The node.
pub(crate) struct Delay {
    /// How long.
    pub time: Sampler,
    /// Where it is in the text: what is drawn there depends on that.
    pub place: u32,
    /// What is behind it.
    pub node: NodeId,
}

impl Delay {
    /// Waits.
    pub async fn pass(&self, core: &Core, ctx: &mut RequestContext) -> NodeId {
        let ns = self.time.draw(ctx.draw_at(self.place, Purpose::Work));
        let ns = ctx.scaled(ns);
        if ns > 0 {
            core.timers.after(ns).await;
        }
        self.node
    }
}
