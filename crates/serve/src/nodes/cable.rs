//! `cable(time, node, loss=0.0, resend=None)`: a link, crossed by the request and by its response (its head).
//!
//! A crossing that is lost takes so much longer as sending again takes, or never ends: then nobody answers until somebody
//! gives up. Draws: each crossing, and how often it is lost.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::context::Purpose;
use crate::exchange::reply::Answer;
use crate::nodes::{NodeId, Way, start};
use std::future::pending;
use std::rc::Rc;
use weir_model::crossing;
use weir_model::sampler::Sampler;

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
    pub async fn run(&self, lp: Rc<Loop>, ex: Rc<Exchange>, mut way: Way) -> Answer {
        let (out, back) = self.crossings(&mut way);
        cross(&lp, out).await;
        let answer = start(lp.clone(), ex, way, self.node).await;
        cross(&lp, back).await;
        answer
    }

    /// How long it takes there, and back.
    pub fn crossings(&self, way: &mut Way) -> (Option<u64>, Option<u64>) {
        let out = self.crossing(way, Purpose::Out, Purpose::LossOut);
        (out, self.crossing(way, Purpose::Back, Purpose::LossBack))
    }

    /// How long a crossing takes; `None`: for ever.
    fn crossing(&self, way: &mut Way, time: Purpose, loss: Purpose) -> Option<u64> {
        let ns = self.time.draw(way.draw_at(self.place, time));
        if self.loss == 0.0 {
            return Some(ns);
        }
        let extra = crossing::extra_ns(self.loss, self.resend_ns, way.draw_at(self.place, loss))?;
        Some(ns.saturating_add(extra))
    }
}

/// Takes so long.
pub(crate) async fn cross(lp: &Rc<Loop>, ns: Option<u64>) {
    match ns {
        Some(0) => {}
        Some(ns) => lp.timers.after(ns).await,
        None => pending().await,
    }
}
