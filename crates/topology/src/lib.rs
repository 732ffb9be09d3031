//! From a topology file to a plan: the only thing that everything downstream sees.
#![forbid(unsafe_code)]

pub mod plan;

pub use plan::Plan;
