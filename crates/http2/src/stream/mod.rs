//! Streams (RFC 9113 §5): their states as one table, what is kept of each, and those that were reset lately.

mod map;
mod record;
mod reset_streams;
mod state;

pub(crate) use map::{Slot, Streams};
pub(crate) use record::{ANY_LENGTH, Part, Stream};
pub(crate) use reset_streams::ResetStreams;
pub(crate) use state::{Input, Outcome, State};
