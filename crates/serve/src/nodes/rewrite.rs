//! `rewrite(node, path=, set=, remove=, response_set=, response_remove=)`: another path, other fields.
//!
//! The changes travel with the context (the request's) and with the reply (the response's); those of several nodes
//! add up, the inner ones after the outer for requests, the outer after the inner for responses. Routes and keys
//! behind see the new request. Draws: nothing.

use crate::exchange::reply::{Answer, LocalAnswer, Reply, ReplySource};
use crate::exchange::view::View;
use crate::exchange::{Exchange, Failure};
use crate::exchange::{NodeId, RequestContext};
use std::rc::Rc;
use weir_http1::Edits;
use weir_net::io::reuse::Shared;
use weir_plan as plan;
use weir_plan::path::{self, PathRewrite};

/// The node.
pub(crate) struct Rewrite {
    /// The changes.
    pub config: plan::Rewrite,
    /// The node behind it.
    pub node: NodeId,
}

impl Rewrite {
    /// Whether responses pass unchanged.
    pub fn leaves_responses(&self) -> bool {
        self.config.response_set.is_empty() && self.config.response_remove.is_empty()
    }

    /// Adds the changes of the request to its context; returns the node behind.
    ///
    /// # Errors
    /// 414 if the new target would be too long.
    pub fn request(&self, ex: &Exchange, ctx: &mut RequestContext) -> Result<NodeId, Failure> {
        let config = &self.config;
        if config.path.is_none() && config.set.is_empty() && config.remove.is_empty() {
            return Ok(self.node);
        }
        let mut edits = ctx.edits.as_deref().cloned().unwrap_or_default();
        let view = View::new(ex, ctx.edits.as_deref());
        if let Some((from, to)) = &config.path {
            match path::rewritten(from, to, view.target()) {
                PathRewrite::Same => {}
                PathRewrite::To(target) => edits.target = Some(target),
                PathRewrite::TooLong => return Err(Failure::client(414)),
            }
        }
        config.remove.iter().for_each(|name| remove(&mut edits, name));
        config.set.iter().for_each(|(name, template)| set(&mut edits, name, view.fill(template)));
        ctx.edits = Some(Rc::new(edits));
        Ok(self.node)
    }

    /// Changes the request, runs what is behind, changes its response.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        let view = View::new(&ex, ctx.edits.as_deref());
        let values: Vec<Vec<u8>> = self.config.response_set.iter().map(|(_, t)| view.fill(t)).collect();
        let node = self.request(&ex, &mut ctx)?;
        let mut reply = Exchange::start(&ex, ctx, node).await?;
        match &mut reply.source {
            ReplySource::Origin(origin) => {
                self.config.response_remove.iter().for_each(|name| remove(&mut origin.edits, name));
                for ((name, _), value) in self.config.response_set.iter().zip(values) {
                    set(&mut origin.edits, name, value);
                }
                Ok(reply)
            }
            ReplySource::Local(own) => {
                Ok(Reply { source: ReplySource::Local(self.own(own, values)), holds: reply.holds })
            }
        }
    }

    /// The same for a local answer.
    fn own(&self, own: &LocalAnswer, values: Vec<Vec<u8>>) -> Rc<LocalAnswer> {
        let mut own = own.clone();
        let config = &self.config;
        let gone = |name: &str| {
            let is = |n: &String| n.eq_ignore_ascii_case(name);
            config.response_remove.iter().any(is) || config.response_set.iter().any(|(n, _)| is(n))
        };
        own.headers.retain(|(name, _)| !gone(name));
        if config.response_remove.iter().any(|n| n.eq_ignore_ascii_case("content-type")) {
            // The default one, which is not in the list.
            own.headers.push(("Content-Type".to_owned(), String::new()));
        }
        for ((name, _), value) in config.response_set.iter().zip(values) {
            own.headers.push((name.clone(), String::from_utf8_lossy(&value).into_owned()));
        }
        Rc::new(own)
    }
}

fn remove(edits: &mut Edits, name: &str) {
    edits.set.retain(|(n, _)| !n.eq_ignore_ascii_case(name.as_bytes()));
    if !edits.remove.iter().any(|n| n.eq_ignore_ascii_case(name.as_bytes())) {
        edits.remove.push(name.as_bytes().to_vec());
    }
}

fn set(edits: &mut Edits, name: &str, value: Vec<u8>) {
    remove(edits, name);
    edits.remove.retain(|n| !n.eq_ignore_ascii_case(name.as_bytes()));
    edits.set.push((name.as_bytes().to_vec(), value));
}
