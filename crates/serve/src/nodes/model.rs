//! `server(name, model=...)` without address: a built-in server. Its model does the work, and it answers. Draws:
//! nothing.

use crate::exchange::Exchange;
use crate::exchange::reply::{Answer, LocalAnswer, Reply, ReplySource};
use crate::exchange::{NodeId, RequestContext};
use std::rc::Rc;
use weir_net::io::reuse::Shared;

/// The node.
pub(crate) struct Model {
    /// The root node of its model.
    pub root: NodeId,
    /// Its answer.
    pub answer: Rc<LocalAnswer>,
}

impl Model {
    /// Runs the model; the answer of its own leaf becomes this server's answer.
    pub async fn run(&self, ex: Shared<Exchange>, ctx: RequestContext) -> Answer {
        let reply = Exchange::start(&ex, ctx, self.root).await?;
        match &reply.source {
            ReplySource::Local(own) if own.by_server => {
                let own = Reply { source: ReplySource::Local(self.answer.clone()), holds: reply.holds };
                Ok(own)
            }
            _ => Ok(reply),
        }
    }
}
