//! Runs replications and sums them up to results, with warnings and expectations.
//!
//! It starts engines and reads their ledgers; no engine depends on anything here.

mod balancers;
pub mod connections;
pub(crate) mod expect;
pub(crate) mod gather;
pub(crate) mod job;
pub(crate) mod latency;
pub mod over_time;
pub(crate) mod precision;
pub(crate) mod replicate;
pub(crate) mod rerun;
pub(crate) mod result;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod settling;
pub(crate) mod shard;
pub(crate) mod summary;
pub(crate) mod threads;
pub(crate) mod timetable;
pub(crate) mod warnings;
pub(crate) mod watch;
