//! `weir gate`: a process beside an application that answers its balancers' health checks, and lets them in one after the other
//! when the application has just begun.
//!
//! What is decided is [`weir_policy::gate`], the same as `gate` in a topology. This crate asks the application, counts its requests,
//! knows its askers and speaks HTTP. It runs on one thread and is bounded: in connections, askers and what it reads.
#![forbid(unsafe_code)]

mod agent;
mod answer;
mod askers;
mod counter;
mod dry_run;
mod fetch;
mod log;
mod metrics;
mod options;
mod peers;
mod probe;
mod serve;
mod state;
mod status;
mod url;

pub use dry_run::{Prediction, Question, predict, predictions_json, predictions_text};
pub use log::LogFormat;
pub use options::{AskerKey, Options, WorkOptions};
pub use serve::{CannotStart, OpenGate, Stopper, bind};
pub use url::{InvalidUrl, Url};
