//! The way to origins: connections, their pools, and one exchange on one of them.

pub(crate) mod connect;
pub(crate) mod limit;
pub(crate) mod names;
pub(crate) mod pool;
pub(crate) mod server;

use crate::io::deadlines::Deadline;
use crate::transport::wire::Wire;

/// A connection to an origin.
pub(crate) struct OriginConn {
    pub wire: Wire,
    /// When it was made.
    pub opened_ns: u64,
    /// When it closes at the latest, by its age.
    pub old_ns: u64,
    /// Requests that were begun on it.
    pub requests: u64,
    /// Silence of the origin.
    pub deadline: Deadline,
    /// Whether the last answer had no body by its rules: some origins send one nevertheless.
    pub is_doubtful: bool,
    /// Whether it belongs to one client's connection (NTLM, Negotiate).
    pub bound: bool,
    /// Its place among those that the server may have.
    pub _counted: Option<limit::Counted>,
}
