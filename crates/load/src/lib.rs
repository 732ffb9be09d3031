//! An open-loop generator: sends a scenario's requests to a URL at their intended times, regardless of the answers.
//!
//! Requests are those of the simulation (`weir-workload`): the same arrivals, kinds, keys and bodies for the same
//! seed. A latency counts from the intended time to the last byte, so that a server that stalls does not receive a
//! gentler load (Gil Tene's "coordinated omission"). One thread, one runtime: one timer paces the requests, and
//! connections are tasks beside it.
#![forbid(unsafe_code)]

mod cookies;
mod expected;
mod generator;
mod hgrm;
mod outcome;
mod run;
mod shape;
mod target;

pub use generator::CannotConnect;
pub use generator::tally::Second;
pub use hgrm::hgrm;
pub use outcome::{Lag, Latency, Outcome, OverTime, Requests, Row, Verdict};
pub use run::{Error, Options, Protocol, VerifyRun, run};
pub use shape::CannotSend;
pub use target::{CannotReach, Target};
