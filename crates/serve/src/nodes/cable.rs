//! `cable(time, node, loss=0.0, resend=None)`: a link, crossed by the request and by its response (its head).
//!
//! A crossing that is lost takes so much longer as sending again takes, or never ends: then nobody answers until somebody
//! gives up. Draws: each crossing, and how often it is lost.

use crate::exchange::Exchange;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use std::future::pending;
use std::rc::Rc;
use weir_model::crossing;
use weir_model::sampler::Sampler;
use weir_net::io::Core;
use weir_stats::Key;

/// What a cable draws by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub out: Key,
    pub back: Key,
    pub lost_out: Key,
    pub lost_back: Key,
}

/// The node.
pub(crate) struct Cable {
    /// One crossing.
    pub time: Sampler,
    /// The share of crossings that are lost.
    pub loss: f64,
    /// A lost one is sent again after this, ns.
    pub resend_ns: Option<u64>,
    /// What is drawn by: the times out and back, whether they are lost.
    pub keys: Keys,
    /// What is behind it.
    pub node: NodeId,
}

impl Cable {
    /// There and back.
    pub async fn run(&self, ex: Rc<Exchange>, mut ctx: RequestContext) -> Answer {
        cross(&ex.core, self.out(&mut ctx)).await;
        let inner = ctx.beside();
        let answer = ex.start(inner, self.node).await.map(|reply| reply.leaves(&ex));
        cross(&ex.core, self.back(&mut ctx)).await;
        answer
    }

    /// How long it takes there; `None`: for ever.
    pub fn out(&self, ctx: &mut RequestContext) -> Option<u64> {
        self.crossing(ctx, self.keys.out, self.keys.lost_out)
    }

    /// How long it takes back.
    pub fn back(&self, ctx: &mut RequestContext) -> Option<u64> {
        self.crossing(ctx, self.keys.back, self.keys.lost_back)
    }

    fn crossing(&self, ctx: &mut RequestContext, time: Key, loss: Key) -> Option<u64> {
        let ns = self.time.draw(ctx.way.draw(time));
        if self.loss == 0.0 {
            return Some(ns);
        }
        let extra = crossing::extra_ns(self.loss, self.resend_ns, ctx.way.draw(loss))?;
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
