//! Health is the process's: the owner's thread has it, all loops follow.
//!
//! ```text
//!   owner: monitor ── checks ──> targets          loops: requests
//!     ^  a policy::Health per balancer               |
//!     |                                              |
//!     +---- outcomes, where eject or outlier listen -+
//!     +---- snapshots on every change -------------->+  Upstream::follow
//! ```
//!
//! [`monitor`] has the state and the clock, [`check`] asks a target over a connection of its own, [`by_hand`] is what an
//! operator has set. The one request that may try a target on probation is told by an atomic ([`crate::nodes::lb::TargetFlags`]).

pub(crate) mod by_hand;
mod check;
pub(crate) mod monitor;
pub(crate) mod snapshot;
