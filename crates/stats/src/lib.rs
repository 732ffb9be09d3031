//! Numbers that can be trusted: keyed random draws, histograms, quantiles with intervals, comparison.
//!
//! Nothing here knows a clock, a thread or a file, and nothing uses the C library's mathematics: the same input gives
//! the same bits everywhere.
#![forbid(unsafe_code)]

mod difference;
mod draw;
mod estimate;
mod histogram;
pub mod math;
mod mser;
mod student;

pub use difference::{Difference, Side, holm, paired, welch};
pub use draw::Key;
pub use estimate::{Estimate, Latency};
pub use histogram::{Counts, Histogram, Within};
pub use mser::truncation;
pub use student::{t95, t95_of, two_tails};
