//! `cable(time, node, loss=0.0, resend=None)`: a link, crossed by the request and by its response (its head).
//!
//! A lost crossing takes the time of sending again in addition, or never ends: then there is no answer until a
//! timeout or the client gives up. It acts before built-in servers, and before real ones with `--inject`. Draws: each
//! crossing, and how often it is lost.

use crate::exchange::Exchange;
use crate::exchange::reply::Answer;
use crate::exchange::{NodeId, RequestContext};
use std::future::pending;
use weir_model::crossing;
use weir_model::sampler::Sampler;
use weir_net::io::Core;
use weir_net::io::reuse::Shared;
use weir_stats::Key;

/// The keys of a cable's draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub out: Key,
    pub back: Key,
    pub lost_out: Key,
    pub lost_back: Key,
}

/// The node.
pub(crate) struct Cable {
    /// The time of one crossing.
    pub time: Sampler,
    /// The share of crossings that are lost.
    pub loss: f64,
    /// The time until a lost crossing is sent again, ns; `None`: never.
    pub resend_ns: Option<u64>,
    /// The keys of the draws: the times out and back, whether they are lost.
    pub keys: Keys,
    /// The node behind it.
    pub node: NodeId,
}

impl Cable {
    /// Crosses to the node behind, and back with its answer.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        cross(&ex.core, self.out(&mut ctx)).await;
        let inner = ctx.beside();
        let answer = Exchange::start(&ex, inner, self.node).await.map(|reply| reply.leaves(&ex));
        cross(&ex.core, self.back(&mut ctx)).await;
        answer
    }

    /// The time of the crossing there, ns; `None`: forever.
    pub fn out(&self, ctx: &mut RequestContext) -> Option<u64> {
        self.crossing(ctx, self.keys.out, self.keys.lost_out)
    }

    /// The time of the crossing back, ns; `None`: forever.
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

/// Waits `ns`; `None`: forever.
pub(crate) async fn cross(core: &Core, ns: Option<u64>) {
    match ns {
        Some(0) => {}
        Some(ns) => core.timers.after(ns).await,
        None => pending().await,
    }
}
