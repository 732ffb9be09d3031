//! Numbers that can be trusted: keyed random draws, histograms, quantiles with intervals, comparison.
//!
//! Nothing here knows a clock, a thread or a file, and nothing uses the C library's mathematics: the same input gives
//! the same bits everywhere.
#![forbid(unsafe_code)]

mod draw;
mod estimate;
mod histogram;
pub mod math;
mod student;

pub use draw::Key;
pub use estimate::{Estimate, Latency};
pub use histogram::{Histogram, Within};
pub use student::t95;
