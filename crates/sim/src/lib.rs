//! The simulator: a plan in virtual time.
//!
//! A scenario is compiled once to linear code; replications run it independently, spread over threads, and are summed up in
//! their order, so no byte of a result depends on the number of threads. The simulator only drives: what a balancer picks,
//! whether a request is tried again, how long work takes and when a node fails is decided in `policy` and `model`.
#![forbid(unsafe_code)]

mod acts;
mod again;
mod blocks;
mod bounds;
mod branches;
mod check;
mod checks;
mod clients;
mod code;
mod compile;
mod cut;
mod deferred;
mod detail;
mod ends;
mod engine;
mod expect;
mod fanout;
mod gather;
mod guards;
mod heap;
mod hedges;
mod hops;
mod job;
mod kinds;
mod latency;
mod ledger;
mod lines;
mod lookahead;
mod loops;
mod lost;
mod meter;
mod order;
mod part;
mod pending;
mod precision;
mod probes;
mod rare;
mod reach;
mod record;
mod reference;
mod replicate;
mod request_state;
pub mod result;
mod run;
mod scopes;
mod sequence;
mod settle;
mod shares;
mod source;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod visits;
mod warnings;
mod wheel;
mod work_ahead;
mod work_left;

pub use part::{NotWhole, Part, Shard, merge, run_part};
pub use precision::{Goal, Precision, Shortfall};
pub use record::{
    History, Looks, Part as TimePart, PoolOverTime, QueueOverTime, Recording, Selection, Series, Stage,
    Typical, UpOverTime, record,
};
pub use result::{AtQuantile, Each, Expected, Explained, NodeResult, Requests, Results, ScenarioResult};
pub use run::{Error, Options, Wants, run, run_wanting};
