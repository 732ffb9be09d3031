//! `route([(when(...), node), ...], otherwise=None)`: the first rule that matches decides.
//!
//! A request whose path and its normalised form (dot segments, `//`, `\`, %2f, %5c, %00) match different rules is
//! 400, unless the listener says `paths="raw"`. Draws: nothing.
//!
//! The rules are indexed once for each plan ([`table`]), so what a request costs does not grow with their number.

mod attribute;
mod patterns;
mod table;

#[cfg(test)]
mod tests;

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::view::View;
use crate::exchange::{NodeId, RequestContext};
use std::sync::Arc;
pub(crate) use table::RuleTable;
use weir_plan::MatchInput;
use weir_policy::Kind;

/// The node.
pub(crate) struct Route {
    /// The rules, shared by all loops.
    pub rules: Arc<RuleTable>,
    /// The node of each rule.
    pub nodes: Vec<NodeId>,
    /// The node of the other requests.
    pub otherwise: Option<NodeId>,
}

impl Route {
    /// Chooses the next node.
    pub fn choose(&self, ex: &Exchange, ctx: &RequestContext) -> Result<NodeId, Failure> {
        let view = View::new(ex, ctx.edits.as_deref());
        let chosen = self.first(&view.matched());
        if !ex.listener().raw_paths
            && let Some(normalised) = view.normalised()
            && self.first(&normalised) != chosen
        {
            return Err(Failure::client(400));
        }
        chosen.ok_or(Failure::new(Kind::NoRoute))
    }

    fn first(&self, asked: &impl MatchInput) -> Option<NodeId> {
        self.rules.first(asked).and_then(|rule| self.nodes.get(rule)).copied().or(self.otherwise)
    }
}
