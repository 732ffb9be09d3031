//! Messages (RFC 9113 §8): what their fields must be, and where they go.

mod bytes;
mod head;
mod judge;
mod line;
mod sink;

pub use head::{Head, Rendered};
pub(crate) use judge::{HeadLimits, Judge, Verdict};
pub use line::RequestLine;
pub use sink::{Block, FieldSink, Pseudo, PseudoMarks, Scratch};
