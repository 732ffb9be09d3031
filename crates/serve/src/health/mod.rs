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
//! [`monitor`] has the state and the clock, [`check`] asks a target over a connection of its own, [`target_set`] says who the
//! targets are. The one request that may try a target on probation is told by an atomic ([`crate::nodes::lb::TargetFlags`]).

mod check;
pub(crate) mod monitor;
pub(crate) mod target_set;
