//! The simulator: runs a plan in virtual time.
//!
//! A scenario is compiled once to linear code; replications run it independently, spread over threads, and are summed
//! up in order, so no byte of a result depends on the number of threads. The simulator only drives: what a balancer
//! picks, whether a request is tried again, how long work takes and when a node fails is decided in `policy` and
//! `model`.
#![forbid(unsafe_code)]

mod account;
mod code;
mod compile;
mod engine;
mod features;
mod record;
mod reference;
mod results;
mod state;
#[cfg(test)]
mod tests;

pub use record::{
    ConnectionsOverTime, FleetOverTime, History, LatencyClass, LatencyOverTime, Mark, PoolOverTime,
    QueueOverTime, Selection, Series, Stage, SubsetsOverTime, TimePart, Typical, UpOverTime,
};
pub use results::connections::{CLOSED, Connections};
pub use results::over_time::{Act, FIGURES, OthersOverTime, OverTime, PEAKS, Regained, WatchedOverTime};
pub use results::precision::Precision;
pub use results::rerun::{RecordOptions, Recording, record};
pub use results::result::{
    AtQuantile, ExpectationResult, Explanation, Goal, NodeResult, ReplicationValues, Requests, Results,
    ScenarioResult, Shortfall,
};
pub use results::run::{Error, Extras, Options, run, run_observed, run_with_extras};
pub use results::settling::SETTLED_OVER;
pub use results::shard::{NotWhole, Shard, ShardRun, merge, run_shard};
pub use results::threads::Observer;
pub use results::timetable::timetable;
pub use results::warnings::{WARNINGS, too_short};
