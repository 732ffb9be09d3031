//! How a replication ends.

/// How a replication ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All requests came to their end.
    Done,
    /// It was told to stop.
    Stopped,
    /// Virtual time passed [`HORIZON_NS`].
    TooLong,
}

/// The end of the time that is counted: 146 years. Sums of a few such times still fit a word.
pub(crate) const HORIZON_NS: u64 = 1 << 62;
