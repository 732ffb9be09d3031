//! Health is process-wide: the owner's thread has it, all loops follow.
//!
//! ```text
//!   owner: monitor ── checks ──> targets          loops: requests
//!     ^  a policy::Health per balancer               |
//!     |                                              |
//!     +---- outcomes, where eject or outlier listen -+
//!     +---- snapshots on every change -------------->+  Upstream::follow
//! ```
//!
//! [`monitor`] has the state and the clock, [`check`] asks a target over a connection of its own, [`overrides`] has the
//! operator's settings. The trial of a target on probation is signalled by an atomic
//! ([`crate::nodes::lb::TargetFlags`]).

mod check;
pub(crate) mod monitor;
pub(crate) mod overrides;
pub(crate) mod snapshot;
