//! `delay(time, node)`: work, or waiting, before the node behind. Draws: how long.

use crate::control::event_loop::Loop;
use crate::exchange::context::Purpose;
use crate::nodes::{NodeId, Way};
use std::rc::Rc;
use weir_model::sampler::Sampler;

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
    pub async fn pass(&self, lp: &Rc<Loop>, way: &mut Way) -> NodeId {
        let ns = self.time.draw(way.draw_at(self.place, Purpose::Work));
        let ns = way.scaled(ns);
        if ns > 0 {
            lp.timers.after(ns).await;
        }
        self.node
    }
}
