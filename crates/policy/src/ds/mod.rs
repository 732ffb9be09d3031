//! Data structures that know no policy: sets of targets, targets by load, loads with a bound.

pub mod bits;
pub mod bounded;
pub mod counts;
pub mod levels;
pub mod recent_changes;
