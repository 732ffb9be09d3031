//! Why a replication ends before all its requests do.

/// Why a replication was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It was told to stop.
    Stopped,
    /// Virtual time passed [`HORIZON_NS`].
    TooLong,
    /// Users who do not think get answers at once: their time stands still.
    StandsStill,
    /// One request has more branches at once than can be put in order.
    TooManyBranches,
    /// More than [`MOST_AT_ONCE`] were on their way.
    TooMany,
}

/// Requests that one user may send and get answered on average without any time passing.
pub(crate) const AT_ONE_INSTANT: u64 = 100_000;

/// Requests (or branches of them) in flight at once. One event adds fewer than a list has nodes to them, so slots can
/// always be numbered. They take up to 700 bytes each, so a machine of our days reaches this before its memory ends.
pub(crate) const MOST_AT_ONCE: usize = if cfg!(test) { 100_000 } else { 10_000_000 };

/// The end of the time that is counted: 146 years. Sums of a few such times still fit a word.
pub(crate) const HORIZON_NS: u64 = 1 << 62;

/// So often a balancer's health may change, or not, without letting in any of those who wait there: then nobody waits for it.
pub(crate) const MOST_IN_VAIN: u32 = 10_000;
