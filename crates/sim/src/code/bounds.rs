//! Reasons why a replication ends before all its requests do.

/// Why a replication was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It was stopped.
    Stopped,
    /// Virtual time passed [`HORIZON_NS`].
    TooLong,
    /// Users that do not think get answers at once: their time does not advance.
    StandsStill,
    /// One request has more branches at once than can be put in order.
    TooManyBranches,
    /// The run has more parts than a result over time may have.
    TooManyParts,
    /// More than [`MOST_AT_ONCE`] were in flight.
    TooMany,
}

/// The most requests that a user may send and get answered, on average, without any time passing.
pub(crate) const AT_ONE_INSTANT: u64 = 100_000;

/// The most requests (or branches of them) in flight at once. One event adds fewer than a list has nodes, so slots
/// can always be numbered. Each takes up to 700 bytes, so a machine of today reaches this before its memory ends.
pub(crate) const MOST_AT_ONCE: usize = if cfg!(test) { 100_000 } else { 10_000_000 };

/// The end of the time that is counted: 146 years. Sums of a few such times still fit 64 bits.
pub(crate) const HORIZON_NS: u64 = 1 << 62;

/// How often a balancer's health may be examined without admitting a waiting request; after that they no longer count
/// as waiting for it.
pub(crate) const MOST_IN_VAIN: u32 = 10_000;
