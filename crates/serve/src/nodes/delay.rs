//! `delay(time, node)`: work, or waiting, before the node behind. Draws: how long.

use crate::exchange::{NodeId, RequestContext};
use crate::sync::timeline::LocalTimeLine;
use std::rc::Rc;
use weir_model::sampler::Sampler;
use weir_net::io::Core;
use weir_stats::Key;

/// The node.
pub(crate) struct Delay {
    /// The time.
    pub time: Sampler,
    /// The key of the draw.
    pub key: Key,
    /// The process around it that pauses.
    pub process: Option<Rc<LocalTimeLine>>,
    /// The node behind it.
    pub node: NodeId,
}

impl Delay {
    /// Waits.
    pub async fn pass(&self, core: &Core, ctx: &mut RequestContext) -> NodeId {
        let ns = self.time.draw(ctx.way.draw(self.key));
        let ns = ctx.scaled(ns);
        match &self.process {
            Some(process) => core.timers.sleep_until(process.end_of(core.now(), ns)).await,
            None if ns > 0 => core.timers.after(ns).await,
            None => {}
        }
        self.node
    }
}
