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
    /// Of each `rewrite`: what it makes of the kinds. Then the original of each kind.
    pub rewrites: Vec<RewriteTable>,
    pub before: Vec<u32>,
    pub choices: Vec<ChoiceSite>,
    /// List, site and number of each node that chooses.
    pub nodes: Vec<(u32, u32, u32)>,
}

/// The kinds that a `rewrite` changes, ascending, and what they become.
#[derive(Clone, Debug)]
pub(crate) struct RewriteTable(Vec<(u32, u32)>);

impl RewriteTable {
    /// From the pairs, ascending.
    pub fn new(changes: impl Iterator<Item = (u32, u32)>) -> RewriteTable {
        RewriteTable(changes.collect())
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a kind is behind it.
    pub fn behind(&self, kind: u32) -> u32 {
        let found = self.0.binary_search_by_key(&kind, |(from, _)| *from);
        found.map_or(kind, |at| self.0[at].1)
    }
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
