//! `sequence(nodes)`: one after another, to the first error. In built-in servers only. Draws: nothing of its own.

use crate::exchange::Exchange;
use crate::exchange::reply::{Answer, LocalAnswer, Reply};
use crate::exchange::{NodeId, RequestContext};
use std::rc::Rc;
use weir_net::io::reuse::Shared;

/// The node.
pub(crate) struct Sequence {
    /// The nodes behind it, in order.
    pub nodes: Vec<NodeId>,
    /// Its answer if nothing is behind it.
    pub empty: Rc<LocalAnswer>,
}

impl Sequence {
    /// Runs them; the last answer is the result.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        let mut last = Reply::own(self.empty.clone());
        for node in &self.nodes {
            last.discard(&ex);
            // The answer of the previous node is not the answer of this one.
            ex.load.set(None);
            let mut inner = ctx.beside();
            inner.way.goes_on();
            last = Exchange::start(&ex, inner, *node).await?;
            if last.outcome().is_some() {
                break;
            }
        }
        Ok(last)
    }
}
