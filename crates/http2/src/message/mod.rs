//! Messages (RFC 9113 §8): what their fields must be, and where they go.

mod bytes;
mod judge;
mod sink;

pub(crate) use judge::{HeadLimits, Judge, Verdict};
pub use sink::{Block, FieldSink, Pseudo, Scratch};
