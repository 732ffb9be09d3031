//! The kinds of requests of a scenario, and what nodes choose by.

use weir_model::mix::Mix;
use weir_policy::split::Split;

/// What requests are, and what nodes read of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    pub mix: Mix,
    /// By kind, rewritten ones included: whether it is idempotent; empty: all are GET.
    pub idempotent: Vec<bool>,
    /// By key source, then kind: the hash of what it says; `None`: the request's own key.
    pub keys: Vec<Vec<Option<u64>>>,
    /// Whether anything reads who sends a request.
    pub reads_keys: bool,
    /// Of each `rewrite`: what it makes of each kind. And what each kind was before.
    pub rewrites: Vec<Vec<u32>>,
    pub before: Vec<u32>,
    pub choices: Vec<ChoiceSite>,
    /// List, place and number of each node that chooses.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// A place that chooses a node.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceSite {
    pub by: By,
    /// Member to node.
    pub offset: u32,
    pub stage: u32,
    /// Where a request goes on for which there is no node.
    pub skip: u32,
}

/// What chooses.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// The request's kind: index of the node, [`NOT`] for none.
    Kind(Vec<u32>),
    /// A share, by draw or by key.
    Share { split: Split, key: Option<u32> },
}
