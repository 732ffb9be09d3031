//! Numbers that can be trusted: keyed random draws, histograms, quantiles with intervals, comparison.
//!
//! This crate uses no clock, thread, file or mathematics of the C library: the same input gives the same bits
//! everywhere.
#![forbid(unsafe_code)]

mod binomial;
mod decimal;
mod difference;
mod draw;
mod estimate;
mod histogram;
pub mod math;
mod mser;
mod student;

pub use binomial::clopper_pearson;
pub use decimal::{Decimal, ProductError, Ratio};
pub use difference::{Difference, Side, holm, no_other_end, paired, welch};
pub use draw::Key;
pub use estimate::{Estimate, Latency};
pub use histogram::{BoundedQuantile, Counts, Histogram, samples_needed};
pub use mser::truncation;
pub use student::{t95, t95_of, two_tails};
