//! `split([(weight, node), ...], key=None)`: a share of the requests each, by draw or by key.
//!
//! Drawn afresh for each attempt. A request without the key that is asked for is drawn as well. Draws: the way's.

use crate::exchange::Exchange;
use crate::exchange::view::View;
use crate::exchange::{NodeId, RequestContext};
use weir_plan::KeySource;
use weir_policy::key;
use weir_policy::split::Split as Shares;
use weir_stats::Key;

/// The node.
pub(crate) struct Split {
    /// What it chooses by.
    pub choice: Key,
    /// Who gets how much.
    pub shares: Shares,
    /// Where the shares go.
    pub nodes: Vec<NodeId>,
    /// What decides.
    pub key: Option<KeySource>,
}

impl Split {
    /// Where the request goes on.
    pub fn choose(&self, ex: &Exchange, ctx: &RequestContext) -> NodeId {
        let key = self.key.as_ref().and_then(|source| View::new(ex, ctx.edits.as_deref()).key(source));
        let bits = key.map_or_else(|| ctx.way.choice(self.choice).bits(), key::spread);
        let at = self.shares.pick(bits) as usize;
        self.nodes[at.min(self.nodes.len().saturating_sub(1))]
    }
}
