//! `limit.rate(node, per_s, burst=per_s, key=None)`: a token for each request, or 429 with the seconds until there is
//! one.
//!
//! The buckets belong to the process. Requests without the key share one. Draws: nothing.

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::view::View;
use crate::exchange::{NodeId, RequestContext};
use crate::metrics::NodeCounts;
use crate::sync::TryCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_plan::KeySource;
use weir_policy::Kind;
use weir_policy::rate::RateLimit;

/// The status of a request over the limit (RFC 6585, 4).
const TOO_MANY: u16 = 429;

/// The node.
pub(crate) struct Rate {
    /// Its buckets.
    pub buckets: Arc<TryCell<RateLimit>>,
    /// The source of the key; `None`: one bucket for all.
    pub key: Option<KeySource>,
    /// The node behind it.
    pub node: NodeId,
    /// Its counters.
    pub counts: Rc<NodeCounts>,
}

impl Rate {
    /// Takes a token.
    pub async fn take(&self, ex: &Exchange, ctx: &RequestContext) -> Result<NodeId, Failure> {
        let key = self.key.as_ref().and_then(|source| View::new(ex, ctx.edits.as_deref()).key(source));
        match self.buckets.with(|buckets| buckets.take(ex.core.now(), key)).await {
            Ok(()) => Ok(self.node),
            Err(wait_ns) => {
                self.counts.limited.one();
                let seconds = u32::try_from(wait_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX).max(1);
                let failure = Failure::new(Kind::Overloaded);
                Err(Failure { status: TOO_MANY, retry_after_s: Some(seconds), ..failure })
            }
        }
    }
}
