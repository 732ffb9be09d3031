//! Counts of nodes on one thread: further attempts, waiting, limits.

use super::counts::{Count, CountsBy, OutcomeLabel, Outcomes, values};
use super::histogram::Histogram;
use std::cell::OnceCell;
use std::sync::Arc;
use weir_policy::Outcome;

values! {
    /// Why there was no further attempt though the failure allowed one.
    Denied {
        /// The budget is used up.
        Budget "budget",
        /// The method is not idempotent.
        Method "method",
        /// The request's body is not kept.
        Body "body",
        /// An interim response was passed on to the client.
        Head "head",
    }
}

values! {
    /// Whether a further attempt of a `hedge` gave the answer.
    Won { Yes "true", No "false" }
}

values! {
    /// Why a request that came to a queue did not enter.
    Rejected {
        /// The queue is full.
        Full "full",
        /// It waited for too long.
        Timeout "timeout",
    }
}

/// The kind of a node with counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Counting {
    Retry,
    Hedge,
    /// A `queue`, or a balancer whose targets are limited.
    Queue,
    Rate,
}

/// The counters of a node.
pub(crate) struct NodeCounts {
    pub label: Arc<str>,
    pub is: Counting,
    /// Further attempts, by the outcome of the one before.
    pub retries: Outcomes,
    pub denied: CountsBy<Denied, { Denied::COUNT }>,
    pub hedges: CountsBy<Won, { Won::COUNT }>,
    pub rejected: CountsBy<Rejected, { Rejected::COUNT }>,
    /// Requests over the rate.
    pub limited: Count,
    /// The waits of requests that entered; created with the first.
    waited: OnceCell<Box<Histogram>>,
}

impl NodeCounts {
    /// Without counts.
    pub fn new(label: Arc<str>, is: Counting) -> NodeCounts {
        NodeCounts {
            label,
            is,
            retries: Outcomes::default(),
            denied: CountsBy::default(),
            hedges: CountsBy::default(),
            rejected: CountsBy::default(),
            limited: Count::default(),
            waited: OnceCell::new(),
        }
    }

    /// Counts a further attempt, after one with this outcome.
    pub fn retried(&self, outcome: Outcome) {
        self.retries.one(OutcomeLabel(outcome));
    }

    /// Counts a request that entered after this time.
    #[inline]
    pub fn entered(&self, waited_ns: u64) {
        self.waited.get_or_init(Box::default).observe(waited_ns);
    }

    /// The waits of requests that entered; `None`: none did.
    pub fn waited(&self) -> Option<&Histogram> {
        self.waited.get().map(|histogram| &**histogram)
    }
}
