//! What a replication adds up, and the laws that it must obey.

pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod settle;
