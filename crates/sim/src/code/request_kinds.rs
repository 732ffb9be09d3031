//! The kinds of requests of a scenario, and what nodes choose by.

use crate::code::StageId;
use weir_model::mix::Mix;
use weir_policy::split::Split;

/// The kinds of requests, and what nodes read of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    pub mix: Mix,
    /// By kind, rewritten ones included: whether it is idempotent; empty: all are GET.
    pub idempotent: Vec<bool>,
    /// By key source, then kind: the hash of its value; `None`: the request's own key.
    pub keys: Vec<Vec<Option<u64>>>,
    /// Whether any node reads a request's client.
    pub reads_keys: bool,
    /// Of each `rewrite`: the kind that it turns each kind into. Then the original of each kind.
    pub rewrites: Vec<Vec<u32>>,
    pub before: Vec<u32>,
    pub choices: Vec<ChoiceSite>,
    /// List, site and number of each node that chooses.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// The site of a choosing node.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceSite {
    pub by: ChoiceRule,
    /// Member to node.
    pub offset: u32,
    pub stage: StageId,
    /// Where a request continues if there is no node for it.
    pub skip: u32,
}

/// What a node chooses by.
#[derive(Clone, Debug)]
pub(crate) enum ChoiceRule {
    /// The request's kind: index of the node, [`NOT`] for none.
    Kind(Vec<u32>),
    /// A share, by draw or by key.
    Share { split: Split, key: Option<u32> },
}
