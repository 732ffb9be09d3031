//! `cable(time, node, loss=0.0, resend=None)`: a link, crossed by the request and by its response (its head).
//!
//! A crossing that is lost takes so much longer as sending again takes, or never ends: then nobody answers until somebody
//! gives up. Draws: each crossing, and how often it is lost.

use crate::exchange::Exchange;
use crate::exchange::context::Purpose;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use std::future::pending;
use std::rc::Rc;
use weir_model::crossing;
use weir_model::sampler::Sampler;
use weir_net::io::Core;

/// The node.
pub(crate) struct Cable {
    /// One crossing.
    pub time: Sampler,
    /// The share of crossings that are lost.
    pub loss: f64,
    /// A lost one is sent again after this, ns.
    pub resend_ns: Option<u64>,
    /// Where it is in the text.
    pub place: u32,
    /// What is behind it.
    pub node: NodeId,
}

impl Cable {
    /// There and back.
    pub async fn run(&self, ex: Rc<Exchange>, mut ctx: RequestContext) -> Answer {
        let (out, back) = self.crossings(&mut ctx);
        cross(&ex.core, out).await;
        let answer = ex.start(ctx, self.node).await;
        cross(&ex.core, back).await;
        answer
    }

    /// How long it takes there, and back.
    pub fn crossings(&self, ctx: &mut RequestContext) -> (Option<u64>, Option<u64>) {
        let out = self.crossing(ctx, Purpose::Out, Purpose::LossOut);
        (out, self.crossing(ctx, Purpose::Back, Purpose::LossBack))
    }

    /// How long a crossing takes; `None`: for ever.
    fn crossing(&self, ctx: &mut RequestContext, time: Purpose, loss: Purpose) -> Option<u64> {
        let ns = self.time.draw(ctx.draw_at(self.place, time));
        if self.loss == 0.0 {
            return Some(ns);
        }
        let extra = crossing::extra_ns(self.loss, self.resend_ns, ctx.draw_at(self.place, loss))?;
        Some(ns.saturating_add(extra))
    }
}

/// Takes so long.
pub(crate) async fn cross(core: &Core, ns: Option<u64>) {
    match ns {
        Some(0) => {}
        Some(ns) => core.timers.after(ns).await,
        None => pending().await,
    }
}
