//! `split([(weight, node), ...], key=None)`: a share of the requests each, by draw or by key.
//!
//! Drawn again for each attempt, and for requests without the key. Draws: the path's.

use crate::exchange::Exchange;
use crate::exchange::view::View;
use crate::exchange::{NodeId, RequestContext};
use weir_plan::KeySource;
use weir_policy::key;
use weir_policy::split::Split as Shares;
use weir_stats::Key;

/// The node.
pub(crate) struct Split {
    /// The key of the draw.
    pub choice: Key,
    /// The share of each node.
    pub shares: Shares,
    /// The nodes of the shares.
    pub nodes: Vec<NodeId>,
    /// The source of the deciding key; `None`: a draw decides.
    pub key: Option<KeySource>,
}

impl Split {
    /// Chooses the next node.
    pub fn choose(&self, ex: &Exchange, ctx: &RequestContext) -> NodeId {
        let key = self.key.as_ref().and_then(|source| View::new(ex, ctx.edits.as_deref()).key(source));
        let bits = key.map_or_else(|| ctx.way.choice(self.choice).bits(), key::spread);
        let at = self.shares.pick(bits) as usize;
        self.nodes[at.min(self.nodes.len().saturating_sub(1))]
    }
}
