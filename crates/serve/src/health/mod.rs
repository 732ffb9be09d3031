//! Health is the process's: one loop keeps it, all loops follow.
//!
//! ```text
//!   loop 0: keeper ── checks ──> targets          loops: requests
//!     ^  owns a policy::Health per balancer          |
//!     |                                              |
//!     +---- outcomes, where eject or outlier listen -+
//!     +---- snapshots on every change -------------->+  Upstream::follow
//! ```
//!
//! [`keeper`] has the state and the clock, [`check`] asks a target over a connection of its own, [`ends`] finds out what is
//! behind a target. The one request that may try a target on probation is told by an atomic
//! ([`crate::nodes::lb::common`]).

pub(crate) mod check;
pub(crate) mod monitor;
