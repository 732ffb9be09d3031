//! What a replication adds up, and the laws that it must obey.
//!
//! The engines and the features add to the ledger while they run; `results` reads it at the end.

mod aside;
pub(crate) mod entries;
pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod members;
pub(crate) mod settle;

pub(crate) use aside::SideBooks;
