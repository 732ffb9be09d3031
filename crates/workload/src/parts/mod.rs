//! The parts of a run with results over time: what is counted of each, by the simulator and by the generator of load.

mod classes;
mod slices;

pub use classes::Classes;
pub use slices::{ConnectionCount, QUANTILES, SliceSums, Slices};
