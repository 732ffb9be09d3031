//! From replications to results: running them, summing them up, warnings, expectations.

pub(crate) mod expect;
pub(crate) mod gather;
pub(crate) mod job;
pub(crate) mod latency;
pub(crate) mod precision;
pub(crate) mod replicate;
pub(crate) mod rerun;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod shard;
pub(crate) mod summary;
pub(crate) mod warnings;
