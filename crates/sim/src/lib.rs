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
mod engine;
mod fanout;
mod guards;
mod heap;
mod hedges;
mod hops;
mod kinds;
mod latency;
mod ledger;
mod lines;
mod lookahead;
mod loops;
mod lost;
mod meter;
mod order;
mod pending;
mod rare;
mod reach;
#[cfg(test)]
mod reference;
mod request_state;
pub mod result;
mod run;
mod scopes;
mod sequence;
mod shares;
mod source;
mod steps;
mod summary;
#[cfg(test)]
mod tests;
mod visits;
mod warnings;
mod wheel;

pub use result::{NodeResult, Requests, Results, ScenarioResult};
pub use run::{Error, Options, run};
