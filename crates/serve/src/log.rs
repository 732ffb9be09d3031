//! The access log: a line for each exchange, written by a thread of its own; a loop never waits for it.

use crate::exchange::Exchange;
use weir_policy::Kind;

/// What an exchange notes for its line.
pub(crate) struct Line {
    /// The status that the client saw; 499 where it left.
    pub status: u16,
    /// What went wrong.
    pub failure: Option<Kind>,
}

impl Line {
    /// The line of an exchange that begins.
    pub fn begin(_ex: &Exchange) -> Line {
        Line { status: 0, failure: None }
    }
}
