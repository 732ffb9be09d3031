//! Why a replication ends before all its requests do.

/// Why a replication was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It was told to stop.
    Stopped,
    /// Virtual time passed [`HORIZON_NS`].
    TooLong,
}

/// The end of the time that is counted: 146 years. Sums of a few such times still fit a word.
pub(crate) const HORIZON_NS: u64 = 1 << 62;
